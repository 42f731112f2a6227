"""The limits of compiling modules and of one evaluation: sizes, steps and time.

Compiled code counts a step for each iteration and each call; builtins charge for what they make. What compiles counts
a step for each term that it visits and each line that it writes. All use the budget of the thread, because a value is
made where it is evaluated.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from policyeng.rego.errors import ModuleText

#: Members and characters of one value that are not worth the time of counting them.
_FEW_MEMBERS, _FEW_CHARACTERS = 100, 4096
_STEPS_OF_A_LOOK = 10_000
_T = TypeVar("_T", bound=Sized)


class BudgetExceededError(Exception):
    """An evaluation that takes too many steps, too long, or makes too large a value."""

    code = "eval_budget_error"


class EvaluationLimits(NamedTuple):
    """What one evaluation may use, and compiling the modules for it.

    Attributes:
        seconds: of wall-clock time.
        steps: iterations and calls.
        size: members, characters and digits that comprehensions and builtins may make.
        characters: of one module.
        rules: of one module.
        expressions: of one body.
        compilation_steps: terms that are visited and lines that are written, to parse one module or to compile all.
        compilation_seconds: of wall-clock time for the same, should the steps take long.
    """

    seconds: float
    steps: int
    size: int
    characters: int = 1_000_000
    rules: int = 20_000
    expressions: int = 10_000
    compilation_steps: int = 5_000_000
    compilation_seconds: float = 60


#: No limit of evaluations; those of compiling are as usual.
UNLIMITED = EvaluationLimits(float("inf"), 1 << 62, 1 << 62)


class CompilationSteps:
    """What compiling may still use, and what it is at.

    Attributes:
        limits: those of it.
        used: steps so far.
        source, offset: what it is at, for the message.
    """

    def __init__(self, limits: EvaluationLimits) -> None:
        """Begin with no steps used."""
        self.limits = limits
        self.used = 0
        self.source: ModuleText | None = None
        self.offset = 0
        self._last = limits.compilation_steps
        self._next_look = 0
        self._deadline = time.monotonic() + limits.compilation_seconds

    def spend(self, steps: int = 1) -> None:
        """Count steps.

        Raises:
            CompilationLimitError: there are more than the limit, or the time is over.
        """
        self.used += steps
        if self.used < self._next_look:
            return
        if self.used > self._last:
            raise CompilationLimitError(f"takes more than {self._last:,} steps to compile (limit `compilation_steps`)")
        # To ask for the time costs more than a step.
        self._next_look = min(self.used + _STEPS_OF_A_LOOK, self._last + 1)
        if time.monotonic() > self._deadline:
            seconds = f"{self.limits.compilation_seconds:g}"
            raise CompilationLimitError(f"takes longer than {seconds} s to compile (limit `compilation_seconds`)")


class CompilationLimitError(Exception):
    """Modules that take too many steps, or too long, to compile."""


class Budget(threading.local):
    """What the evaluation of this thread may still use.

    Attributes:
        deadline: seconds of `time.monotonic` at which it ends.
        size: members, characters and digits that may still be made.
        compilation: of what is being compiled.
    """

    deadline: float = UNLIMITED.seconds
    size: int = UNLIMITED.size
    compilation: CompilationSteps | None = None


BUDGET = Budget()


@contextmanager
def compiling(limits: EvaluationLimits = UNLIMITED) -> Iterator[CompilationSteps]:
    """Count the steps of what is compiled within; a compilation within another belongs to that one."""
    outer = BUDGET.compilation
    if outer is not None:
        yield outer
        return
    # Annotations are read by builtins, which charge for what they make: not to the last evaluation of this thread.
    before = BUDGET.deadline, BUDGET.size
    BUDGET.deadline, BUDGET.size = time.monotonic() + limits.compilation_seconds, limits.compilation_steps
    steps = BUDGET.compilation = CompilationSteps(limits)
    try:
        yield steps
    finally:
        BUDGET.compilation = None
        BUDGET.deadline, BUDGET.size = before


def spend(steps: int = 1) -> None:
    """Count steps of what is being compiled.

    Raises:
        CompilationLimitError: there are more than the limit, or the time is over.
    """
    if (compilation := BUDGET.compilation) is not None:
        compilation.spend(steps)


def compile_at(source: ModuleText, offset: int) -> None:
    """Note what is being compiled, for the message about a limit."""
    if (compilation := BUDGET.compilation) is not None:
        compilation.source, compilation.offset = source, offset


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
