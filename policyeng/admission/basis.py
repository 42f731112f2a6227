"""What decisions on changes of one state rest on: the state judged once, and per change only what it can affect."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from threading import Lock
from typing import NamedTuple

from policyeng import exemptions as exempting
from policyeng.admission.blame import sorted_out
from policyeng.admission.changes import Changes, Made, changes_of, held_of, made_of
from policyeng.admission.deciding import Grounds, brought, decided
from policyeng.admission.wholly import Judging, decided_wholly
from policyeng.bundle import Bundle
from policyeng.engines import Pair, embedded, engine_version, judge
from policyeng.evaluation import Prepared, homes_of, prepare, problems_of
from policyeng.evaluation.affected import Affecting, Pairs
from policyeng.evaluation.changing import Changed, Layout
from policyeng.evaluation.findings import findings_by_pair, order_of
from policyeng.evaluation.plan import plan
from policyeng.evaluation.remarks import of_compute
from policyeng.facts.computes import COMPUTE_TYPE
from policyeng.facts.ids import folded_id
from policyeng.garbage import uncollected
from policyeng.models import (
    BundleRef,
    Change,
    Decision,
    EngineRef,
    Exemption,
    Finding,
    JsonObject,
    Outcome,
    Problem,
    Snapshot,
    SnapshotRef,
)

#: So many clocks with their exemptions are kept; requests beside each other have the same one, or one that follows.
_KEPT = 4

_Judged = list[tuple[Finding, Pair]]


class _Told(NamedTuple):
    """What is found before any change at one clock, with the marks of exemptions.

    Attributes:
        findings: by policy and position of the subject.
        standing: failures and errors that no exemption accepts, sorted.
        in_force: the exemptions that count.
        covering: by policy and position, the ids of the exemptions that cover it.
        uses: how many failures each exemption covers.
        problems: all that is said of the snapshot and of the exemptions.
    """

    findings: Mapping[tuple[int, int], Finding]
    standing: Sequence[tuple[Finding, Pair]]
    in_force: Sequence[Exemption]
    covering: Mapping[tuple[int, int], Sequence[str]]
    uses: Mapping[str, int]
    problems: frozenset[Problem]


class Basis:
    """A bundle and a state that changes are judged against, ready for many of them; threads may share it.

    It decides as `admit` does, which keeps the last few of these; whoever decides on one state for long holds one. The
    snapshot must not be changed meanwhile.
    """

    def __init__(self, bundle: Bundle, snapshot: Snapshot, parameters: Mapping[str, JsonObject] | None = None) -> None:
        """Make a state ready.

        Raises:
            UsageError: a parameter does not exist or does not fit its schema.
        """
        self.bundle, self.snapshot, self.parameters = bundle, snapshot, parameters
        self._prepared = prepare(bundle, snapshot, parameters)
        self._told: Mapping[tuple[datetime, tuple[int, ...]], tuple[tuple[Exemption, ...], _Told]] = {}
        self._without_clock: _Judged | None = None
        self._lock = Lock()

    def decide(self, change: Changes, judging: Judging) -> Decision:
        """Decide whether a change of the state may be made.

        Raises:
            InputError, UsageError, EngineError: as `admit` says.
        """
        changes = changes_of(change)
        if judging.engine == "embedded" and not self._is_odd:
            made = made_of(changes, self._held, self.snapshot)
            if self._stated.isdisjoint({*made.becomes, *made.changed}):
                return self._decided(changes, made, judging)
        return decided_wholly(self.bundle, self.snapshot, changes, judging, self.parameters)

    @uncollected()
    def _decided(self, changes: Sequence[Change], made: Made, judging: Judging) -> Decision:
        gate = judging.gate(self.bundle, self.snapshot)
        as_of = judging.as_of
        moment = as_of.astimezone(UTC) if as_of.tzinfo else as_of.replace(tzinfo=UTC)
        told = self._told_at(moment, tuple(judging.exemptions))
        layout, affecting = self._layout
        changed = layout.changed(made.becomes)
        named = [layout.by_folded[key] for key in made.changed if key in layout.by_folded]
        affected = affecting.by(changed, named)
        judged = _judged(self._ready(changed, made, affected.after), moment)
        before = _of_pairs(told, affected.before)
        after, covering = _marked(judged, told.in_force, self._homes(changed))
        said = sorted_out(before, [finding for finding, _ in after], made.changed)
        problems = [*made.problems, *_remarks(changed)]
        if told.in_force:
            uses = Counter(told.uses)
            uses.subtract(one for pair in _pairs(affected.before) for one in told.covering.get(pair, ()))
            uses.update(one for ids in covering.values() for one in ids)
            problems += exempting.unused(told.in_force, {one for one, count in uses.items() if count})
        elsewhere = [finding for finding, pair in told.standing if not _is_in(affected.before, pair)]
        if said.elsewhere:
            elsewhere = sorted([*elsewhere, *said.elsewhere], key=order_of)
        said = said._replace(elsewhere=elsewhere)
        return decided(
            changes, self._grounds._replace(as_of=moment), said, brought(told.problems, problems, made.changed), gate
        )

    def _ready(self, changed: Changed, made: Made, pairs: Pairs) -> Prepared:
        """The state after the change, with the pairs to judge again."""
        prepared = changed.prepared
        planned = tuple(plan(self.bundle, prepared.estate, prepared.parameters, pairs))
        snapshot = self.snapshot
        if snapshot.texts and made.fresh:  # where fields stand is asked of them
            gone = {key for folded in made.fresh for key in self._origins.get(folded, ())}
            origins = {key: origin for key, origin in snapshot.origins.items() if key not in gone}
            snapshot = snapshot.model_copy(update={"origins": origins})
        return Prepared(self.bundle, snapshot, prepared.parameters, prepared.estate, planned, prepared.made)

    @cached_property
    def _origins(self) -> Mapping[str, Sequence[str]]:
        """The keys of `Snapshot.origins` by the ids that they are."""
        found: dict[str, list[str]] = {}
        for key in self.snapshot.origins:
            found.setdefault(folded_id(key), []).append(key)
        return found

    def _homes(self, changed: Changed) -> Mapping[tuple[str, str], str]:
        """What the scopes of exemptions are held against after the change."""
        rows = (*changed.resources, *changed.workloads)
        return ChainMap(homes_of(row.after for row in rows if row.after), self._homes_before)

    @cached_property
    def _homes_before(self) -> dict[tuple[str, str], str]:
        return homes_of(self._prepared.estate.subjects)

    @cached_property
    def _layout(self) -> tuple[Layout, Affecting]:
        layout = Layout(self._prepared)
        embedded.documents_of(self._prepared.work(datetime.min))  # of which changed copies are made
        return layout, Affecting(layout)

    @cached_property
    def _held(self) -> Mapping[str, JsonObject]:
        return held_of(self.snapshot)

    @cached_property
    def _stated(self) -> frozenset[str]:
        """The ids of what is judged and is no resource of the snapshot: approvals, and workloads that stand alone."""
        others = self._prepared.estate.subjects[len(self._prepared.estate.view.resources) :]
        return frozenset(folded_id(subject.reported_id) for subject in others) - frozenset(self._held)

    @cached_property
    def _is_odd(self) -> bool:
        """Whether changes are decided wholly: policies judge documents, or ids do not tell subjects apart."""
        estate, held = self._prepared.estate, len(self._held)
        if self.snapshot.documents or any(policy.input_form != "policy" for policy in self.bundle.policies):
            return True
        ids = [folded_id(subject.reported_id) for subject in estate.subjects[len(estate.view.resources) :]]
        named = len(self.snapshot.resources) == len(estate.view.resources) == held
        workloads = ids[: len(estate.view.workloads)]
        approvals = ids[len(workloads) :]
        apart = len(set(workloads)) == len(workloads) and len(set(approvals)) == len(approvals)
        return not (named and apart and self._held.keys().isdisjoint(approvals))

    @cached_property
    def _grounds(self) -> Grounds:
        """What every decision says of the state; the clock is that of each."""
        bundle, snapshot = self.bundle, self.snapshot
        return Grounds(
            BundleRef(name=bundle.name, revision=bundle.revision, digest=bundle.digest),
            SnapshotRef(scope=snapshot.scope, taken_at=snapshot.taken_at, digest=self._prepared.estate.digest),
            datetime.min.replace(tzinfo=UTC),
            EngineRef(name="embedded", version=engine_version("embedded")),
        )

    def _told_at(self, moment: datetime, exemptions: tuple[Exemption, ...]) -> _Told:
        """What is found before any change; kept for the last few clocks."""
        key = (moment, tuple(map(id, exemptions)))
        known = self._told.get(key)
        if known is not None:
            return known[1]
        with self._lock:
            told = self._tell(moment, exemptions)
            self._told = {**dict([*self._told.items()][1 - _KEPT :]), key: (exemptions, told)}
        return told

    def _tell(self, moment: datetime, exemptions: Sequence[Exemption]) -> _Told:
        clocked = _judged(self._only(clock=True), moment)
        findings = sorted([*self._timeless(moment), *clocked], key=lambda entry: order_of(entry[0]))
        in_force, notes = exempting.in_force_of(exemptions, self.bundle.policies, moment)
        marked, covering = _marked(findings, in_force, self._homes_before)
        uses = Counter(one for ids in covering.values() for one in ids)
        said = [*problems_of(self._prepared), *notes, *exempting.unused(in_force, uses)]
        standing = [entry for entry in marked if _stands(entry[0])]
        by_pair = {(pair.policy, pair.subject): finding for finding, pair in marked}
        return _Told(by_pair, standing, in_force, covering, uses, frozenset(said))

    def _timeless(self, moment: datetime) -> _Judged:
        """The findings of the policies that cannot read the clock, which are the same at any."""
        if self._without_clock is None:
            self._without_clock = _judged(self._only(clock=False), moment)
        return self._without_clock

    def _only(self, *, clock: bool) -> Prepared:
        reaches = self.bundle.reaches
        planned = [entry for entry in self._prepared.planned if reaches[entry.pair.policy].clock is clock]
        return replace(self._prepared, planned=planned)


def _judged(prepared: Prepared, moment: datetime) -> _Judged:
    return findings_by_pair(prepared, judge(prepared.work(moment)))


def _marked(
    judged: _Judged, in_force: Sequence[Exemption], homes: Mapping[tuple[str, str], str]
) -> tuple[_Judged, dict[tuple[int, int], list[str]]]:
    """The findings with the marks of exemptions, and by pair the ids of those that cover it."""
    if not in_force:
        return judged, {}
    covering: dict[tuple[int, int], list[str]] = {}
    marked = []
    for finding, pair in judged:
        ids: list[str] = []
        marked.append((exempting.marked_by(finding, in_force, homes, ids.append), pair))
        if ids:
            covering[pair.policy, pair.subject] = ids
    return marked, covering


def _stands(finding: Finding) -> bool:
    return finding.outcome in (Outcome.FAIL, Outcome.ERROR) and finding.exemption is None


def _pairs(pairs: Pairs) -> Iterator[tuple[int, int]]:
    """In the order of a plan."""
    return ((number, at) for number in sorted(pairs) for at in sorted(pairs[number]))


def _of_pairs(told: _Told, pairs: Pairs) -> list[Finding]:
    """What was found of some pairs, sorted."""
    found = (told.findings.get(pair) for pair in _pairs(pairs))
    return sorted((finding for finding in found if finding is not None), key=order_of)


def _is_in(pairs: Pairs, pair: Pair) -> bool:
    return pair.subject in pairs.get(pair.policy, ())


def _remarks(changed: Changed) -> Iterator[Problem]:
    """What is said of computes that changed or came."""
    for row in sorted(changed.resources, key=lambda row: row.key):
        if row.after is not None and row.after.judged_type == COMPUTE_TYPE:
            yield from of_compute(row.after.document, row.after.unreadable)
