"""What a store holds of a run, as states that can be compared."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from policyeng.audit.comparing.states import State, judged
from policyeng.audit.history import History, Run
from policyeng.bundle import Bundle
from policyeng.engines import OpaOptions
from policyeng.models import Evaluation, Snapshot


class Stored:
    """The parts of one run; its bundle is read once."""

    def __init__(self, history: History, run: Run, opa: OpaOptions | None = None) -> None:
        self.history, self.run, self._opa = history, run, opa
        self._bundle: Bundle | None = None

    @property
    def bundle(self) -> Bundle:
        """The policies that judged.

        Raises:
            UsageError: retention has taken them.
        """
        if self._bundle is None:
            self._bundle = self.history.bundle(self.run)
        return self._bundle

    def state(self, name: str) -> tuple[State, Evaluation]:
        """One part with what was found in it; what the run has no part of is empty.

        Raises:
            UsageError: it could not be read then, or retention has taken it.
        """
        part = self.history.part(self.run, name)
        if part is None:
            empty = self.of(Snapshot())
            return empty, judged(empty)
        return self.of(self.history.snapshot(part)), self.history.evaluation(part)

    def of(self, snapshot: Snapshot, as_of: datetime | None = None) -> State:
        """A snapshot with everything that the run judged with, at its clock or another."""
        run = self.run
        return State(
            self.bundle,
            snapshot,
            as_of or run.as_of,
            run.exemptions,
            run.parameters,
            run.engine.name,
            self._opa if run.engine.name == "opa" else None,
        )


class Readings:
    """Which parts could not be read in which runs of an estate, asked of the store where it is wanted."""

    def __init__(self, history: History, runs: Iterable[Run]) -> None:
        self._history, self._runs = history, {run.number: run for run in runs}
        self._known: dict[tuple[int, str], bool] = {}

    def is_unread(self, number: int, part: str) -> bool:
        """Whether a run had a part that it could not read."""
        asked = number, part
        if asked not in self._known:
            found = self._history.part(self._runs[number], part)
            self._known[asked] = found is not None and not found.snapshot
        return self._known[asked]
