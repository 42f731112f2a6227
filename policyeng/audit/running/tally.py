"""What is known of a run while its parts go by."""

from __future__ import annotations

from collections.abc import Iterable

from policyeng.audit.running.judging import JudgedPart
from policyeng.models import Problem, Summary


class Tally:
    """Adds up parts.

    Attributes:
        parts: how many there are.
        problems: what kept parts from being judged.
        summaries: of each part.
    """

    def __init__(self) -> None:
        self.parts = 0
        self.summaries: list[Summary] = []
        self.problems: list[Problem] = []
        self._exit_code = 0
        self._exempting: frozenset[Problem] | None = None

    def add(self, part: JudgedPart) -> None:
        """Take a part."""
        self.problems += part.problems
        if part.entry is None:
            return
        self.parts += 1
        self._exit_code = max(self._exit_code, part.entry.exit_code)
        self.summaries.append(part.summary)
        if part.exempting is not None:
            self._exempting = part.exempting if self._exempting is None else self._exempting & part.exempting

    def said(self, more: Iterable[Problem]) -> list[Problem]:
        """The problems of the run: `more`, those of parts, and what every part says of an exemption."""
        said = [*more, *self.problems]
        if not self.parts:
            message = "nothing was read: the estate has no part that can be judged"
            said.append(Problem(level="error", message=message))
        return said + sorted(self._exempting or (), key=lambda problem: (problem.place, problem.message))

    def exit_code(self, problems: Iterable[Problem]) -> int:
        """What `check` of all parts would end with, given the problems of the run."""
        return max(self._exit_code, 2 * any(problem.level == "error" for problem in problems))
