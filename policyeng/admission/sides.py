"""The states that a decision compares: each is the one state that was judged, and what of it changes affect."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from typing import NamedTuple

from policyeng import exemptions as exempting
from policyeng.admission.blame import Touches, reported, touches_of
from policyeng.admission.changes import Made
from policyeng.admission.told import Telling, Told, in_order, judged, marked
from policyeng.engines import embedded
from policyeng.evaluation import EvaluationContext, homes_of
from policyeng.evaluation.affected import Affected, Affecting, Pairs
from policyeng.evaluation.changing import Changed, Layout
from policyeng.evaluation.estate import Resource
from policyeng.evaluation.findings import order_of
from policyeng.evaluation.plan import plan
from policyeng.evaluation.remarks import of_classifications, of_compute, unknown_classifications
from policyeng.evaluation.rows import Row
from policyeng.evaluation.tracing import Differences, row_between
from policyeng.facts.computes import COMPUTE_TYPE
from policyeng.facts.ids import folded_id
from policyeng.models import Finding, Origin, Problem, lowered


class Side(NamedTuple):
    """A state after changes.

    Attributes:
        changed: None where nothing has changed.
        affected: the pairs that the changes can affect.
        prepared: the state with these pairs to judge.
    """

    changed: Changed | None
    affected: Affected
    prepared: EvaluationContext


class Found(NamedTuple):
    """What is found of a state.

    Attributes:
        findings: of the pairs that are compared, sorted.
        known: all that is said of it.
        fresh: the part of that which may not have been said of the state that was judged, in its order.
    """

    findings: list[Finding]
    known: frozenset[Problem]
    fresh: list[Problem]


class Sides:
    """A state that was made ready, and what changes make of it; threads may share it."""

    def __init__(self, prepared: EvaluationContext) -> None:
        self._prepared = prepared
        self._telling = Telling(prepared)
        self._layout = Layout(prepared)
        embedded.documents_of(prepared.work(datetime.min))  # of which changed copies are made
        self._affecting = Affecting(self._layout)
        self.told = self._telling.at
        #: The state as it is.
        self.untouched = Side(None, Affected({}, {}, {}), prepared)

    def after(self, told: Told, made: Made) -> Side:
        """The state after changes; the pairs of what they name are among the affected ones, changed or not."""
        layout, bundle = self._layout, self._prepared.bundle
        changed = layout.changed(made.becomes)
        named = [layout.by_folded[key] for key in made.changed if key in layout.by_folded]
        # What is read elsewhere has its places elsewhere, though it says the same.
        moved = made.fresh if self._prepared.snapshot.texts else ()
        spoken = [pair for key in moved for pair in told.spoken_of.get(key, ())]
        affected = self._affecting.by(changed, told.reads, named, spoken)
        ready = changed.prepared
        planned = tuple(plan(bundle, ready.estate, affected.after))
        snapshot = ready.snapshot
        if snapshot.texts:  # where fields stand is asked of them
            snapshot = snapshot.model_copy(update={"origins": self._origins_after(made)})
        prepared = EvaluationContext(bundle, snapshot, ready.parameters, ready.estate, planned, ready.made)
        return Side(changed, affected, prepared)

    def _origins_after(self, made: Made) -> dict[str, Origin]:
        """Where the resources of a state were read."""
        origins = dict(self._prepared.snapshot.origins)
        for folded in made.fresh:
            for key in self._origins.get(folded, ()):
                del origins[key]
        for after in made.becomes.values():
            if after.resource is not None and after.notes.origin is not None:
                origins[lowered(after.resource["id"])] = after.notes.origin
        return origins

    @cached_property
    def _origins(self) -> Mapping[str, Sequence[str]]:
        """The keys of `Snapshot.origins` by the ids that they are."""
        found: dict[str, list[str]] = {}
        for key in self._prepared.snapshot.origins:
            found.setdefault(folded_id(key), []).append(key)
        return found

    def touches(self, told: Told, earlier: Side, later: Side, found: Found, moment: datetime) -> Touches:
        """Return a function that tells whether what the policy of a finding of the earlier state reads is changed."""
        rows = list(_rows_between(earlier.changed, later.changed))
        differences = Differences(rows, earlier.prepared.estate.view)
        undecided = found.findings if rows else ()
        is_first = earlier.changed is None
        traced = ChainMap(*(reads.undecided for reads in told.reads)) if is_first else {}
        positions_of = partial(self._positions, earlier)
        return touches_of(undecided, earlier.prepared, moment, differences, positions_of, traced)

    def _positions(self, side: Side, key: tuple[str, str]) -> Sequence[int]:
        """The positions of subjects in a state, by what findings report."""
        known = self._reported.get(key, ())
        if side.changed is None:
            return known
        position, rows = side.changed.position, (*side.changed.resources, *side.changed.workloads)
        gone = {row.position for row in rows if row.before}
        kept = [position[at] for at in known if at in position and at not in gone]
        return [*kept, *(row.now for row in rows if row.after is not None and reported(row.after) == key)]

    @cached_property
    def _reported(self) -> Mapping[tuple[str, str], Sequence[int]]:
        """The positions of subjects by what findings report: two where a workload has the id of its resource."""
        found: dict[tuple[str, str], list[int]] = {}
        for at, subject in enumerate(self._prepared.estate.subjects):
            found.setdefault(reported(subject), []).append(at)
        return found

    def found(self, told: Told, side: Side, pairs: Pairs, moment: datetime) -> Found:
        """What is found of a state at a clock; `pairs` are positions in the state that was judged."""
        findings, uses, known = told.of(pairs, side.affected.before), told.uses, told.problems
        fresh: list[Problem] = []
        if side.changed is not None:
            after, covering = marked(judged(side.prepared, moment), told.in_force, self._homes(side.changed))
            findings += (finding for finding, _ in after)
            uses = _used(told, side.affected.before, covering) if told.in_force else uses
            rows = sorted(side.changed.resources, key=lambda row: row.key)
            fresh += _remarks(row.after for row in rows)
            known = known.difference(_remarks(row.before for row in rows)).union(fresh)
            come, gone = (
                self._unknown(subjects) for subjects in ([row.after for row in rows], [row.before for row in rows])
            )
            words = self._prepared.known_classifications
            left = gone.keys() - (self._prepared.unknown_classifications - gone + come)
            fresh += of_classifications(come, words)
            known = known.difference(of_classifications(left, words)).union(fresh)
        fresh += exempting.unused(told.in_force, uses)
        return Found(sorted(findings, key=order_of), known.union(fresh), fresh)

    def _unknown(self, subjects: Iterable[Resource | None]) -> Counter[str]:
        """The classifications of resources that are not known."""
        documents = (subject.document for subject in subjects if subject is not None)
        return unknown_classifications(documents, self._prepared.known_classifications)

    def _homes(self, changed: Changed) -> Mapping[tuple[str, str], str]:
        """What the scopes of exemptions are held against after changes."""
        rows = (*changed.resources, *changed.workloads)
        return ChainMap(homes_of(row.after for row in rows if row.after), self._telling.homes)


def _rows_between(earlier: Changed | None, later: Changed | None) -> Iterator[Row]:
    """The subjects that may differ between two states that changes have made of one; None is that one."""
    for name in ("resources", "workloads"):
        known: dict[str, Row] = {row.key: row for row in (getattr(earlier, name) if earlier else ())}
        for row in getattr(later, name) if later else ():
            before = known.pop(row.key).after if row.key in known else row.before
            yield from row_between(row.key, before, row.after)
        for row in known.values():
            yield from row_between(row.key, row.after, row.before)


def compared(earlier: Side, later: Side) -> Pairs:
    """The pairs by which two states are compared: what either changes, and all of what the later one names."""
    joined: Pairs = {}
    for pairs in (earlier.affected.before, later.affected.before, later.affected.same):
        for number, positions in pairs.items():
            joined[number] = joined[number] | positions if number in joined else positions
    return joined


def _used(told: Told, gone: Pairs, covering: Mapping[tuple[int, int], Sequence[str]]) -> Mapping[str, int]:
    """How many failures each exemption covers; none that covers none."""
    uses = Counter(told.uses)
    uses.subtract(one for pair in in_order(gone) for one in told.covering.get(pair, ()))
    uses.update(one for ids in covering.values() for one in ids)
    return +uses


def _remarks(subjects: Iterable[Resource | None]) -> list[Problem]:
    """What is said of resources as they are written, then of computes."""
    there = [subject for subject in subjects if subject is not None]
    computes = (subject for subject in there if subject.judged_type == COMPUTE_TYPE)
    said = [problem for subject in there for problem in subject.remarks]
    return said + [problem for one in computes for problem in of_compute(one.document, one.unreadable)]
