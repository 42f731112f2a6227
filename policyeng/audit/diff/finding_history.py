"""The history of a finding over the runs of an estate, with the causes of each change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from pydantic import AwareDatetime

from policyeng.audit.diff.comparison import compare_states
from policyeng.audit.diff.inputs import FindingKey, Readings, Stored, index_findings
from policyeng.audit.diff.records import Cause, Flip
from policyeng.audit.diff.trends import TurnName, group_spans, list_changes, number_of
from policyeng.audit.records import AuditRun, FindingSpan, History
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError
from policyeng.facts.ids import fold_id
from policyeng.models import Outcome, Severity, lowered
from policyeng.models.validated import ValidatedModel

_UNEXPLAINED = "judging both runs again does not give the flip"
_UNREAD = "its part could not be read in this run"


class Turn(ValidatedModel):
    """A run in which a finding changed.

    Attributes:
        turn: the kind of change.
        outcome: the outcome; None if it passed, was no longer evaluated, or was lost.
        causes: as of a flip; empty with a `note` that explains why.
    """

    run: int
    as_of: AwareDatetime
    turn: TurnName
    outcome: Outcome | None = None
    exempt: bool = False
    causes: tuple[tuple[Cause, ...], ...] = ()
    note: str = ""


class FindingHistory(ValidatedModel):
    """The history of one finding, with all or the requested changes."""

    estate: str
    part: str
    policy: str
    resource: str
    resource_type: str
    severity: Severity
    turns: tuple[Turn, ...]


def list_histories(
    history: History,
    estate: str,
    spans: Iterable[FindingSpan],
    wanted: Callable[[AuditRun], bool] | None = None,
    opa: OpaOptions | None = None,
) -> Iterator[FindingHistory]:
    """Yield the histories of the findings of some spans. The causes in one part are searched together.

    Args:
        history: the stored runs.
        estate: its name.
        spans: in the order of the store.
        wanted: selects the runs; all by default. Findings without changes in these are skipped.
        opa: the OPA for runs with that engine; a private server by default.
    """
    course = _Course(history, history.runs(estate), opa)
    for _, of_part in groupby(spans, lambda span: span.part):
        told = [(life, course.turns(life, wanted)) for life in group_spans(of_part)]
        flips = course.flips([turn for _, turns in told for turn in turns])
        for life, turns in told:
            if turns:
                yield _build_history(estate, life, (course.turn(turn, span, flips) for turn, span in turns))


def _build_history(estate: str, life: Sequence[FindingSpan], turns: Iterable[Turn]) -> FindingHistory:
    last = life[-1]
    return FindingHistory(
        estate=estate,
        part=last.part,
        policy=last.policy,
        resource=last.resource,
        resource_type=last.resource_type,
        severity=last.severity,
        turns=tuple(turns),
    )


#: By run, the flips of one part by what they are about, or why they cannot be known.
_Flips = Mapping[int, Mapping[FindingKey, Flip] | str]


class _Course:
    """The runs of an estate, with a cache of the last used ones."""

    def __init__(self, history: History, runs: Sequence[AuditRun], opa: OpaOptions | None) -> None:
        self._history, self._opa = history, opa
        self._runs = {run.number: run for run in runs}
        self._numbers = [run.number for run in runs]
        self._is_unread = Readings(history, runs).is_unread
        self._stored: dict[int, Stored] = {}

    def turns(
        self, life: Sequence[FindingSpan], wanted: Callable[[AuditRun], bool] | None
    ) -> list[tuple[TurnName, FindingSpan]]:
        """Return the requested turns of a finding."""
        turns = list_changes(life, self._numbers[0], self._is_unread)
        return [(turn, span) for turn, span in turns if wanted is None or wanted(self._runs[number_of(turn, span)])]

    def flips(self, turns: Iterable[tuple[TurnName, FindingSpan]]) -> _Flips:
        """Return the flips of one part in the runs of some turns, with their causes."""
        asked: dict[int, set[FindingKey]] = {}
        part = ""
        for turn, span in turns:
            part = span.part
            if turn not in ("began", "lost", "again"):
                asked.setdefault(number_of(turn, span), set()).add(_key(span))
        return {number: self._compared(part, number, keys) for number, keys in sorted(asked.items())}

    def _compared(self, part: str, number: int, keys: set[FindingKey]) -> Mapping[FindingKey, Flip] | str:
        earlier = self._numbers[self._numbers.index(number) - 1]
        try:
            (before, old), (after, new) = (self._of(one).state(part) for one in (earlier, number))
        except UsageError as error:
            return str(error)
        comparison = compare_states(before, after, found=(old, new), only=lambda key: key._replace(number=0) in keys)
        return {key: flip for flip in comparison.flips for key in index_findings([flip.finding])}

    def turn(self, turn: TurnName, span: FindingSpan, flips: _Flips) -> Turn:
        """Return a turn with its causes."""
        number, stands = number_of(turn, span), turn not in ("fixed", "lost")
        found = flips.get(number, "")
        flip = None if isinstance(found, str) else found.get(_key(span))
        causes = flip.causes if flip and turn not in ("began", "lost", "again") else ()
        note = {"began": "", "lost": _UNREAD, "again": ""}.get(turn, found if isinstance(found, str) else _UNEXPLAINED)
        return Turn(
            run=number,
            as_of=self._runs[number].as_of,
            turn=turn,
            outcome=span.outcome if stands else None,
            exempt=stands and span.exempt,
            causes=causes,
            note="" if causes else note,
        )

    def _of(self, number: int) -> Stored:
        if number not in self._stored:
            while len(self._stored) > 1:
                del self._stored[next(iter(self._stored))]
            self._stored[number] = Stored(self._history, self._runs[number], self._opa)
        return self._stored[number]


def _key(span: FindingSpan) -> FindingKey:
    return FindingKey(span.policy, lowered(span.resource_type), fold_id(span.resource))
