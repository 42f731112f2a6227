"""The life of one finding over the runs of an estate, each turn of it with what it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pydantic import AwareDatetime

from policyeng.audit.comparing.comparison import compared
from policyeng.audit.comparing.courses import lives
from policyeng.audit.comparing.nouns import Cause, Flip
from policyeng.audit.comparing.states import Key
from policyeng.audit.comparing.stored import Stored
from policyeng.audit.history import History, Run, Span
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError
from policyeng.facts.ids import folded_id
from policyeng.models import Model, Outcome, Severity, lowered


class Turn(Model):
    """A run at which a finding was no longer what it was.

    Attributes:
        turn: `began` in the first run of the estate, of which nobody knows more.
        outcome: what was found; None where it passed or was judged no more.
        causes: as of a flip; empty with a `note` that says why.
    """

    run: int
    as_of: AwareDatetime
    turn: Literal["began", "new", "changed", "fixed", "reopened"]
    outcome: Outcome | None = None
    exempt: bool = False
    causes: tuple[tuple[Cause, ...], ...] = ()
    note: str = ""


class Life(Model):
    """One finding from its first run on."""

    estate: str
    part: str
    policy: str
    resource: str
    resource_type: str
    severity: Severity
    turns: tuple[Turn, ...]


def lives_of(history: History, estate: str, spans: Iterable[Span], opa: OpaOptions | None = None) -> Iterator[Life]:
    """The lives that some spans of an estate tell, whole or from some run on.

    Args:
        history: what was kept.
        estate: its name.
        spans: sorted as a store gives them.
        opa: which OPA judges what OPA judged; a private server unless given.
    """
    course = _Course(history, history.runs(estate), opa)
    for life in lives(spans):
        first = life[0]
        yield Life(
            estate=estate,
            part=first.part,
            policy=first.policy,
            resource=first.resource,
            resource_type=first.resource_type,
            severity=life[-1].severity,
            turns=tuple(_turns(course, life)),
        )


class _Course:
    """The runs of an estate; the last few are kept as they were judged."""

    def __init__(self, history: History, runs: Sequence[Run], opa: OpaOptions | None) -> None:
        self._history, self._opa = history, opa
        self.runs: Mapping[int, Run] = {run.number: run for run in runs}
        self._numbers = [run.number for run in runs]
        self._stored: dict[int, Stored] = {}

    def before(self, number: int) -> int | None:
        """The run of the estate before another."""
        at = self._numbers.index(number)
        return self._numbers[at - 1] if at else None

    def flip(self, number: int, span: Span) -> Flip | None:
        """What a finding flipped to at a run, with its causes.

        Raises:
            UsageError: what that takes could not be read then, or retention has taken it.
        """
        earlier = self.before(number)
        if earlier is None:
            return None
        (before, old), (after, new) = (self._of(one).state(span.part) for one in (earlier, number))
        wanted = Key(span.policy, lowered(span.resource_type), folded_id(span.resource))
        comparison = compared(before, after, found=(old, new), only=lambda key: key[:3] == wanted[:3])
        return next(iter(comparison.flips), None)

    def _of(self, number: int) -> Stored:
        if number not in self._stored:
            while len(self._stored) > 1:
                del self._stored[next(iter(self._stored))]
            self._stored[number] = Stored(self._history, self.runs[number], self._opa)
        return self._stored[number]


def _turns(course: _Course, life: Sequence[Span]) -> Iterator[Turn]:
    for at, span in enumerate(life):
        earlier = life[at - 1] if at else None
        if earlier is None:
            turn: Literal["began", "new", "changed", "reopened"] = "new" if course.before(span.first) else "began"
        else:
            turn = "changed" if earlier.until == span.first else "reopened"
        yield _turn(course, span, span.first, turn)
        following = life[at + 1] if at + 1 < len(life) else None
        if span.until is not None and (following is None or following.first != span.until):
            yield _turn(course, span, span.until, "fixed")


def _turn(
    course: _Course, span: Span, number: int, turn: Literal["began", "new", "changed", "fixed", "reopened"]
) -> Turn:
    causes: tuple[tuple[Cause, ...], ...] = ()
    note = ""
    try:
        flip = None if turn == "began" else course.flip(number, span)
        causes = flip.causes if flip else ()
        note = "" if causes or turn == "began" else _UNEXPLAINED
    except UsageError as error:
        note = str(error)
    stands = turn != "fixed"
    return Turn(
        run=number,
        as_of=course.runs[number].as_of,
        turn=turn,
        outcome=span.outcome if stands else None,
        exempt=stands and span.exempt,
        causes=causes,
        note=note,
    )


_UNEXPLAINED = "judging both runs again does not give the flip"
