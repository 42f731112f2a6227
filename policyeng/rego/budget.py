"""The limits of one evaluation: steps, size and time.

Compiled code counts a step for each iteration and each call; builtins charge for what they make. Both use the budget of
the thread, because a value is made where it is evaluated.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sized
from typing import NamedTuple, TypeVar

#: Members and characters of one value that are not worth the time of counting them.
_FEW_MEMBERS, _FEW_CHARACTERS = 100, 4096
_T = TypeVar("_T", bound=Sized)


class BudgetExceededError(Exception):
    """An evaluation that takes too many steps, too long, or makes too large a value."""

    code = "eval_budget_error"


class EvaluationLimits(NamedTuple):
    """What one evaluation may use.

    Attributes:
        seconds: of wall-clock time.
        steps: iterations and calls.
        size: members, characters and digits that comprehensions and builtins may make.
    """

    seconds: float
    steps: int
    size: int


UNLIMITED = EvaluationLimits(float("inf"), 1 << 62, 1 << 62)


class Budget(threading.local):
    """What the evaluation of this thread may still use.

    Attributes:
        deadline: seconds of `time.monotonic` at which it ends.
        size: members, characters and digits that may still be made.
    """

    deadline: float = UNLIMITED.seconds
    size: int = UNLIMITED.size


BUDGET = Budget()


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


def charged(made: _T) -> _T:
    """Count a value that is as large as its parts together, and return it.

    Raises:
        BudgetExceededError: it is more than is left, or the time is over.
    """
    if len(made) > (_FEW_CHARACTERS if type(made) is str else _FEW_MEMBERS):
        charge(len(made))
    return made
