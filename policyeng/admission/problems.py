"""Decisions on what was read: where a part of it could not be, nothing is allowed."""

from __future__ import annotations

from collections.abc import Iterable

from policyeng.models import Decision, Problem


def with_problems(decision: Decision, problems: Iterable[Problem]) -> Decision:
    """A decision with what could not be read of the state or the changes; an error among it denies with exit code 2.

    Args:
        decision: on what could be read.
        problems: of the reading; they come before its own.
    """
    said = tuple(problems)
    if not any(problem.level == "error" for problem in said):
        return decision.model_copy(update={"problems": (*said, *decision.problems)})
    return decision.model_copy(update={"allowed": False, "exit_code": 2, "problems": (*said, *decision.problems)})
