"""Random examples for a bundle: a snapshot, the parameters it is judged with, and the clock.

Three kinds of estates: `case` (the estate of one of the bundle's own cases, with a few edits), `estate` (some of the
baselines, in one or two workspaces, with edits) and `wild` (anything under a type that is judged). Edits are directed:
most of them change what the policies look at, to what they speak of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from random import Random

import orjson

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.header import Judged
from policyeng.evaluation.plan import value_at
from policyeng.facts import workspace_of
from policyeng.models import WORKSPACE_TYPE, JsonObject, Snapshot
from policyeng.verify.cases import DEFAULT_AS_OF, Baselines, Case, baselines_of, estate, read_cases
from policyeng.verify.edits import Json, altered, copied, edit_somewhere, odd, place_of, put, remove
from policyeng.verify.schemas import fitting
from policyeng.verify.statements import Asked, stated
from policyeng.verify.vocabulary import Vocabulary, pointers_of, vocabulary_of

_GROUP = re.compile(r"(?i)(/resourceGroups/[^/\"]+)")
_STATED = ("approvals", "workloads", "quotas", "metrics", "principals")
_STATEMENTS = {"workload", "approval"}


@dataclass(frozen=True, slots=True)
class Example:
    """Something to judge.

    Attributes:
        document: a native snapshot without `snapshotVersion`; not to be changed.
        parameters: by policy id, what replaces the defaults; every value fits its schema.
    """

    document: JsonObject
    parameters: Mapping[str, JsonObject]
    as_of: datetime

    @property
    def snapshot(self) -> Snapshot:
        """The document as a snapshot, without passing through a reader."""
        return Snapshot.model_validate({**self.document, "resources": tuple(self.document["resources"])})


@dataclass(frozen=True)
class Examples:
    """Draws examples for a bundle: `Examples(bundle).drawn(Random(7))`."""

    bundle: Bundle

    @cached_property
    def baselines(self) -> Baselines:
        """The compliant estate that examples are edits of."""
        return baselines_of(self.bundle)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What the policies speak of."""
        every = (document for cases in self._cases.values() for _, document in cases)
        edited = [resource for document in every for resource in document["resources"]]
        return vocabulary_of(self.bundle, [*self.baselines.resources.values(), *edited])

    def drawn(self, random: Random) -> Example:
        """One example; the same generator state gives the same example."""
        focus = random.choice(self.bundle.policies)
        cases, kind = self._cases.get(focus.id, ()), random.random()
        given: JsonObject = {}
        as_of = DEFAULT_AS_OF
        if kind < 0.4 and cases:
            case, document = random.choice(cases)
            document, given, as_of = copied_object(document), case.parameters, case.as_of or as_of
        else:
            document = self._wild(random) if kind > 0.92 else self._estate(random, focus)
        self._edit(random, document, focus)
        if random.random() < 0.5:
            as_of = self.moment(random)
        if random.random() < 0.5 or focus in self._of_workloads:
            wanted = focus if focus in self._of_workloads else None
            document |= stated(random, document, Asked(self._all_words, as_of, wanted))
        return Example(document, self.parameters(random, {focus.id: given} if given else {}), as_of)

    def moment(self, random: Random) -> datetime:
        """A clock: near a moment at which facts or approvals change, or any in ten years."""
        if self._moments and random.random() < 0.7:
            near = random.choice((-86400.0, -1.0, -0.000001, 0.0, 0.000001, 1.0, 86400.0))
            days = random.choice((0, 0, 0, -180, -179, -181, -30))
            return random.choice(self._moments) + timedelta(days=days, seconds=near)
        return datetime(2021, 1, 1, tzinfo=UTC) + timedelta(seconds=random.randrange(10 * 365 * 86400))

    def parameters(self, random: Random, given: Mapping[str, JsonObject]) -> dict[str, JsonObject]:
        """Parameters for some policies, beside those that are given."""
        made = dict(given)
        for policy in self.bundle.policies:
            if policy.header.parameters and policy.id not in made and random.random() < 0.15:
                words = self._spoken(random, policy)
                made[policy.id] = {
                    name: fitting(random, schema, words)
                    for name, schema in policy.header.parameters.items()
                    if random.random() < 0.7
                }
        return made

    @cached_property
    def _moments(self) -> list[datetime]:
        stated_times = [
            datetime.fromisoformat(text)
            for approval in self.baselines.stated.get("approvals", ())
            for name in ("grantedAt", "expiresAt")
            if isinstance(text := approval.get(name), str)
        ]
        return sorted({*self.vocabulary.moments, *(time for time in stated_times if time.tzinfo)})

    @cached_property
    def _cases(self) -> dict[str, list[tuple[Case, JsonObject]]]:
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

    @cached_property
    def _all_words(self) -> list[str]:
        words = (word for spoken in self.vocabulary.words.values() for word in (*spoken.own, *spoken.borrowed))
        tables = {name for spoken in self.vocabulary.words.values() for table in spoken.tables for name in table[:40]}
        return sorted({word for word in words if isinstance(word, str)} | tables)

    @cached_property
    def _types(self) -> list[str]:
        judged = {judged.type for policy in self.bundle.policies for judged in policy.header.judges}
        return sorted(judged - _STATEMENTS)

    @cached_property
    def _by_type(self) -> dict[str, list[JsonObject]]:
        by_type: dict[str, list[JsonObject]] = {}
        for resource in self.baselines.resources.values():
            by_type.setdefault(str(resource.get("type", "")).lower(), []).append(resource)
        return by_type

    def _estate(self, random: Random, focus: Policy) -> JsonObject:
        """Some of the baselines, several of what one policy judges, now and then in a second resource group."""
        chosen = [resource for resource in self.baselines.resources.values() if random.random() < 0.6]
        clones = (
            [_renamed(random.choice(chosen), f"-{number}") for number in range(random.randrange(3))] if chosen else []
        )
        resources = [*map(copied_object, chosen), *clones]
        subjects = [self._subject(random, focus, f"-f{number}") for number in range(random.randrange(2, 8))]
        resources += subjects
        for subject in subjects:
            if focus not in self._of_workloads and random.random() < 0.7:
                self._directed(random, focus, subject, resources)
        if random.random() < 0.2:
            text = orjson.dumps([resource for resource in resources if random.random() < 0.7]).decode()
            resources += orjson.loads(_GROUP.sub(r"\1-2", text))
        known = {name: copied(list(self.baselines.stated.get(name, ()))) for name in _STATED}
        return {"resources": resources, **known}

    def _subject(self, random: Random, focus: Policy, suffix: str) -> JsonObject:
        """A resource that a policy judges, in the spelling of its header."""
        judged = random.choice(focus.header.judges)
        if judged.type in _STATEMENTS:
            return self._made(random, random.choice(self._types or [WORKSPACE_TYPE]))
        fitting_ones = [known for known in self._by_type.get(judged.type.lower(), ()) if _taken(judged, known)]
        if fitting_ones and random.random() < 0.8:
            return _renamed(random.choice(fitting_ones), suffix)
        resource = self._made(random, judged.type)
        for pointer, allowed in judged.where.items():
            put(resource, place_of(random, resource, pointer), random.choice(allowed))
        return resource

    def _wild(self, random: Random) -> JsonObject:
        """Resources of types that are judged, with anything inside."""
        resources = [copied_object(workspace) for workspace in self._by_type.get(WORKSPACE_TYPE, ())]
        for _ in range(random.randrange(1, 12)):
            resource = self._made(random, random.choice(self._types or [WORKSPACE_TYPE]))
            for key in ("properties", "tags", "kind", "sku", "location"):
                if random.random() < 0.4:
                    resource[key] = {"properties": odd(random)} if key == "properties" else odd(random)
            resources.append(resource)
        return {"resources": resources}

    def _made(self, random: Random, kind: str) -> JsonObject:
        """A resource of a type: a renamed baseline, or an empty one with the id that such a resource has."""
        if known := self._by_type.get(kind.lower()):
            return _renamed(random.choice(known), f"-{random.randrange(6)}")
        namespace, *kinds = kind.split("/")
        above = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
        names = "".join(f"/{part}/{'ws' if part == 'workspaces' else f'x{random.randrange(6)}'}" for part in kinds)
        identity = f"{above}/providers/{namespace}{names or '/x'}"
        return {"id": identity, "name": identity.rpartition("/")[2], "type": kind, "properties": {}}

    def _edit(self, random: Random, document: JsonObject, focus: Policy) -> None:
        """Edits of the resources, from a few of them to most, and now and then of what is stated beside them."""
        resources: list[JsonObject] = document["resources"]
        share = random.choice((0.1, 0.4, 0.7))
        for resource in resources:
            while random.random() < share:
                kind = str(resource.get("type", "")).lower()
                policies = self._judging.get(kind, [])
                if policies and random.random() < 0.8:
                    policy = focus if focus in policies and random.random() < 0.6 else random.choice(policies)
                    self._directed(random, policy, resource, resources)
                else:
                    edit_somewhere(random, resource)
        if random.random() < 0.1:
            document["incomplete"] = ["roles: forbidden"]
        if resources and random.random() < 0.15:
            respelled(random, random.choice(resources))
        random.shuffle(resources)
        document["resources"] = list({str(resource["id"]).lower(): resource for resource in resources}.values())

    def _directed(self, random: Random, policy: Policy, resource: JsonObject, resources: list[JsonObject]) -> None:
        """Change something that a policy looks at when it judges the resource."""
        pointers = policy.header.inspects if random.random() < 0.9 else pointers_of(policy)
        pointer = random.choice(pointers or ("/properties",))
        holder = resource
        if pointer.startswith("workspace:"):
            home = (workspace_of(str(resource["id"])) or "").lower()
            holder = next((other for other in resources if str(other["id"]).lower() == home), resource)
        place = place_of(random, holder, pointer.removeprefix("workspace:"))
        if not place or place[0] in ("id", "type"):
            return
        if random.random() < 0.2:
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
            word = random.choice(self._spoken(random, policy) or [odd(random)])
            return copied(word) if random.random() < 0.8 else altered(random, copied(word))
        return odd(random)

    def _spoken(self, random: Random, policy: Policy) -> Sequence[Json]:
        """Words of a policy: its own, those of what it imports, or some names of each table of facts that it reads."""
        words = self.vocabulary.words[policy.id]
        names = [random.choice(table) for table in words.tables for _ in range(4)]
        kinds: list[Sequence[Json]] = [kind for kind in (words.own, words.own, words.borrowed, names) if kind]
        return random.choice(kinds) if kinds else []

    @cached_property
    def _of_workloads(self) -> list[Policy]:
        """The policies that judge what the organisation states."""
        return [
            policy for policy in self.bundle.policies if {judged.type for judged in policy.header.judges} & _STATEMENTS
        ]

    @cached_property
    def _judging(self) -> dict[str, list[Policy]]:
        """The policies by the lower-case type that they judge."""
        judging: dict[str, list[Policy]] = {}
        for policy in self.bundle.policies:
            for kind in dict.fromkeys(judged.type.lower() for judged in policy.header.judges):
                judging.setdefault(kind, []).append(policy)
        return judging


def _taken(judged: Judged, resource: JsonObject) -> bool:
    """Whether a resource is one that a header narrows its type to."""
    stated_values = {pointer: str(value_at(resource, pointer)).lower() for pointer in judged.where}
    return all(
        stated_values[pointer] in {str(one).lower() for one in allowed} for pointer, allowed in judged.where.items()
    )


def copied_object(document: JsonObject) -> JsonObject:
    """A deep copy of a JSON object."""
    duplicate: JsonObject = orjson.loads(orjson.dumps(document))
    return duplicate


def respelled(random: Random, resource: JsonObject) -> None:
    """Write the id or the type of a resource in other letters; it stays the same resource."""
    key = random.choice(("id", "type"))
    resource[key] = random.choice((str.upper, str.lower, str.title))(str(resource[key]))


def _renamed(resource: JsonObject, suffix: str) -> JsonObject:
    duplicate = copied_object(resource)
    duplicate["id"] = f"{duplicate['id']}{suffix}"
    if isinstance(duplicate.get("name"), str):
        duplicate["name"] += suffix
    return duplicate


def examples_of(bundle: Bundle, seed: int) -> Iterator[Example]:
    """Examples without end: the same ones for the same seed and bundle, however many are taken."""
    source = Examples(bundle)
    number = 0
    while True:
        # The text is hashed by `random` itself, so neighbouring seeds share nothing.
        yield source.drawn(Random(f"{seed}/{number}"))  # noqa: S311  # nothing here is secret
        number += 1
