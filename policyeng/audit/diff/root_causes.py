"""Causes of a flip: the smallest sets of differences that undo it if reverted, verified by evaluation.

The search begins with few units: the resource, its workspace, the rest of the snapshot, the policy, its parameters,
the exemptions, the engine and the clock. Units that undo the flip are then divided, down to places of a resource.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import combinations, islice
from math import comb
from typing import TypeVar

import orjson

from policyeng.audit.diff.counterfactuals import Counterfactuals, StateFactor
from policyeng.audit.diff.inputs import Became, Cause, CauseKind, FindingKey, PathChange, State, Status
from policyeng.audit.diff.items import Item, edits, mask_difference
from policyeng.bundle import Policy
from policyeng.engines import engine_version
from policyeng.facts.ids import workspace_of
from policyeng.models import lowered
from policyeng.report.phrases import rfc3339

#: The maximum number of places listed per item; the snapshots have all of them.
_MOST_PATHS = 50


def describe_causes(worlds: Counterfactuals, key: FindingKey, factors: Iterable[StateFactor]) -> Iterator[Cause]:
    """Yield the cause of each reverted item, with its places."""
    places: dict[StateFactor, list[str]] = {}
    for factor in sorted(factors, key=lambda one: (list(CauseKind).index(one.kind), one.key, one.path or "")):
        found = places.setdefault(factor._replace(path=None), [])
        if factor.path is not None:
            found.append(factor.path)
    for factor, paths in places.items():
        yield _describe_cause(worlds, key, factor, paths)


def _describe_cause(worlds: Counterfactuals, key: FindingKey, factor: StateFactor, paths: list[str]) -> Cause:
    before, after = worlds.before, worlds.after
    if factor.kind is CauseKind.POLICY:
        return _policy_cause(before, after, key.policy)
    if factor.kind is CauseKind.PARAMETERS:
        given = edits(before.parameters.get(key.policy, {}), after.parameters.get(key.policy, {}))
        return Cause(kind=factor.kind, change="changed", subject=key.policy, paths=tuple(map(mask_difference, given)))
    if factor.kind is CauseKind.EXEMPTION:
        return _exemption(worlds, factor.key)
    if factor.kind is CauseKind.ENGINE:
        versions = [f"{state.engine} {engine_version(state.engine, state.opa)}" for state in (before, after)]
        return Cause(kind=factor.kind, change="changed", before=versions[0], after=versions[1])
    if factor.kind is CauseKind.CLOCK:
        return Cause(kind=factor.kind, change="changed", before=rfc3339(before.as_of), after=rfc3339(after.as_of))
    return _item(worlds, factor.item, paths)


def _policy_cause(before: State, after: State, policy_id: str) -> Cause:
    """Return a changed policy, or its shared code and data with their differences."""
    digests = [digest_of(state, policy_id) for state in (before, after)]
    if digests[0] != digests[1]:
        change = _change(*digests)
        return Cause(kind=CauseKind.POLICY, change=change, subject=policy_id, before=digests[0], after=digests[1])
    paths = islice(map(mask_difference, edits(before.bundle.data, after.bundle.data)), _MOST_PATHS)
    digests = [state.bundle.digest for state in (before, after)]
    name = after.bundle.name
    return Cause(
        kind=CauseKind.LIBRARY, change="changed", subject=name, paths=tuple(paths), before=digests[0], after=digests[1]
    )


def _item(worlds: Counterfactuals, item: Item, paths: list[str]) -> Cause:
    """Return a cause in the snapshot, with the relevant places, or all places."""
    before, after = (side.get(item, ()) for side in worlds.items)
    name = (after or before)[0].name
    if not before or not after:
        return Cause(kind=item.kind, change=_change(before, after), subject=name)
    known = edits(before[0].document, after[0].document)
    changes = [mask_difference(edit) for edit in known if not paths or edit.path in paths]
    if (before[0].unreadable, before[0].carried) != (after[0].unreadable, after[0].carried):
        changes += _find_readable_places(before[0].unreadable, after[0].unreadable)
    return Cause(kind=item.kind, change="changed", subject=name, paths=tuple(changes[:_MOST_PATHS]))


def _find_readable_places(before: Iterable[str], after: Iterable[str]) -> Iterator[PathChange]:
    """Yield the places that only one side can read."""
    for path in sorted({*before} ^ {*after}):
        sides = ["cannot be read" if path in side else "can be read" for side in (before, after)]
        yield PathChange(path=path, change="changed", before=sides[0], after=sides[1])


def _exemption(worlds: Counterfactuals, name: str) -> Cause:
    before, after = (side.get(name) for side in worlds.in_force)
    ends = [rfc3339(one.expires_at) if one else "" for one in (before, after)]
    change: Became = "changed"
    if before is None:
        change = "began"
    elif after is None:
        change = "lapsed" if _has_lapsed(worlds, name) else "ended"
    return Cause(kind=CauseKind.EXEMPTION, change=change, subject=name, before=ends[0], after=ends[1])


def _has_lapsed(worlds: Counterfactuals, name: str) -> bool:
    """Check whether an exemption has expired. Stores contain only active ones, so the earlier run can have it."""
    stated = {one.id: one for one in (*worlds.before.exemptions, *worlds.after.exemptions)}
    return stated[name].expires_at <= worlds.after.as_of


def _change(before: object, after: object) -> Became:
    return "came" if not before else "went" if not after else "changed"


def digest_of(state: State, policy_id: str) -> str:
    """Return the SHA-256 of a policy with its header; empty if it is not active."""
    policy = next((policy for policy in state.bundle.policies if policy.id == policy_id), None)
    if policy is None:
        return ""
    digest = hashlib.sha256(orjson.dumps(policy.header.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS))
    if policy.python is not None:
        digest.update(policy.python.text)
    for path, source in state.bundle.modules:
        if path == policy.file:
            digest.update(source.encode())
    return digest.hexdigest()


_Subset = TypeVar("_Subset", bound=Hashable)

#: How many sets are tried before a set is taken of which nothing can be left out, though another may be smaller.
MOST = 96


def find_smallest_sets(
    units: Sequence[_Subset], undoes: Callable[[frozenset[_Subset]], bool], most: int = MOST
) -> list[frozenset[_Subset]]:
    """Return every smallest set that undoes a flip, in the order of the units.

    Args:
        units: the differences, which undo the flip together.
        undoes: returns whether a set undoes the flip; deterministic.
        most: the largest number of tests. Beyond it, the result is one set of which no member can be omitted, but which
            might not be the smallest.
    """
    tried = 0
    for size in range(1, len(units)):
        tried += comb(len(units), size)
        if tried > most:
            return [_shrink(frozenset(units), units, undoes)]
        found = [chosen for chosen in map(frozenset, combinations(units, size)) if undoes(chosen)]
        if found:
            return found
    return [frozenset(units)]


def _shrink(
    whole: frozenset[_Subset], units: Sequence[_Subset], undoes: Callable[[frozenset[_Subset]], bool]
) -> frozenset[_Subset]:
    """Remove the unneeded members of a set: first halves, then quarters, then single members.

    Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002 (ddmin, complements).
    """
    kept = [unit for unit in units if unit in whole]
    size = len(kept)
    while size:
        size = max(size // 2, 1)
        before, at = len(kept), 0
        while at < len(kept):
            fewer = kept[:at] + kept[at + size :]
            if fewer and undoes(frozenset(fewer)):
                kept = fewer
            else:
                at += size
        if size == 1 and len(kept) == before:
            break
    return frozenset(kept)


#: Factors that are undone together.
_Unit = frozenset[StateFactor]
#: The maximum number of alternative causes per flip.
_MOST_ALTERNATIVES = 5


class CauseSearch:
    """A search for the causes of flips between two states."""

    def __init__(self, worlds: Counterfactuals) -> None:
        self._worlds = worlds

    def causes(self, key: FindingKey, wanted: Status | None) -> tuple[tuple[Cause, ...], ...]:
        """Return the causes of one flip; none if another evaluation does not reproduce the earlier finding.

        Args:
            key: the key of the finding.
            wanted: the earlier finding.
        """
        units = self._units(key, narrow=True)
        if not self._undoes(key, wanted, units):
            units = self._units(key, narrow=False)
            if not self._undoes(key, wanted, units):
                return ()
        sets = find_smallest_sets(units, lambda chosen: self._undoes(key, wanted, chosen))
        found: dict[frozenset[StateFactor], None] = {}
        for chosen in sets[:_MOST_ALTERNATIVES]:
            for apart in self._apart(key, wanted, sorted(chosen, key=units.index)):
                found.setdefault(apart)
        return tuple(tuple(describe_causes(self._worlds, key, apart)) for apart in list(found)[:_MOST_ALTERNATIVES])

    def _undoes(self, key: FindingKey, wanted: Status | None, units: Iterable[_Unit]) -> bool:
        return self._worlds.undoes(key, frozenset[StateFactor]().union(*units), wanted)

    def _apart(
        self, key: FindingKey, wanted: Status | None, units: Sequence[_Unit]
    ) -> Iterator[frozenset[StateFactor]]:
        """Units that undo together, each taken apart as far as it goes; of the first there may be several ways."""
        first, *others = units
        ways = self._ways(key, wanted, first, others)
        for way in ways:
            fixed: list[_Unit] = [way]
            for number, unit in enumerate(others):
                fixed.append(self._ways(key, wanted, unit, [*fixed, *others[number + 1 :]])[0])
            yield frozenset[StateFactor]().union(*fixed)

    def _ways(self, key: FindingKey, wanted: Status | None, unit: _Unit, others: Sequence[_Unit]) -> list[_Unit]:
        """Return the smallest parts of a unit that undo a flip with other units: factors first, then places."""
        sets = self._parts(key, wanted, sorted(unit), others) if len(unit) > 1 else [unit]
        ways: list[_Unit] = []
        for chosen in sets[:_MOST_ALTERNATIVES]:
            factors = sorted(chosen)
            if len(factors) == 1:
                ways += self._places(key, wanted, factors[0], others)
                continue
            kept = [frozenset([factor]) for factor in factors]
            for number, factor in enumerate(factors):
                kept[number] = self._places(key, wanted, factor, [*others, *kept[:number], *kept[number + 1 :]])[0]
            ways.append(frozenset[StateFactor]().union(*kept))
        return ways

    def _places(
        self, key: FindingKey, wanted: Status | None, factor: StateFactor, others: Sequence[_Unit]
    ) -> list[_Unit]:
        """Return the smallest sets of places of an item that undo a flip with other units, or the complete item."""
        places = [factor._replace(path=edit.path) for edit in self._worlds.edits(factor.item)]
        whole = [frozenset([factor])]
        if not places or not self._undoes(key, wanted, [frozenset(places), *others]):
            return whole
        return self._parts(key, wanted, places, others)

    def _parts(
        self, key: FindingKey, wanted: Status | None, factors: Sequence[StateFactor], others: Sequence[_Unit]
    ) -> list[_Unit]:
        return find_smallest_sets(factors, lambda chosen: self._undoes(key, wanted, [chosen, *others]))

    def _units(self, key: FindingKey, *, narrow: bool) -> list[_Unit]:
        """Return the possible causes of a flip; with `narrow`, without those that the policy does not read."""
        worlds = self._worlds
        before, after = worlds.before, worlds.after
        own, workspace, others = _by_nearness(key, worlds.differing)
        units = [frozenset(map(_factor, items)) for items in (own, workspace) if items]
        if others and not (narrow and _reads_nothing_else(key, (before, after))):
            units.append(frozenset(map(_factor, others)))
        if before.bundle.digest != after.bundle.digest or _policy(key, before) is None or _policy(key, after) is None:
            units.append(frozenset([StateFactor(CauseKind.POLICY)]))
        if before.parameters.get(key.policy, {}) != after.parameters.get(key.policy, {}):
            units.append(frozenset([StateFactor(CauseKind.PARAMETERS)]))
        units += [frozenset([StateFactor(CauseKind.EXEMPTION, name)]) for name in self._exemptions(key)]
        if before.engine != after.engine:
            units.append(frozenset([StateFactor(CauseKind.ENGINE)]))
        if before.as_of != after.as_of:
            units.append(frozenset([StateFactor(CauseKind.CLOCK)]))
        return units

    def _exemptions(self, key: FindingKey) -> list[str]:
        """Return the exemptions of the policy that differ between the sides."""
        before, after = self._worlds.in_force
        names = sorted(name for name in {**before, **after} if before.get(name) != after.get(name))
        return [name for name in names if (before.get(name) or after[name]).policy == key.policy]


def _factor(item: Item) -> StateFactor:
    return StateFactor(item.kind, item.key)


def _by_nearness(key: FindingKey, items: Iterable[Item]) -> tuple[list[Item], list[Item], list[Item]]:
    """Divide differing items into those of the resource, its workspace, and others."""
    home = workspace_of(key.resource)
    own, workspace, others = list[Item](), list[Item](), list[Item]()
    for item in items:
        if item.key == key.resource and item.kind is not CauseKind.SNAPSHOT:
            own.append(item)
        elif item.kind is CauseKind.RESOURCE and item.key == home:
            workspace.append(item)
        else:
            others.append(item)
    return own, workspace, others


def _reads_nothing_else(key: FindingKey, states: Iterable[State]) -> bool:
    """Check whether the policy, on both sides, reads only the resource and its workspace."""
    for state in states:
        for policy, reach in zip(state.bundle.policies, state.bundle.reaches, strict=True):
            if policy.id == key.policy and (reach.others or _is_derived(policy)):
                return False
    return True


def _is_derived(policy: Policy) -> bool:
    """Check whether a policy evaluates workloads, which are derived from several resources."""
    return any(lowered(judged.type) == "workload" for judged in policy.header.judges)


def _policy(key: FindingKey, state: State) -> Policy | None:
    return next((policy for policy in state.bundle.policies if policy.id == key.policy), None)
