"""Observe the outcomes of policies on examples, and search for examples that distinguish two policies."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from random import Random

import orjson

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.cases import DEFAULT_AS_OF, STATED, Case
from policyeng.bundle.header import WORKSPACE
from policyeng.errors import PolicyengError
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.facts.ids import workspace_of
from policyeng.models import Evaluation, JsonObject, Outcome, Snapshot, lowered
from policyeng.sources import read_inputs
from policyeng.verify.example_documents import document_of, example_of, native, read
from policyeng.verify.generators.documents import fitting
from policyeng.verify.generators.estates import EstateGenerator
from policyeng.verify.generators.examples import Example
from policyeng.verify.generators.json_mutations import Json, copied, draw_boolean, place_of, places, put_value, remove
from policyeng.verify.generators.vocabulary import Vocabulary
from policyeng.verify.shrinking import shrink

#: The number of examples that are stored for each policy and outcome, the smallest ones.
_KEPT = 6


@dataclass(frozen=True)
class Sighting:
    """An outcome of a policy on a resource of an example, which is stored as text to save memory."""

    text: bytes
    parameters: Mapping[str, JsonObject]
    as_of: datetime
    resource: str

    @property
    def example(self) -> Example:
        """The example; the caller may change its document."""
        return Example(orjson.loads(self.text), self.parameters, self.as_of)


@dataclass
class Seen:
    """The observations of one policy.

    Attributes:
        outcomes: the number of findings with each outcome.
        reasons: the messages of its denials and unknowns.
        failing, passing: the smallest examples.
        together: the number of failures of both policies on one resource, by the id of the other one.
        apart: the first failure without a failure of the other policy on the same resource, by its id.
        plainly_together, plainly_apart: the same if both policies have their default parameters.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: set[str] = field(default_factory=set)
    failing: list[Sighting] = field(default_factory=list)
    passing: list[Sighting] = field(default_factory=list)
    together: Counter[str] = field(default_factory=Counter)
    apart: dict[str, Sighting] = field(default_factory=dict)
    plainly_together: Counter[str] = field(default_factory=Counter)
    plainly_apart: dict[str, Sighting] = field(default_factory=dict)

    @property
    def failures(self) -> int:
        """The number of failures."""
        return self.outcomes[Outcome.FAIL]

    @property
    def decided(self) -> set[str]:
        """The outcomes other than error."""
        return {outcome for outcome in self.outcomes if outcome != Outcome.ERROR}


@dataclass
class ObservedOutcomes:
    """The observations of every policy of a bundle.

    Attributes:
        cases, examples: the number of evaluated ones.
        more: the number of additional examples for a policy, by id.
    """

    bundle: Bundle
    seen: dict[str, Seen] = field(default_factory=dict)
    cases: int = 0
    examples: int = 0
    more: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Add an entry for each policy, even if it is never observed."""
        self.seen |= {policy.id: Seen() for policy in self.bundle.policies}

    def record(self, example: Example, bundle: Bundle | None = None) -> None:
        """Evaluate an example with every policy, or with those of a part of the bundle, and record the findings.

        Raises:
            EngineError: the bundle does not compile.
        """
        text = native_text(example)
        evaluation = evaluate_example(bundle or self.bundle, example, as_read(text))
        for resource, by_policy in by_resource(evaluation).items():
            sighting = Sighting(text, example.parameters, example.as_of, resource)
            failing = {policy for policy, outcome in by_policy.items() if outcome is Outcome.FAIL}
            for policy, outcome in by_policy.items():
                seen = self.seen[policy]
                if outcome is Outcome.FAIL:
                    _store_sighting(seen.failing, sighting)
                    self._compare(policy, failing, sighting)
                elif outcome is Outcome.PASS:
                    _store_sighting(seen.passing, sighting)
        for finding in evaluation.findings:
            seen = self.seen[finding.policy]
            seen.outcomes[finding.outcome] += 1
            seen.reasons.update(reason.msg for reason in (*finding.denials, *finding.unknowns))

    def _compare(self, policy: str, failing: set[str], sighting: Sighting) -> None:
        seen, is_plain = self.seen[policy], policy not in sighting.parameters
        seen.together.update(failing)
        if is_plain:
            seen.plainly_together.update(failing - sighting.parameters.keys())
        for other in self.seen.keys() - failing:
            seen.apart.setdefault(other, sighting)
            if is_plain and other not in sighting.parameters:
                seen.plainly_apart.setdefault(other, sighting)


def cases_of(policy: str, estates: EstateGenerator) -> Iterator[tuple[Case, Example]]:
    """Yield the cases of a policy, each with its example."""
    for case, document in estates.cases.get(policy, ()):
        parameters = {policy: case.parameters} if case.parameters else {}
        yield case, Example(document, parameters, case.as_of or DEFAULT_AS_OF)


def native_text(example: Example) -> bytes:
    """Return the document of an example as a native snapshot; integers beyond 64 bits become the nearest ones."""
    document = native(example.document)
    try:
        return orjson.dumps(document)
    except TypeError:
        return orjson.dumps(json.loads(json.dumps(document), parse_int=float))


def as_read(text: bytes) -> Snapshot:
    """Return the snapshot that `policyeng check` evaluates: the native document without what its reader refuses."""
    return read_inputs(["-"], from_format="native", stdin=text).snapshot


def evaluate_example(bundle: Bundle, example: Example, snapshot: Snapshot) -> Evaluation:
    """Evaluate an example with another snapshot in place of its document."""
    known = {policy.id for policy in bundle.policies}
    parameters = {policy: given for policy, given in example.parameters.items() if policy in known}
    return evaluate(bundle, snapshot, EvaluationOptions(example.as_of, parameters=parameters))


def by_resource(evaluation: Evaluation) -> dict[str, dict[str, Outcome]]:
    """Return the outcome of each policy by lower-case resource id; a workload has the id of its source resource.

    A policy that selects both fails if it fails on one of them.
    """
    by_policy: dict[str, dict[str, Outcome]] = {}
    for finding in evaluation.findings:
        policies = by_policy.setdefault(lowered(finding.resource), {})
        if policies.get(finding.policy) is not Outcome.FAIL:
            policies[finding.policy] = finding.outcome
    return by_policy


def find_distinguished(evaluation: Evaluation, policy: str, others: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the resources on which a policy fails, with each other policy that does not fail or err there."""
    for resource, by_policy in by_resource(evaluation).items():
        if by_policy.get(policy) is Outcome.FAIL:
            for other in others:
                if by_policy.get(other) not in (Outcome.FAIL, Outcome.ERROR):
                    yield resource, other


def _store_sighting(kept: list[Sighting], sighting: Sighting) -> None:
    """Store a sighting among the smallest, one of each size, so that the stored examples differ."""
    size = len(sighting.text)
    if len(kept) == _KEPT and size >= len(kept[-1].text):
        return
    if all(len(other.text) != size for other in kept):
        kept.append(sighting)
        kept.sort(key=lambda other: (len(other.text), other.text))
        del kept[_KEPT:]


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
        failing = (at for at, by_policy in by_resource(evaluation).items() if by_policy.get(policy.id) is Outcome.FAIL)
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
        own = [*words.pointers, *(pointer for target in other.header.judges for pointer in target.where)]
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
    found_entry = by_id.get(lowered(resource))
    if not is_workspace:
        return found_entry
    home = workspace_of(resource) or (str(found_entry.get("workspaceId")) if found_entry else "")
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
