"""The course of an estate over its runs: counts, compliance, and what became new, fixed or stood again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from pydantic import AwareDatetime

from policyeng.audit.history import Run, Span
from policyeng.models import Model, Outcome


class Point(Model):
    """One run in the course of an estate; a finding here is one that does not pass.

    Attributes:
        pass_count, strict_compliance, azure_compliance: None where only some findings are looked at.
        new: findings that the run before did not have; of the first run all.
        changed: with another outcome or another mark of an exemption than in the run before.
        fixed: of the run before, that pass now or are judged no more.
        reopened: those of the new ones that stood at some time before.
    """

    run: int
    as_of: AwareDatetime
    parts: int
    exit_code: int
    fail: int = 0
    exempt: int = 0
    unknown: int = 0
    error: int = 0
    pass_count: int | None = None
    strict_compliance: float | None = None
    azure_compliance: float | None = None
    new: int = 0
    changed: int = 0
    fixed: int = 0
    reopened: int = 0


class Course(Model):
    """The runs of an estate, the oldest first."""

    estate: str
    points: tuple[Point, ...]


#: Whether a span is looked at; None for all of them.
Wanted = Callable[[Span], bool] | None


def course_of(estate: str, runs: Sequence[Run], spans: Iterable[Span], wanted: Wanted = None) -> Course:
    """The course of an estate.

    Args:
        estate: its name.
        runs: all of its runs, the oldest first.
        spans: all of its spans, sorted as a store gives them.
        wanted: which spans count; all unless given.
    """
    turns = {name: Counter[int]() for name in ("new", "changed", "fixed", "reopened")}
    standing = {name: Counter[int]() for name in ("fail", "exempt", "unknown", "error")}
    for one in lives(span for span in spans if wanted is None or wanted(span)):
        for name, number in turns_of(one):
            turns[name][number] += 1
        for span in one:
            for name in _counts_of(span):
                standing[name][span.first] += 1
                if span.until is not None:
                    standing[name][span.until] -= 1
    held = Counter[str]()
    points = []
    for run in runs:
        held.update({name: changes[run.number] for name, changes in standing.items()})
        counts = {name: changes[run.number] for name, changes in turns.items()}
        points.append(_point(run, counts, None if wanted is None else held))
    return Course(estate=estate, points=tuple(points))


def lives(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """The spans of one finding after the other, the first of each first."""
    for _, alike in groupby(spans, lambda span: (span.part, span.policy, span.resource)):
        by_type: dict[str, list[Span]] = {}
        for span in alike:
            by_type.setdefault(span.resource_type, []).append(span)
        yield from by_type.values()


def turns_of(life: Sequence[Span]) -> Iterator[tuple[str, int]]:
    """At which runs a finding was `new`, `changed`, `fixed` or `reopened`; one that is reopened is new as well."""
    yield "new", life[0].first
    for span, following in pairwise(life):
        if following.first == span.until:
            yield "changed", following.first
            continue
        if span.until is not None:
            yield "fixed", span.until
        yield "new", following.first
        yield "reopened", following.first
    if life[-1].until is not None:
        yield "fixed", life[-1].until


def _counts_of(span: Span) -> list[str]:
    return ["fail", "exempt"] if span.outcome is Outcome.FAIL and span.exempt else [str(span.outcome)]


def _point(run: Run, turns: dict[str, int], held: Counter[str] | None) -> Point:
    shared = {"run": run.number, "as_of": run.as_of, "parts": run.parts, "exit_code": run.exit_code, **turns}
    if held is not None:
        return Point.model_validate({**shared, **held})
    summary = run.summary
    return Point.model_validate(
        {
            **shared,
            **{name: getattr(summary, name) for name in ("fail", "exempt", "unknown", "error")},
            "pass_count": summary.pass_,
            "strict_compliance": summary.strict_compliance,
            "azure_compliance": summary.azure_compliance,
        }
    )
