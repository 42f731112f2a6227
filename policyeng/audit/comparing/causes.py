"""What a flip comes from: the smallest sets of what differs that undo it when they are as before. Proved, not guessed.

Of a flip the search begins with few units: the judged resource, its workspace, all else in the snapshot as one, and
the policy, its parameters, the exemptions, the engine and the clock. What is found to undo it is then taken apart, down
to single places of a resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from policyeng.audit.comparing.items import Item
from policyeng.audit.comparing.nouns import Cause, Kind
from policyeng.audit.comparing.smallest import smallest
from policyeng.audit.comparing.states import Key, State, Status
from policyeng.audit.comparing.told_causes import told
from policyeng.audit.comparing.worlds import Factor, Worlds
from policyeng.bundle import Policy
from policyeng.facts.ids import workspace_of
from policyeng.models import lowered

#: Factors that are undone together.
_Unit = frozenset[Factor]
#: No more alternatives than these are told of one flip.
_MOST_TOLD = 5


class Search:
    """Looks for the causes of flips between two states."""

    def __init__(self, worlds: Worlds) -> None:
        self._worlds = worlds

    def causes(self, key: Key, wanted: Status | None) -> tuple[tuple[Cause, ...], ...]:
        """The causes of one flip, none where judging again does not give what was found before.

        Args:
            key: what flipped.
            wanted: what was found of it before.
        """
        units = self._units(key, narrow=True)
        if not self._undoes(key, wanted, units):
            units = self._units(key, narrow=False)
            if not self._undoes(key, wanted, units):
                return ()
        sets = smallest(units, lambda chosen: self._undoes(key, wanted, chosen))
        found: dict[frozenset[Factor], None] = {}
        for chosen in sets[:_MOST_TOLD]:
            for apart in self._apart(key, wanted, sorted(chosen, key=units.index)):
                found.setdefault(apart)
        return tuple(tuple(told(self._worlds, key, apart)) for apart in list(found)[:_MOST_TOLD])

    def _undoes(self, key: Key, wanted: Status | None, units: Iterable[_Unit]) -> bool:
        return self._worlds.undoes(key, frozenset[Factor]().union(*units), wanted)

    def _apart(self, key: Key, wanted: Status | None, units: Sequence[_Unit]) -> Iterator[frozenset[Factor]]:
        """Units that undo together, each taken apart as far as it goes; of the first there may be several ways."""
        first, *others = units
        ways = self._ways(key, wanted, first, others)
        for way in ways:
            fixed: list[_Unit] = [way]
            for number, unit in enumerate(others):
                fixed.append(self._ways(key, wanted, unit, [*fixed, *others[number + 1 :]])[0])
            yield frozenset[Factor]().union(*fixed)

    def _ways(self, key: Key, wanted: Status | None, unit: _Unit, beside: Sequence[_Unit]) -> list[_Unit]:
        """The smallest parts of a unit that undo with others beside: first of its factors, then of their places."""
        sets = self._parts(key, wanted, sorted(unit), beside) if len(unit) > 1 else [unit]
        ways: list[_Unit] = []
        for chosen in sets[:_MOST_TOLD]:
            factors = sorted(chosen)
            if len(factors) == 1:
                ways += self._places(key, wanted, factors[0], beside)
                continue
            kept = [frozenset([factor]) for factor in factors]
            for number, factor in enumerate(factors):
                kept[number] = self._places(key, wanted, factor, [*beside, *kept[:number], *kept[number + 1 :]])[0]
            ways.append(frozenset[Factor]().union(*kept))
        return ways

    def _places(self, key: Key, wanted: Status | None, factor: Factor, beside: Sequence[_Unit]) -> list[_Unit]:
        """The smallest sets of places of one item that undo with others beside; all of it where no places tell."""
        places = [factor._replace(path=edit.path) for edit in self._worlds.edits(factor.item)]
        whole = [frozenset([factor])]
        if not places or not self._undoes(key, wanted, [frozenset(places), *beside]):
            return whole
        return self._parts(key, wanted, places, beside)

    def _parts(
        self, key: Key, wanted: Status | None, factors: Sequence[Factor], beside: Sequence[_Unit]
    ) -> list[_Unit]:
        return smallest(factors, lambda chosen: self._undoes(key, wanted, [chosen, *beside]))

    def _units(self, key: Key, *, narrow: bool) -> list[_Unit]:
        """What may be a cause of a flip; with `narrow` without what its policy surely does not read."""
        worlds = self._worlds
        before, after = worlds.before, worlds.after
        own, workspace, others = _by_nearness(key, worlds.differing)
        units = [frozenset(map(_factor, items)) for items in (own, workspace) if items]
        if others and not (narrow and _reads_nothing_else(key, (before, after))):
            units.append(frozenset(map(_factor, others)))
        if before.bundle.digest != after.bundle.digest or _policy(key, before) is None or _policy(key, after) is None:
            units.append(frozenset([Factor(Kind.POLICY)]))
        if before.parameters.get(key.policy, {}) != after.parameters.get(key.policy, {}):
            units.append(frozenset([Factor(Kind.PARAMETERS)]))
        units += [frozenset([Factor(Kind.EXEMPTION, name)]) for name in self._exemptions(key)]
        if before.engine != after.engine:
            units.append(frozenset([Factor(Kind.ENGINE)]))
        if before.as_of != after.as_of:
            units.append(frozenset([Factor(Kind.CLOCK)]))
        return units

    def _exemptions(self, key: Key) -> list[str]:
        """The exemptions of the policy that are not in force alike on both sides."""
        before, after = self._worlds.in_force
        names = sorted(name for name in {**before, **after} if before.get(name) != after.get(name))
        return [name for name in names if (before.get(name) or after[name]).policy == key.policy]


def _factor(item: Item) -> Factor:
    return Factor(item.kind, item.key)


def _by_nearness(key: Key, items: Iterable[Item]) -> tuple[list[Item], list[Item], list[Item]]:
    """Items that differ: what is judged itself, its workspace, and the others."""
    home = workspace_of(key.resource)
    own, workspace, others = list[Item](), list[Item](), list[Item]()
    for item in items:
        if item.key == key.resource and item.kind is not Kind.SNAPSHOT:
            own.append(item)
        elif item.kind is Kind.RESOURCE and item.key == home:
            workspace.append(item)
        else:
            others.append(item)
    return own, workspace, others


def _reads_nothing_else(key: Key, states: Iterable[State]) -> bool:
    """Whether the policy, on both sides, surely sees nothing but what it judges and its workspace."""
    for state in states:
        for policy, reach in zip(state.bundle.policies, state.bundle.reaches, strict=True):
            if policy.id == key.policy and (reach.others or _is_derived(policy)):
                return False
    return True


def _is_derived(policy: Policy) -> bool:
    """Whether a policy evaluates what is derived from several resources."""
    return any(lowered(judged.type) == "workload" for judged in policy.header.judges)


def _policy(key: Key, state: State) -> Policy | None:
    return next((policy for policy in state.bundle.policies if policy.id == key.policy), None)
