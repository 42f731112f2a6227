"""The limits of one evaluation: steps, size and time.

Compiled code counts a step for each iteration and each call; builtins charge for what they make. Both use the budget of
the thread, because a value is made where it is evaluated.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class BudgetExceededError(Exception):
    """An evaluation that takes too many steps, too long, or makes too large a value."""

    code = "eval_budget_error"


class Budget(threading.local):
    """What the evaluation of this thread may still use.

    Attributes:
        deadline: seconds of `time.monotonic` at which it ends.
        size: members, characters and digits that may still be made.
    """

    deadline: float = float("inf")
    size: int = 1 << 62


BUDGET = Budget()


@contextmanager
def limited(seconds: float, size: int) -> Iterator[None]:
    """Evaluate within limits.

    Args:
        seconds: of wall-clock time.
        size: members, characters and digits that builtins and comprehensions may make.
    """
    before = BUDGET.deadline, BUDGET.size
    BUDGET.deadline, BUDGET.size = min(before[0], time.monotonic() + seconds), min(before[1], size)
    try:
        yield
    finally:
        BUDGET.deadline, BUDGET.size = before


def charge(size: int) -> None:
    """Count something that is about to be made, before it is made.

    Args:
        size: members, characters or digits.

    Raises:
        BudgetExceededError: it is more than is left, or the time is over.
    """
    BUDGET.size -= size
    if BUDGET.size < 0:
        raise BudgetExceededError("the evaluation makes values that are too large")
    if time.monotonic() > BUDGET.deadline:
        raise BudgetExceededError("the evaluation takes too long")
