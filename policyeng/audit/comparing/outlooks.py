"""What is ahead of the newest run of an estate, or of snapshots that were just read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from pydantic import AwareDatetime

from policyeng.audit.comparing.ahead import Coming, coming
from policyeng.audit.comparing.states import ANY, Gate, State
from policyeng.audit.comparing.stored import Stored
from policyeng.audit.history import History, Run
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError
from policyeng.evaluation import fails
from policyeng.models import Outcome, Problem
from policyeng.models.validated import ValidatedModel


class Outlook(ValidatedModel):
    """What will flip if nothing changes, in the order of time.

    Attributes:
        run: the number of the run whose snapshots were judged on; None for snapshots that were just read.
        begins, until: the clocks between which.
        problems: parts that could not be judged, and why.
    """

    exit_code: int
    estate: str
    run: int | None = None
    begins: AwareDatetime
    until: AwareDatetime
    parts: int = 0
    coming: tuple[Coming, ...] = ()
    problems: tuple[Problem, ...] = ()


class Ready(NamedTuple):
    """A part that can be judged, or what kept it from that."""

    name: str
    state: State | None
    problems: tuple[Problem, ...] = ()


def stored_parts(history: History, run: Run, begins: datetime, opa: OpaOptions | None = None) -> Iterator[Ready]:
    """The parts of a run, with all that it judged with but the clock."""
    stored = Stored(history, run, opa)
    for part in history.parts(run):
        try:
            yield Ready(part.name, stored.of(history.snapshot(part), begins))
        except UsageError as error:
            yield Ready(part.name, None, (Problem(level="error", message=str(error)),))


def outlook(
    parts: Iterable[Ready],
    estate: str,
    begins: datetime,
    until: datetime,
    *,
    run: int | None = None,
    gate: Gate = ANY,
) -> Outlook:
    """Look ahead at each part, one after the other.

    The exit code is 2 when something could not be judged, else 1 when something will fail at or above the gate that
    does not, else 0.

    Raises:
        UsageError: a parameter does not exist or does not fit its schema, or the engine does not exist.
        EngineError: a bundle does not compile, or the OPA server does not answer for every pair.
    """
    found: list[Coming] = []
    problems: list[Problem] = []
    number = 0
    for part in parts:
        number += 1
        problems += (one.model_copy(update={"place": _place(part.name, one)}) for one in part.problems)
        if part.state is not None:
            found += coming(part.state, until, part.name)
    found.sort(key=lambda one: one.at)
    is_undecided = any(one.level == "error" for one in problems) or any(
        one.flip.after is Outcome.ERROR for one in found
    )
    return Outlook(
        exit_code=2 if is_undecided else int(any(_will_fail(one, gate) for one in found)),
        estate=estate,
        run=run,
        begins=begins,
        until=until,
        parts=number,
        coming=tuple(found),
        problems=tuple(problems),
    )


def _place(name: str, problem: Problem) -> str:
    return f"{name}: {problem.place}" if problem.place and problem.place != name else name


def _will_fail(one: Coming, gate: Gate) -> bool:
    stands = one.flip.after is one.flip.finding.outcome
    return stands and fails(one.flip.finding, gate.fail_on, strict_unknown=gate.strict_unknown)
