"""Directed search for an example on which one policy fails and another does not.

The search starts at failing examples of the first policy. It writes values from elsewhere where the other one reads,
copies parts of examples on which the other one passes, and removes parts. It continues from the examples on
which the first policy still fails.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from random import Random

import orjson

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.cases import STATED
from policyeng.bundle.header_validators import WORKSPACE
from policyeng.errors import PolicyengError
from policyeng.facts.ids import workspace_of
from policyeng.models import JsonObject, Outcome, lowered
from policyeng.verify.example_documents import document_of, example_of, read
from policyeng.verify.generators.examples import Example
from policyeng.verify.generators.json_mutations import Json, copied, draw_boolean, place_of, places, put_value, remove
from policyeng.verify.generators.schema_values import fitting
from policyeng.verify.generators.vocabulary import Vocabulary
from policyeng.verify.redundancy.observing import Seen, Sighting, by_resource, evaluate_example, find_distinguished
from policyeng.verify.shrink_document import shrink

#: The number of steps from one example before another one is taken.
_STEPS = 12


@dataclass
class DistinguishingSearch:
    """The search for examples that distinguish a policy from others that fail whenever it does.

    Attributes:
        seen: the observations of each policy, by id.
        vocabulary: the vocabulary of the policies.
        random: the generator of all draws.
    """

    bundle: Bundle
    seen: Mapping[str, Seen]
    vocabulary: Vocabulary
    random: Random

    def found(self, policy: Policy, others: Collection[str], tries: int, *, parameters: bool) -> dict[str, Example]:
        """Return examples on which the policy fails and another one does not, on one resource, by the id of the other.

        Args:
            policy: a policy that fails somewhere.
            others: the ids of the policies that seem to fail whenever it does.
            tries: the number of evaluated examples.
            parameters: also draw parameters of the policies; otherwise all have their defaults.
        """
        left = dict.fromkeys(others)
        alone = self.bundle.only([entry for entry in self.bundle.policies if entry.id in {policy.id, *others}])
        by_id = {entry.id: entry for entry in alone.policies}
        starts = [start for start in self.seen[policy.id].failing if parameters or not start.parameters.keys() & by_id]
        apart: dict[str, Example] = {}
        walk: tuple[Example, str] | None = None
        for number in range(tries if starts else 0):
            if not left:
                break
            if walk is None or number % _STEPS == 0:
                walk = _start_example(starts[number // _STEPS % len(starts)], by_id if parameters else {})
            other = by_id[self.random.choice(list(left))]
            example = self._step(*walk, other)
            if parameters:
                example = self._with_parameters(example, [policy, other])
            resource = self._evaluate(example, alone, policy, left, apart)
            walk = (example, resource) if resource else walk
        return apart

    def _evaluate(
        self,
        example: Example,
        alone: Bundle,
        policy: Policy,
        left: dict[str, None],
        apart: dict[str, Example],
    ) -> str:
        """Record the policies that an example distinguishes; return a resource on which the policy fails, or ""."""
        snapshot = read(example.document)
        if snapshot is None:
            return ""
        evaluation = evaluate_example(alone, example, snapshot)
        for _, other in list(find_distinguished(evaluation, policy.id, left)):
            apart.setdefault(other, example)
            left.pop(other, None)
        failing = (at for at, said in by_resource(evaluation).items() if said.get(policy.id) is Outcome.FAIL)
        return next(failing, "")

    def _step(self, example: Example, resource: str, other: Policy) -> Example:
        document: JsonObject = orjson.loads(orjson.dumps(example.document))
        as_of = example.as_of
        kind = self.random.randrange(8)
        passing = self.seen[other.id].passing
        if kind < 4:
            self._write_values(document, resource, other)
        elif kind < 7 and passing:
            taken = self.random.choice(passing)
            self._copy_parts(document, resource, taken)
            as_of = taken.as_of if draw_boolean(self.random, 0.3) else as_of
        else:
            self._remove_part(document, resource)
        return replace(example, document=document, as_of=as_of)

    def _write_values(self, document: JsonObject, resource: str, other: Policy) -> None:
        """Write values from elsewhere at places that the other policy reads."""
        words = self.vocabulary.words[other.id]
        own = [*words.pointers, *(pointer for judged in other.header.judges for pointer in judged.where)]
        for _ in range(self.random.randrange(1, 4) if own else 0):
            pointer = self.random.choice(own)
            holder = _find_document(document, resource, is_workspace=pointer.startswith(WORKSPACE))
            if holder is None:
                return
            place = place_of(self.random, holder, pointer.removeprefix(WORKSPACE))
            values = words.standing.get(pointer) or words.own
            if not place or place[0] in ("id", "type"):
                continue
            if not values or draw_boolean(self.random, 0.2):
                remove(holder, place)
            else:
                pool = words.own if words.own and draw_boolean(self.random, 0.2) else values
                put_value(holder, place, copied(self.random.choice(pool)))

    def _copy_parts(self, document: JsonObject, resource: str, taken: Sighting) -> None:
        """Copy from an example on which the other policy passes: parts of the resource, of others, or of statements."""
        passing: JsonObject = orjson.loads(taken.text)
        ours, theirs = _find_document(document, resource), _find_document(passing, taken.resource)
        if (
            ours is not None
            and theirs is not None
            and lowered(str(ours.get("type"))) == lowered(str(theirs.get("type")))
        ):
            _copy_some_members(
                self.random, ours, {**theirs, **{key: ours[key] for key in ("id", "name", "type") if key in ours}}
            )
        there = {lowered(str(entry.get("id"))): entry for entry in passing["resources"]}
        for entry in document["resources"]:
            same = there.get(lowered(str(entry.get("id"))))
            if same is not None and entry is not ours and draw_boolean(self.random, 0.3):
                _copy_some_members(self.random, entry, {**same, "id": entry["id"]})
        for kind in STATED:
            if draw_boolean(self.random, 0.2):
                document[kind] = passing.get(kind, [])

    def _remove_part(self, document: JsonObject, resource: str) -> None:
        """Remove a part of the resource, another resource, or statements."""
        if draw_boolean(self.random, 0.5) and (holder := _find_document(document, resource)) is not None:
            open_places = [place for place in places(holder) if place[0] not in ("id", "type")]
            if open_places:
                remove(holder, self.random.choice(open_places))
            return
        entries = document[self.random.choice(["resources", *(kind for kind in STATED if document.get(kind))])]
        kept = [entry for entry in entries if lowered(str(entry.get("id"))) != lowered(resource)]
        if kept:
            entries.remove(self.random.choice(kept))

    def _with_parameters(self, example: Example, policies: Collection[Policy]) -> Example:
        given = dict(example.parameters)
        for policy in policies:
            for name, schema in policy.header.parameters.items():
                if draw_boolean(self.random, 0.4):
                    value = fitting(self.random, schema, self.vocabulary.words[policy.id].own)
                    given[policy.id] = {**given.get(policy.id, {}), name: value}
        return replace(example, parameters=given)


def shrink_distinguishing(
    bundle: Bundle, policy: str, other: str, example: Example, *, most: int
) -> tuple[Example, str] | None:
    """Shrink an example on which one policy fails and another does not; return it with the resource, None if refused.

    Args:
        bundle: a bundle with both policies.
        policy: the id of the failing policy.
        other: the id of the other policy.
        example: an example that distinguishes them.
        most: the number of attempts.
    """
    alone = bundle.only([entry for entry in bundle.policies if entry.id in {policy, other}])
    last: list[tuple[Example, str]] = []

    def holds(document: Json) -> bool:
        try:
            candidate = example_of(document)
            snapshot = read(candidate.document)
            if snapshot is None:
                return False
            resource = next(
                (at for at, _ in find_distinguished(evaluate_example(alone, candidate, snapshot), policy, [other])), ""
            )
        except (PolicyengError, AttributeError, KeyError, TypeError, ValueError):
            return False  # not an example
        if resource:
            last[:] = [(candidate, resource)]
        return bool(resource)

    known = {entry.id for entry in alone.policies}
    whole = document_of(
        replace(example, parameters={key: given for key, given in example.parameters.items() if key in known})
    )
    if not holds(whole):
        return None
    shrink(whole, holds, most=most, plainer=False)
    return last[0]


def _start_example(start: Sighting, policies: Collection[str]) -> tuple[Example, str]:
    """Return a failing example with the parameters of only some policies."""
    example = start.example
    document = {name: value for name, value in example.document.items() if name != "snapshotVersion"}
    parameters = {policy: given for policy, given in example.parameters.items() if policy in policies}
    return replace(example, document=document, parameters=parameters), start.resource


def _find_document(document: JsonObject, resource: str, *, is_workspace: bool = False) -> JsonObject | None:
    """Return the resource, declared workload or approval with an id, or its workspace."""
    entries = [entry for kind in ("resources", "workloads", "approvals") for entry in document.get(kind, ())]
    by_id: dict[str, JsonObject] = {lowered(str(entry.get("id"))): entry for entry in reversed(entries)}
    held = by_id.get(lowered(resource))
    if not is_workspace:
        return held
    home = workspace_of(resource) or (str(held.get("workspaceId")) if held else "")
    return by_id.get(lowered(home))


def _copy_some_members(random: Random, ours: JsonObject, theirs: JsonObject) -> None:
    """Copy some members of another object, and remove some members that it does not have."""
    for key in sorted({*ours, *theirs}):
        one, two = ours.get(key), theirs.get(key)
        if isinstance(one, dict) and isinstance(two, dict):
            _copy_some_members(random, one, two)
        elif one != two and draw_boolean(random, 0.5):
            if key in theirs:
                ours[key] = copied(two)
            else:
                del ours[key]
