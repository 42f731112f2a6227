"""Further choices, where those of a class are not enough: what the denials of the policies themselves ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod

import orjson

from policyeng.bundle import Policy
from policyeng.bundle.header_parts import WORKSPACE
from policyeng.evaluation.pointers import has_value, overlap
from policyeng.facts.ids import workspace_of
from policyeng.models import Denial, JsonObject
from policyeng.strict.json_pointer import escaped
from policyeng.verify.drawing.estates import Estates as DrawnEstates
from policyeng.verify.drawing.vocabulary import Words
from policyeng.verify.observing import observe
from policyeng.verify.satisfiability.estates import REMOVED, Assignment, Edit, Estates
from policyeng.verify.satisfiability.judging import Reason
from policyeng.verify.satisfiability.searching import Search, Tried

#: What names a resource and says what it is; no policy asks for another one.
_KEPT = ("/id", "/type", "/name")
_MOST_VALUES, _MOST_CONSTANTS = 12, 6
#: How many further estates are judged at most, and how often denials of further estates are asked again.
_MOST, _ROUNDS = 4000, 3
#: By the place of a resource, the values that may stand there: in words, and as edits.
_Places = dict[tuple[str, str], dict[str, object]]


@dataclass
class Extension:
    """What was tried beyond the choices of a class.

    Attributes:
        choices: the further choices, such as `workspace /tags/owner`, in order.
        begun: how many estates they were added to: one for each smallest set of policies that fail.
        tried: how many estates were judged.
        left_out: values that were not tried, because there would have been too many estates.
    """

    choices: list[str] = field(default_factory=list)
    begun: int = 0
    tried: int = 0
    left_out: int = 0


def extend(search: Search) -> Extension:
    """Try what the denials ask for, on the estates that fail least, until one passes or nothing new is asked for."""
    source, said = _Source(search.estates), Extension()
    bases, places = search.least(), _Places()
    before = len(search.tried)
    for _ in range(_ROUNDS):
        known = {place: len(values) for place, values in places.items()}
        for tried in search.least():
            source.collect(tried, places)
        if {place: len(values) for place, values in places.items()} == known:
            break
        taken, said.left_out = _within(places, len(bases))
        said.choices = [f"{stem} {pointer}" for stem, pointer in taken]
        seen = {_key(tried.assignment) for tried in search.tried}
        search.walk(edited for edited in _edited(bases, taken) if _key(edited) not in seen)
        if search.is_possible:
            break
    said.begun, said.tried = len(bases), len(search.tried) - before
    return said


def _key(assignment: Assignment) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(assignment.chosen.items()))


def _edited(bases: Sequence[Tried], places: _Places) -> Iterator[Assignment]:
    """Each combination of values, those first that change least."""
    offered = [[None, *values.items()] for values in places.values()]
    combinations = sorted(product(*offered), key=lambda chosen: sum(value is not None for value in chosen))
    for chosen in combinations:
        for base in bases:
            assignment = base.assignment
            for (stem, pointer), value in zip(places, chosen, strict=True):
                if value is not None and stem in assignment.stems:
                    assignment = assignment.edited(f"{stem} {pointer}", value[0], Edit(stem, pointer, value[1]))
            yield assignment


def _within(places: _Places, bases: int) -> tuple[_Places, int]:
    """The places with as many values as can be tried, and how many are left out."""
    kept = {place: list(values.items()) for place, values in places.items()}
    left_out = 0
    while bases * prod(len(values) + 1 for values in kept.values()) > _MOST:
        longest = max(kept, key=lambda place: len(kept[place]))
        kept[longest].pop()
        left_out += 1
    return {place: dict(values) for place, values in kept.items() if values}, left_out


@dataclass(frozen=True)
class _Source:
    """Where the values come from."""

    estates: Estates

    @cached_property
    def _words(self) -> Mapping[str, Words]:
        return DrawnEstates(self.estates.bundle).vocabulary.words

    @cached_property
    def _policies(self) -> Mapping[str, Policy]:
        return {policy.id: policy for policy in self.estates.bundle.policies}

    def collect(self, tried: Tried, places: _Places) -> None:
        """Add what the reasons of an estate ask for."""
        for policy, reasons in sorted(tried.failing.items()):
            for reason in reasons:
                for stem, pointer, values in self._asked(self._policies[policy], reason, tried.assignment):
                    known = places.setdefault((stem, pointer), {})
                    for value in values:
                        words = "removed" if value is REMOVED else orjson.dumps(value).decode()
                        if len(known) < _MOST_VALUES:
                            known.setdefault(words, value)

    def _asked(self, policy: Policy, reason: Reason, assignment: Assignment) -> Iterator[tuple[str, str, list[object]]]:
        pointers = [reason.said.path] if reason.said.path else list(observe(self.estates.bundle, policy).pointers)
        patches = [patch for patch in _patches(policy) if patch["path"] not in pointers]
        for pointer in (*pointers, *(patch["path"] for patch in patches)):
            identity = workspace_of(reason.resource) if pointer.startswith(WORKSPACE) else reason.resource
            if reason.judged_type in ("workload", "approval") and not pointer.startswith(WORKSPACE):
                continue  # a workload is derived from resources, and the organisation states its approvals
            stem, own = self.estates.stem_of(assignment, identity or ""), pointer.removeprefix(WORKSPACE)
            if stem is not None and self._is_free(assignment, stem, own):
                yield stem, own, list(self._values(policy, reason, pointer, self.estates.standing(assignment, stem)))

    def _is_free(self, assignment: Assignment, stem: str, pointer: str) -> bool:
        """Whether neither the class nor its choices say what stands at a place."""
        stated = [known for part in assignment.parts if stem in part.with_ for known in _leaves(part.with_[stem])]
        stated += [
            known
            for choice in self.estates.subject.choices.values()
            for holder, known, _ in choice.places()
            if holder == stem
        ]
        return (
            pointer.startswith("/")
            and "*" not in pointer
            and pointer not in _KEPT
            and not any(overlap(pointer, known) for known in stated)
        )

    def _values(self, policy: Policy, reason: Reason, pointer: str, resource: JsonObject) -> Iterator[object]:
        yield from (patch["value"] for patch in _patches(policy) if patch["path"] == pointer and "value" in patch)
        if isinstance(reason.said, Denial) and reason.said.path == pointer:
            expected = reason.said.expected
            yield from expected if isinstance(expected, list) else [] if expected is None else [expected]
            if isinstance(expected, list):
                yield expected
        words = self._words[policy.id]
        standing = words.standing.get(pointer, ())
        yield from standing
        yield from (True, False) if any(isinstance(value, bool) for value in standing) else ()
        yield from words.own[:_MOST_CONSTANTS]
        if has_value(resource, pointer.removeprefix(WORKSPACE)):
            yield REMOVED


def _patches(policy: Policy) -> list[JsonObject]:
    """The operations of a remediation that put a value somewhere."""
    patches = policy.header.remediation.patches if policy.header.remediation else ()
    return [step for entry in patches for step in entry.patch if step["op"] in ("add", "replace")]


def _leaves(patch: object, above: str = "") -> Iterator[str]:
    """The JSON Pointers of what a merge patch says."""
    if isinstance(patch, dict) and patch:
        for key, value in patch.items():
            yield from _leaves(value, f"{above}/{escaped(key)}")
    else:
        yield above
