"""Random estates for a bundle, as native documents: baselines and cases with edits, or anything under a judged type.

Every estate has a policy in focus: there are several of what it judges, edited where it looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

import orjson

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.header import Judged
from policyeng.evaluation.pointers import value_at
from policyeng.facts.ids import workspace_of
from policyeng.models import WORKSPACE_TYPE, JsonObject
from policyeng.verify.cases import Baselines, Case, baselines_of, estate, read_cases
from policyeng.verify.drawing.edits import Json, altered, copied, edit_somewhere, happens, odd, place_of, put, remove
from policyeng.verify.drawing.observations import KINDS, Entries
from policyeng.verify.drawing.vocabulary import Vocabulary, vocabulary_of

_GROUP = re.compile(r"(?i)(/resourceGroups/[^/\"]+)")
_STATED = ("approvals", "workloads", "quotas", "metrics", "principals")
#: What the organisation states, as `judges` names it; no resource has such a type.
STATEMENTS = frozenset({"workload", "approval"})


@dataclass(frozen=True)
class Estates:
    """Draws estates for a bundle; every document that it gives is the caller's to change."""

    bundle: Bundle

    @cached_property
    def baselines(self) -> Baselines:
        """The compliant estate that others are edits of."""
        return baselines_of(self.bundle)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What the policies speak of."""
        every = (document for cases in self.cases.values() for _, document in cases)
        edited = [resource for document in every for resource in document["resources"]]
        distinct = {orjson.dumps(resource): resource for resource in (*self.baselines.resources.values(), *edited)}
        return vocabulary_of(self.bundle, distinct.values())  # a case leaves most baselines as they are

    @cached_property
    def cases(self) -> dict[str, list[tuple[Case, JsonObject]]]:
        """By policy id, every case with its estate as a document."""
        found: dict[str, list[tuple[Case, JsonObject]]] = {}
        for policy in self.bundle.policies:
            file = read_cases(policy)
            for _, name, case in file.named() if file else ():
                snapshot = estate(self.baselines, case, f"{policy.cases}: {name}")
                document: JsonObject = {"resources": list(snapshot.resources)}
                for kind in _STATED:
                    entries = getattr(snapshot, kind)
                    document[kind] = [
                        entry.model_dump(mode="json", by_alias=True, exclude_none=True) for entry in entries
                    ]
                found.setdefault(policy.id, []).append((case, document))
        return found

    def of_case(self, random: Random, focus: Policy) -> tuple[Case, JsonObject]:
        """A case of a policy, with more of what it judges, and edits; the policy must have cases."""
        case, document = random.choice(self.cases[focus.id])
        document = copied_object(document)
        alike = [resource for resource in document["resources"] if _takes(focus, resource)]
        clones = (
            [renamed(random.choice(alike), f"-f{number}") for number in range(random.randrange(5))] if alike else []
        )
        self._add(random, focus, document["resources"], clones)
        self._edit(random, document, focus)
        return case, document

    def of_baselines(self, random: Random, focus: Policy) -> JsonObject:
        """Some of the baselines, several of what one policy judges, now and then in a second resource group."""
        chosen = [resource for resource in self.baselines.resources.values() if happens(random, 0.5)]
        resources = [copied_object(resource) for resource in chosen]
        if chosen and happens(random, 0.5):
            resources.append(renamed(random.choice(chosen), "-2"))
        self._add(
            random, focus, resources, [self._subject(random, focus, f"-f{n}") for n in range(random.randrange(2, 9))]
        )
        if happens(random, 0.2):
            text = orjson.dumps([resource for resource in resources if happens(random, 0.7)]).decode()
            resources += orjson.loads(_GROUP.sub(r"\1-2", text))
        known = {name: copied(list(self.baselines.stated.get(name, ()))) for name in _STATED}
        document: JsonObject = {"resources": resources, **known}
        self._edit(random, document, focus)
        return document

    def wild(self, random: Random, focus: Policy) -> JsonObject:
        """Resources of types that are judged, with anything inside."""
        resources = [copied_object(workspace) for workspace in self._by_type.get(WORKSPACE_TYPE, ())]
        for _ in range(random.randrange(1, 12)):
            resource = self._made(random, random.choice(self._types or [WORKSPACE_TYPE]))
            for key in ("properties", "tags", "kind", "sku", "location"):
                if happens(random, 0.4):
                    resource[key] = {"properties": odd(random)} if key == "properties" else odd(random)
            resources.append(resource)
        document: JsonObject = {"resources": resources}
        self._edit(random, document, focus)
        return document

    def observations(self, focus: Policy) -> dict[str, list[Entries]]:
        """By kind, what each case of a policy states of quotas, metrics and principals; else what the baselines do."""
        documents = [document for _, document in self.cases.get(focus.id, ())]
        return {
            kind: [document[kind] for document in documents] or [self.baselines.stated.get(kind, ())] for kind in KINDS
        }

    def subjects(self, focus: Policy, resources: Iterable[JsonObject]) -> list[str]:
        """The ids of the resources that a policy judges."""
        return [str(resource["id"]) for resource in resources if _takes(focus, resource)]

    def spoken(self, random: Random, policy: Policy) -> Sequence[Json]:
        """Words of a policy: its own, those of what it imports, or some names of each table of facts that it reads."""
        words = self.vocabulary.words[policy.id]
        names = [random.choice(table) for table in words.tables for _ in range(4)]
        kinds: list[Sequence[Json]] = [kind for kind in (words.own, words.own, words.borrowed, names) if kind]
        return random.choice(kinds) if kinds else []

    @cached_property
    def _types(self) -> list[str]:
        judged = {judged.type for policy in self.bundle.policies for judged in policy.header.judges}
        return sorted(judged - STATEMENTS)

    @cached_property
    def _by_type(self) -> dict[str, list[JsonObject]]:
        by_type: dict[str, list[JsonObject]] = {}
        for resource in self.baselines.resources.values():
            by_type.setdefault(str(resource.get("type", "")).lower(), []).append(resource)
        return by_type

    @cached_property
    def _judging(self) -> dict[str, list[Policy]]:
        """The policies by the lower-case type that they judge."""
        judging: dict[str, list[Policy]] = {}
        for policy in self.bundle.policies:
            for kind in dict.fromkeys(judged.type.lower() for judged in policy.header.judges):
                judging.setdefault(kind, []).append(policy)
        return judging

    def _subject(self, random: Random, focus: Policy, suffix: str) -> JsonObject:
        """A resource that a policy judges, in the spelling of its header."""
        judged = random.choice(focus.header.judges)
        if judged.type in STATEMENTS:
            return self._made(random, random.choice(self._types or [WORKSPACE_TYPE]))
        known = [entry for entry in self._by_type.get(judged.type.lower(), ()) if _taken(judged, entry)]
        if known and happens(random, 0.8):
            return renamed(random.choice(known), suffix)
        resource = self._made(random, judged.type)
        for pointer, allowed in judged.where.items():
            put(resource, place_of(random, resource, pointer), random.choice(allowed))
        return resource

    def _made(self, random: Random, kind: str) -> JsonObject:
        """A resource of a type: a renamed baseline, or an empty one with the id that such a resource has."""
        if known := self._by_type.get(kind.lower()):
            return renamed(random.choice(known), f"-{random.randrange(6)}")
        namespace, *kinds = kind.split("/")
        above = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
        names = "".join(f"/{part}/{'ws' if part == 'workspaces' else f'x{random.randrange(6)}'}" for part in kinds)
        identity = f"{above}/providers/{namespace}{names or '/x'}"
        return {"id": identity, "name": identity.rpartition("/")[2], "type": kind, "properties": {}}

    def _add(self, random: Random, focus: Policy, resources: list[JsonObject], subjects: list[JsonObject]) -> None:
        """Put what the policy in focus judges among the resources, most of it edited where the policy looks."""
        resources += subjects
        for subject in subjects:
            while happens(random, 0.6):
                self._directed(random, focus, subject, resources)

    def _edit(self, random: Random, document: JsonObject, focus: Policy) -> None:
        """Edits of the resources, from a few of them to most, and now and then of what is stated beside them."""
        resources: list[JsonObject] = document["resources"]
        share = random.choice((0.1, 0.4, 0.6))
        for resource in resources:
            while happens(random, share):
                policies = self._judging.get(str(resource.get("type", "")).lower(), [])
                if policies and happens(random, 0.8):
                    policy = focus if focus in policies and happens(random, 0.4) else random.choice(policies)
                    self._directed(random, policy, resource, resources)
                else:
                    edit_somewhere(random, resource)
        if happens(random, 0.1):
            document["incomplete"] = ["roles: forbidden"]
        if resources and happens(random, 0.15):
            _respelled(random, random.choice(resources))
        random.shuffle(resources)
        document["resources"] = list({str(resource["id"]).lower(): resource for resource in resources}.values())

    def _directed(self, random: Random, policy: Policy, resource: JsonObject, resources: list[JsonObject]) -> None:
        """Change something that a policy looks at when it judges the resource."""
        pointers = policy.header.inspects if happens(random, 0.9) else ()
        pointer = random.choice(pointers or self.vocabulary.words[policy.id].pointers or ("/properties",))
        holder = resource
        if pointer.startswith("workspace:"):
            home = (workspace_of(str(resource["id"])) or "").lower()
            holder = next((other for other in resources if str(other["id"]).lower() == home), resource)
        place = place_of(random, holder, pointer.removeprefix("workspace:"))
        if not place or place[0] in ("id", "type"):
            return
        if happens(random, 0.2):
            remove(holder, place)
        else:
            put(holder, place, self._value(random, policy, pointer))

    def _value(self, random: Random, policy: Policy, pointer: str) -> Json:
        standing, kind = self.vocabulary.words[policy.id].standing.get(pointer, ()), random.randrange(10)
        if kind < 5 and standing:
            return copied(random.choice(standing))
        if kind < 7 and standing:
            return altered(random, copied(random.choice(standing)))
        if kind < 9:
            word = random.choice(self.spoken(random, policy) or [odd(random)])
            return copied(word) if happens(random, 0.8) else altered(random, copied(word))
        return odd(random)


def copied_object(document: JsonObject) -> JsonObject:
    """A deep copy of a JSON object."""
    duplicate = copied(document)
    return duplicate if isinstance(duplicate, dict) else {}


def renamed(resource: JsonObject, suffix: str) -> JsonObject:
    """A copy of a resource beside it."""
    duplicate = copied_object(resource)
    duplicate["id"] = f"{duplicate['id']}{suffix}"
    if isinstance(duplicate.get("name"), str):
        duplicate["name"] += suffix
    return duplicate


def _takes(policy: Policy, resource: JsonObject) -> bool:
    kind = str(resource.get("type", "")).lower()
    return any(judged.type.lower() == kind and _taken(judged, resource) for judged in policy.header.judges)


def _taken(judged: Judged, resource: JsonObject) -> bool:
    """Whether a resource of the type is one that a header narrows it to."""
    there = {pointer: str(value_at(resource, pointer)).lower() for pointer in judged.where}
    return all(there[pointer] in {str(one).lower() for one in allowed} for pointer, allowed in judged.where.items())


def _respelled(random: Random, resource: JsonObject) -> None:
    """Write the id or the type of a resource in other letters; it stays the same resource."""
    key = random.choice(("id", "type"))
    resource[key] = random.choice((str.upper, str.lower, str.title))(str(resource[key]))
