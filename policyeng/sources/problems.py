"""Conversion of errors to problems and back, with the same place, message and remedy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from policyeng.errors import InputError
from policyeng.models import Problem


def problem_of(error: InputError, level: Literal["error", "warning"] = "error") -> Problem:
    """Convert an error to a problem: the first place becomes its place, the rest goes into the message."""
    place, inner = error.place[:1], error.place[1:]
    message = str(InputError(error.message, place=inner, remedy=error.remedy))
    return Problem(level=level, message=message, place="".join(place))


def raise_errors(problems: Iterable[Problem]) -> None:
    """Raise the first problem that is an error, with the number of further errors.

    Raises:
        InputError: there is an error.
    """
    errors = [problem for problem in problems if problem.level == "error"]
    if errors:
        others = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise InputError(errors[0].message + others, place=(errors[0].place,))
