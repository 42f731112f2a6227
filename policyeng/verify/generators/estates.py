"""The material for snapshots of a bundle: its baselines, its cases as scenes, and the vocabulary of its policies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from random import Random

import orjson

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.cases import DEFAULT_AS_OF, STATED, Baselines, Case, baselines_of, estate, read_cases
from policyeng.bundle.header import TargetType
from policyeng.evaluation import evaluate
from policyeng.evaluation.pointers import value_at
from policyeng.models import JsonObject, Outcome, Snapshot, lowered
from policyeng.verify.generators.case_scenarios import Links, Scene, list_scenes
from policyeng.verify.generators.json_mutations import Json, copied
from policyeng.verify.generators.observations import KINDS, Entries
from policyeng.verify.generators.vocabulary import Vocabulary, vocabulary_of

_GROUP = re.compile(r"(?i)(/resourceGroups/[^/\"]+)")
#: Statements of the organization, as `judges` names them; no resource has such a type.
STATEMENTS = frozenset({"workload", "approval"})
#: The input of foreign policies: documents as written.
DOCUMENT = "document"


@dataclass(frozen=True)
class EstateGenerator:
    """The generator material of a bundle; each part is computed when it is first used."""

    bundle: Bundle

    @cached_property
    def baselines(self) -> Baselines:
        """The baselines, which other snapshots are edits of."""
        return baselines_of(self.bundle)

    @cached_property
    def links(self) -> Links:
        """The references between baselines."""
        return Links(self.baselines)

    @cached_property
    def scenes(self) -> dict[str, list[Scene]]:
        """Every case as a scene, by policy id, except for policies without cases."""
        given = self.baselines, self.links
        found = {policy.id: list(list_scenes(self.bundle, policy, *given)) for policy in self.bundle.policies}
        return {identity: scenes for identity, scenes in found.items() if scenes}

    @cached_property
    def at_rest(self) -> frozenset[str]:
        """The ids of the policies that pass on the unchanged baselines."""
        snapshot = Snapshot.model_validate({**self.stated(), "resources": tuple(self.baselines.resources.values())})
        findings = evaluate(self.bundle, snapshot, as_of=DEFAULT_AS_OF).findings
        return frozenset(finding.policy for finding in findings if finding.outcome is Outcome.PASS)

    @cached_property
    def cases(self) -> dict[str, list[tuple[Case, JsonObject]]]:
        """Every case with its complete snapshot as a document, by policy id."""
        found: dict[str, list[tuple[Case, JsonObject]]] = {}
        for policy in self.bundle.policies:
            file = read_cases(policy)
            for _, name, case in file.named() if file else ():
                snapshot = estate(self.baselines, case, f"{policy.cases}: {name}")
                document = snapshot.model_dump(mode="json", by_alias=True, exclude_none=True, include=set(STATED))
                document["resources"] = [copied_object(resource) for resource in snapshot.resources]
                found.setdefault(policy.id, []).append((case, document))
        return found

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the policies."""
        edited = [resource for scenes in self.scenes.values() for scene in scenes for resource in scene.edited.values()]
        distinct = {orjson.dumps(resource): resource for resource in (*self.baselines.resources.values(), *edited)}
        return vocabulary_of(self.bundle, distinct.values())

    @cached_property
    def types(self) -> list[str]:
        """The types of resources that policies select."""
        judged = {judged.type for policy in self.bundle.policies for judged in policy.header.judges}
        return sorted(judged - STATEMENTS - {DOCUMENT})

    @cached_property
    def by_type(self) -> dict[str, list[JsonObject]]:
        """The baselines, by lower-case type."""
        by_type: dict[str, list[JsonObject]] = {}
        for resource in self.baselines.resources.values():
            by_type.setdefault(lowered(str(resource.get("type", ""))), []).append(resource)
        return by_type

    @cached_property
    def judging(self) -> dict[str, list[Policy]]:
        """The policies, by the lower-case type that they select."""
        judging: dict[str, list[Policy]] = {}
        for policy in self.bundle.policies:
            for kind in dict.fromkeys(lowered(judged.type) for judged in policy.header.judges):
                judging.setdefault(kind, []).append(policy)
        return judging

    @cached_property
    def with_parameters(self) -> list[Policy]:
        """The policies that have parameters."""
        return [policy for policy in self.bundle.policies if policy.header.parameters]

    @cached_property
    def usual(self) -> dict[str, list[tuple[JsonObject, frozenset[str]]]]:
        """The statements of the baselines by kind, each with the stems of the baselines that it refers to."""
        return {
            kind: [(entry, self.links.named(entry)) for entry in entries] for kind, entries in self.stated().items()
        }

    def stated(self) -> dict[str, list[JsonObject]]:
        """Return the statements of the baselines in new lists; the entries must not be changed."""
        return {kind: list(self.baselines.stated.get(kind, ())) for kind in STATED}

    def observations(self, focus: Policy) -> dict[str, list[Entries]]:
        """Return the quotas, metrics and principals of each case of a policy, or of the baselines, by kind."""
        usual = self.baselines.stated
        scenes = self.scenes.get(focus.id, ())
        return {
            kind: [scene.stated.get(kind, usual.get(kind, ())) for scene in scenes] or [usual.get(kind, ())]
            for kind in KINDS
        }

    def spoken(self, random: Random, policy: Policy) -> Sequence[Json]:
        """Return words of a policy: its own, those of its imports, or some names of each facts table that it reads."""
        words = self.vocabulary.words[policy.id]
        names = [random.choice(table) for table in words.tables for _ in range(4)]
        kinds: list[Sequence[Json]] = [kind for kind in (words.own, words.own, words.borrowed, names) if kind]
        return random.choice(kinds) if kinds else []


def subjects(policy: Policy, resources: Iterable[JsonObject]) -> list[str]:
    """Return the ids of the resources that a policy selects."""
    return [str(resource["id"]) for resource in resources if is_selected(policy, resource)]


def is_selected(policy: Policy, resource: JsonObject) -> bool:
    """Check whether a policy selects a resource."""
    kind = lowered(str(resource.get("type", "")))
    return any(lowered(judged.type) == kind and fits(judged, resource) for judged in policy.header.judges)


def fits(judged: TargetType, resource: JsonObject) -> bool:
    """Check whether a resource of the type meets the conditions of an entry of `judges`."""
    there = {pointer: lowered(str(value_at(resource, pointer))) for pointer in judged.where}
    return all(there[pointer] in {lowered(str(one)) for one in allowed} for pointer, allowed in judged.where.items())


def copied_object(document: JsonObject, spelled: Callable[[str], str] = str) -> JsonObject:
    """Return a deep copy of a JSON object, with `spelled` applied to its texts and keys."""
    return {spelled(key): copied(member, spelled) for key, member in document.items()}


def in_second_group(resources: Iterable[JsonObject]) -> list[JsonObject]:
    """Return copies of resources in another resource group."""
    return [copied_object(resource, partial(_GROUP.sub, r"\1-2")) for resource in resources]


def renamed(resource: JsonObject, suffix: str) -> JsonObject:
    """Return a copy of a resource with a suffix in its id."""
    duplicate = copied_object(resource)
    duplicate["id"] = f"{duplicate['id']}{suffix}"
    if isinstance(duplicate.get("name"), str):
        duplicate["name"] += suffix
    return duplicate
