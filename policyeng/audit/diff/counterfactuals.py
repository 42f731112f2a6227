"""Counterfactuals: evaluations with some of the differences between two states reverted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple

import orjson

from policyeng import exemptions as exempting
from policyeng._performance import uncollected
from policyeng.audit.diff.inputs import CauseKind, FindingKey, State, Status, index_findings, status_of
from policyeng.audit.diff.items import (
    Item,
    ItemEntry,
    Items,
    JsonDifference,
    edits_of,
    find_differences,
    items_of,
    revert_partly,
    snapshot_of,
)
from policyeng.errors import BundleError, EngineError, UsageError
from policyeng.evaluation import EvaluationContext, EvaluationOptions, evaluate_pairs, find_scopes, prepare
from policyeng.evaluation.changing_snapshot import ChangingSnapshot
from policyeng.evaluation.matching import Taking, selectors_of
from policyeng.evaluation.plan import PlannedPair, plan
from policyeng.evaluation.prepared_snapshot import Becomes, Notes, Resource
from policyeng.facts.arm_casing import Spellings, as_arm_reads
from policyeng.facts.ids import fold_id
from policyeng.frozen import replace
from policyeng.models import Exemption, Snapshot, lowered

#: What to evaluate: the id of a policy, and the lower-case type and folded id of the resource.
Asked = Collection[tuple[str, str, str]]
#: The entries of an item, if any.
Entries = tuple[ItemEntry, ...]


class Splicing:
    """A prepared snapshot with changing resources; only the requested findings are evaluated."""

    def __init__(self, prepared: EvaluationContext, asked: Asked) -> None:
        """Use a prepared snapshot with all of its pairs; `fits` returns whether it can be spliced."""
        self._snapshot = ChangingSnapshot(prepared)
        self._spellings = prepared.bundle.spellings
        numbers = {policy.id: number for number, policy in enumerate(prepared.bundle.policies)}
        self._policies: dict[tuple[str, str], list[int]] = {}
        for policy, kind, identity in asked:
            if policy in numbers:
                self._policies.setdefault((kind, identity), []).append(numbers[policy])
        subjects = prepared.estate.subjects
        self._positions = {at for at, subject in enumerate(subjects) if _key(subject) in self._policies}

    @staticmethod
    def fits(prepared: EvaluationContext) -> bool:
        """Return whether a snapshot can be spliced: it has no error, each id once, and no documents are evaluated."""
        snapshot, estate = prepared.snapshot, prepared.estate
        if any(problem.level == "error" for problem in estate.problems):
            return False
        if snapshot.documents or estate.gaps or any(one.input_form != "policy" for one in prepared.bundle.policies):
            return False
        view = estate.view
        held = {fold_id(str(resource.get("id"))) for resource in snapshot.resources}
        others = [fold_id(one.reported_id) for one in estate.subjects[len(view.resources) :]]
        workloads = others[: len(view.workloads)]
        whole = len(snapshot.resources) == len(view.resources) == len(held)
        return whole and len({*workloads}) == len(workloads) and held.isdisjoint(others[len(view.workloads) :])

    @contextmanager
    def after(self, changes: Mapping[Item, Entries]) -> Iterator[EvaluationContext | None]:
        """Prepare the snapshot with these resources; None if one of them cannot be evaluated."""
        becomes: dict[str, Becomes] = {}
        for item, entries in changes.items():
            made = _becomes(entries, self._spellings)
            if made is None:
                yield None
                return
            becomes[item.key] = made
        rows = self._snapshot.rows(becomes)
        with self._snapshot.changed(rows, self._snapshot.differences(rows)) as context:
            yield replace(context, planned=tuple(self._planned(context, {row.position for row in rows.all})))

    def _planned(self, context: EvaluationContext, changed: Set[int]) -> Iterator[PlannedPair]:
        """Yield the requested pairs, of unchanged and changed subjects."""
        wanted = dict[int, set[int]]()
        for at in self._positions | changed:
            subject = context.estate.subjects[at]
            numbers = self._policies.get(_key(subject), ())
            taking = Taking(subject)
            for number in numbers:
                judges = selectors_of(context.bundle.policies[number].header)
                if any(one.kind == subject.judged_type and taking.takes(one) for one in judges):
                    wanted.setdefault(number, set()).add(at)
        return plan(context.bundle, context.estate, wanted)


def _key(subject: Resource) -> tuple[str, str]:
    return lowered(subject.reported_type), fold_id(subject.reported_id)


def _becomes(entries: Entries, spellings: Spellings) -> Becomes | None:
    if not entries:
        return Becomes(None)
    if len(entries) > 1:
        return None
    (entry,) = entries
    named = all(isinstance(entry.document.get(name), str) and entry.document[name] for name in ("id", "type"))
    try:
        orjson.dumps(entry.document)
    except TypeError:  # a number that JSON has no room for
        return None
    if not named:
        return None
    spelled = as_arm_reads(entry.document, entry.document["type"], spellings)
    if spelled.twice or spelled.part is not entry.document:  # what is made ready notes the places of such members
        return None
    return Becomes(entry.document, Notes(entry.unreadable, entry.carried))


class StateFactor(NamedTuple):
    """One difference between two states.

    Attributes:
        key: the key of the item of a snapshot, or the id of an exemption; empty for single ones.
        path: a place in the item; None for the complete item.
    """

    kind: CauseKind
    key: str = ""
    path: str | None = None

    @property
    def item(self) -> Item:
        """The item in the snapshot."""
        return Item(self.kind, self.key)


#: The causes outside the snapshot.
_OUTSIDE_SNAPSHOT = (CauseKind.POLICY, CauseKind.PARAMETERS, CauseKind.EXEMPTION, CauseKind.ENGINE, CauseKind.CLOCK)
#: What changes nothing of how a snapshot is made ready.
_WITHOUT = (CauseKind.EXEMPTION, CauseKind.ENGINE, CauseKind.CLOCK)


class Counterfactuals:
    """The states between two others, each evaluated once for the requested findings."""

    def __init__(self, before: State, after: State, asked: Iterable[FindingKey]) -> None:
        self.before, self.after = before, after
        self._asked = {key[:3] for key in asked}
        self._known: dict[frozenset[StateFactor], Mapping[FindingKey, Status] | None] = {}
        self._prepared: dict[frozenset[StateFactor], EvaluationContext] = {}
        self._spliced: dict[frozenset[StateFactor], Splicing | None] = {}

    @cached_property
    def items(self) -> tuple[Items, Items]:
        """The items of both snapshots."""
        return items_of(self.before.snapshot), items_of(self.after.snapshot)

    @cached_property
    def differing(self) -> list[Item]:
        """The items of the snapshots that differ."""
        return find_differences(*self.items)

    @cached_property
    def in_force(self) -> tuple[Mapping[str, Exemption], Mapping[str, Exemption]]:
        """The active exemptions by id, before and after, of any policies."""
        before, after = (
            {one.id: one for one in state.exemptions if one.created_at <= state.as_of < one.expires_at}
            for state in (self.before, self.after)
        )
        return before, after

    def edits(self, item: Item) -> list[JsonDifference]:
        """Return the differences of an item, if they are at places."""
        if item.kind is CauseKind.SNAPSHOT:
            return []
        before, after = (side.get(item, ()) for side in self.items)
        return edits_of(before, after)

    def status(self, key: FindingKey, undone: Set[StateFactor]) -> Status | None:
        """Return the finding with some factors reverted.

        Raises:
            LookupError: not known, because these policies, parameters or engines are incompatible.
        """
        chosen = frozenset(undone)
        if chosen not in self._known:
            self._known[chosen] = self._judged(chosen)
        statuses = self._known[chosen]
        if statuses is None:
            raise LookupError
        return statuses.get(key)

    def undoes(self, key: FindingKey, undone: Set[StateFactor], wanted: Status | None) -> bool:
        """Check whether reverting some factors gives the wanted finding."""
        try:
            return self.status(key, undone) == wanted
        except LookupError:
            return False

    @uncollected()
    def _judged(self, undone: frozenset[StateFactor]) -> Mapping[FindingKey, Status] | None:
        """Evaluate the requested findings with some factors reverted."""
        kinds = {factor.kind for factor in undone}

        def side(kind: CauseKind) -> State:
            return self.before if kind in kinds else self.after

        exemptions = self._exemptions({factor.key for factor in undone if factor.kind is CauseKind.EXEMPTION})
        engine, as_of = side(CauseKind.ENGINE), side(CauseKind.CLOCK).as_of
        options = EvaluationOptions(as_of, engine=engine.engine, opa=engine.opa)
        try:
            with self._ready(undone) as prepared:
                findings = evaluate_pairs(prepared, options)
                takes = {policy.id for policy in prepared.bundle.policies if policy.header.exemptable}
                in_force = [one for one in exemptions if one.policy in takes]
                homes = find_scopes(prepared.estate.subjects) if in_force else {}
        except (BundleError, EngineError, UsageError):
            return None
        marked = [exempting.marked_by(finding, in_force, homes, _ignore_exemption_use) for finding in findings]
        return {key: status for key, finding in index_findings(marked).items() if (status := status_of(finding))}

    def _exemptions(self, undone: Collection[str]) -> list[Exemption]:
        """Return the active exemptions, with some reverted."""
        before, after = self.in_force
        chosen = {name: one for name, one in after.items() if name not in undone}
        chosen |= {name: one for name, one in before.items() if name in undone}
        return [chosen[name] for name in sorted(chosen)]

    @contextmanager
    def _ready(self, undone: frozenset[StateFactor]) -> Iterator[EvaluationContext]:
        """Prepare a state; clock, engine and exemptions do not affect it."""
        resources = frozenset(factor for factor in undone if factor.kind is CauseKind.RESOURCE)
        others = frozenset(factor for factor in undone if factor.kind not in _WITHOUT) - resources
        if resources and "opa" not in (self.before.engine, self.after.engine):
            splicing = self._splicing(others)
            if splicing is not None:
                with splicing.after(self._changes(resources)) as spliced:
                    if spliced is not None:
                        yield spliced
                        return
        yield self._whole(resources | others).only(
            lambda policy, subject: (
                (policy.id, lowered(subject.reported_type), fold_id(subject.reported_id)) in self._asked
            )
        )

    def _whole(self, undone: frozenset[StateFactor]) -> EvaluationContext:
        """Return a prepared state with all of its pairs."""
        if undone not in self._prepared:
            if len(self._prepared) >= _KEPT:
                del self._prepared[next(iter(self._prepared))]
            kinds = {factor.kind for factor in undone}
            bundle = (self.before if CauseKind.POLICY in kinds else self.after).bundle
            parameters = (self.before if CauseKind.PARAMETERS in kinds else self.after).parameters
            self._prepared[undone] = prepare(bundle, self._snapshot(undone), parameters)
        return self._prepared[undone]

    def _splicing(self, undone: frozenset[StateFactor]) -> Splicing | None:
        """Return the shared part of states that differ in resources; None if these are prepared one by one."""
        if undone not in self._spliced:
            while len(self._spliced) >= _KEPT:
                del self._spliced[next(iter(self._spliced))]
            prepared = self._whole(undone)
            self._spliced[undone] = Splicing(prepared, self._asked) if Splicing.fits(prepared) else None
        return self._spliced[undone]

    def _changes(self, undone: Iterable[StateFactor]) -> dict[Item, tuple[ItemEntry, ...]]:
        """Return the entries of items with reverted differences."""
        before, after = self.items
        whole: set[Item] = set()
        places: dict[Item, set[str]] = {}
        for factor in undone:
            if factor.path is None:
                whole.add(factor.item)
            else:
                places.setdefault(factor.item, set()).add(factor.path)
        changes = {
            item: revert_partly(after[item], (edit for edit in self.edits(item) if edit.path in paths))
            for item, paths in places.items()
        }
        return changes | {item: before.get(item, ()) for item in whole}

    def _snapshot(self, undone: Iterable[StateFactor]) -> Snapshot:
        changes = self._changes(factor for factor in undone if factor.kind not in _OUTSIDE_SNAPSHOT)
        if not changes:
            return self.after.snapshot
        items = {**self.items[1], **changes}
        return snapshot_of(self.after.snapshot, {item: entries for item, entries in items.items() if entries})


#: How many snapshots are kept ready: the next question is often about the same one, at another clock.
_KEPT = 8


def _ignore_exemption_use(_: str) -> None:
    """Ignore which exemptions are used."""
