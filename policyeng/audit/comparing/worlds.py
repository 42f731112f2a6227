"""Judging again with some of what differs as it was before: what would be found, had only the rest changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple

from policyeng import exemptions as exempting
from policyeng.audit.comparing.items import (
    Entry,
    Item,
    Items,
    differing,
    edits_of,
    items_of,
    partly_reverted,
    snapshot_of,
)
from policyeng.audit.comparing.nouns import Kind
from policyeng.audit.comparing.paths import Edit
from policyeng.audit.comparing.splicing import Splicing
from policyeng.audit.comparing.states import Key, State, Status, keyed, status_of
from policyeng.errors import BundleError, EngineError, UsageError
from policyeng.evaluation import EvaluationContext, EvaluationOptions, evaluate_pairs, homes_of, prepare
from policyeng.facts.ids import folded_id
from policyeng.garbage import uncollected
from policyeng.models import Exemption, Snapshot, lowered


class Factor(NamedTuple):
    """One thing that differs between two states.

    Attributes:
        key: the key of the item of a snapshot, or the id of an exemption; empty for what there is one of.
        path: a place in the item; None for all of it.
    """

    kind: Kind
    key: str = ""
    path: str | None = None

    @property
    def item(self) -> Item:
        """What it stands under in a snapshot."""
        return Item(self.kind, self.key)


#: What does not stand in the snapshot.
_BESIDE = (Kind.POLICY, Kind.PARAMETERS, Kind.EXEMPTION, Kind.ENGINE, Kind.CLOCK)
#: What changes nothing of how a snapshot is made ready.
_WITHOUT = (Kind.EXEMPTION, Kind.ENGINE, Kind.CLOCK)


class Worlds:
    """The states between two others, each of them judged once, for the findings that are asked about."""

    def __init__(self, before: State, after: State, asked: Iterable[Key]) -> None:
        self.before, self.after = before, after
        self._asked = {key[:3] for key in asked}
        self._known: dict[frozenset[Factor], Mapping[Key, Status] | None] = {}
        self._prepared: dict[frozenset[Factor], EvaluationContext] = {}
        self._spliced: dict[frozenset[Factor], Splicing | None] = {}

    @cached_property
    def items(self) -> tuple[Items, Items]:
        """What the snapshots hold, before and after."""
        return items_of(self.before.snapshot), items_of(self.after.snapshot)

    @cached_property
    def differing(self) -> list[Item]:
        """The items of the snapshots that differ."""
        return differing(*self.items)

    @cached_property
    def in_force(self) -> tuple[Mapping[str, Exemption], Mapping[str, Exemption]]:
        """The exemptions in force, by id, before and after, whatever policies there are."""
        before, after = (
            {one.id: one for one in state.exemptions if one.created_at <= state.as_of < one.expires_at}
            for state in (self.before, self.after)
        )
        return before, after

    def edits(self, item: Item) -> list[Edit]:
        """Where an item differs, if it can be told by places."""
        if item.kind is Kind.SNAPSHOT:
            return []
        before, after = (side.get(item, ()) for side in self.items)
        return edits_of(before, after)

    def status(self, key: Key, undone: Set[Factor]) -> Status | None:
        """What would be found if some factors were as before.

        Raises:
            LookupError: nobody knows, because these policies, parameters or engines do not go together.
        """
        chosen = frozenset(undone)
        if chosen not in self._known:
            self._known[chosen] = self._judged(chosen)
        statuses = self._known[chosen]
        if statuses is None:
            raise LookupError
        return statuses.get(key)

    def undoes(self, key: Key, undone: Set[Factor], wanted: Status | None) -> bool:
        """Whether it would be found as it is wanted if some factors were as before."""
        try:
            return self.status(key, undone) == wanted
        except LookupError:
            return False

    @uncollected()
    def _judged(self, undone: frozenset[Factor]) -> Mapping[Key, Status] | None:
        """What would be found of all that is asked about."""
        kinds = {factor.kind for factor in undone}

        def side(kind: Kind) -> State:
            return self.before if kind in kinds else self.after

        exemptions = self._exemptions({factor.key for factor in undone if factor.kind is Kind.EXEMPTION})
        engine, as_of = side(Kind.ENGINE), side(Kind.CLOCK).as_of
        options = EvaluationOptions(as_of, engine=engine.engine, opa=engine.opa)
        try:
            with self._ready(undone) as prepared:
                said = evaluate_pairs(prepared, options)
                takes = {policy.id for policy in prepared.bundle.policies if policy.header.exemptable}
                in_force = [one for one in exemptions if one.policy in takes]
                homes = homes_of(prepared.estate.subjects) if in_force else {}
        except (BundleError, EngineError, UsageError):
            return None
        marked = [exempting.marked_by(finding, in_force, homes, _ignored) for finding in said]
        return {key: status for key, finding in keyed(marked).items() if (status := status_of(finding))}

    def _exemptions(self, undone: Collection[str]) -> list[Exemption]:
        """The exemptions in force, by their ids, those that are undone as they were before."""
        before, after = self.in_force
        chosen = {name: one for name, one in after.items() if name not in undone}
        chosen |= {name: one for name, one in before.items() if name in undone}
        return [chosen[name] for name in sorted(chosen)]

    @contextmanager
    def _ready(self, undone: frozenset[Factor]) -> Iterator[EvaluationContext]:
        """Have what is judged ready; clock, engine and exemptions change nothing of it."""
        resources = frozenset(factor for factor in undone if factor.kind is Kind.RESOURCE)
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
                (policy.id, lowered(subject.reported_type), folded_id(subject.reported_id)) in self._asked
            )
        )

    def _whole(self, undone: frozenset[Factor]) -> EvaluationContext:
        """A state made ready with all of its pairs."""
        if undone not in self._prepared:
            if len(self._prepared) >= _KEPT:
                del self._prepared[next(iter(self._prepared))]
            kinds = {factor.kind for factor in undone}
            bundle = (self.before if Kind.POLICY in kinds else self.after).bundle
            parameters = (self.before if Kind.PARAMETERS in kinds else self.after).parameters
            self._prepared[undone] = prepare(bundle, self._snapshot(undone), parameters)
        return self._prepared[undone]

    def _splicing(self, undone: frozenset[Factor]) -> Splicing | None:
        """What is the same in states that differ in resources; None where these are made ready one by one."""
        if undone not in self._spliced:
            while len(self._spliced) >= _KEPT:
                del self._spliced[next(iter(self._spliced))]
            prepared = self._whole(undone)
            self._spliced[undone] = Splicing(prepared, self._asked) if Splicing.fits(prepared) else None
        return self._spliced[undone]

    def _changes(self, undone: Iterable[Factor]) -> dict[Item, tuple[Entry, ...]]:
        """What stands under items of which some or all is as it was before."""
        before, after = self.items
        whole: set[Item] = set()
        places: dict[Item, set[str]] = {}
        for factor in undone:
            if factor.path is None:
                whole.add(factor.item)
            else:
                places.setdefault(factor.item, set()).add(factor.path)
        changes = {
            item: partly_reverted(after[item], (edit for edit in self.edits(item) if edit.path in paths))
            for item, paths in places.items()
        }
        return changes | {item: before.get(item, ()) for item in whole}

    def _snapshot(self, undone: Iterable[Factor]) -> Snapshot:
        changes = self._changes(factor for factor in undone if factor.kind not in _BESIDE)
        if not changes:
            return self.after.snapshot
        items = {**self.items[1], **changes}
        return snapshot_of(self.after.snapshot, {item: entries for item, entries in items.items() if entries})


#: How many snapshots are kept ready: the next question is often about the same one, at another clock.
_KEPT = 8


def _ignored(_: str) -> None:
    """Nobody asks here which exemptions are used."""
