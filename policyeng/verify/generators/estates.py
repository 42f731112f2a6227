"""Generate snapshots: resources in workspaces, and what an organization states about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from random import Random
from typing import get_args

import orjson

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.cases import DEFAULT_AS_OF, STATED, Baselines, Case, baselines_of, estate, read_cases
from policyeng.bundle.header import TargetType, Verdict
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.evaluation.pointers import value_at
from policyeng.facts.coverage import SPELLED
from policyeng.models import WORKSPACE_TYPE, JsonObject, Model, Outcome, Purpose, Snapshot, Target, lowered
from policyeng.models.documents import Accelerator, Cadence, Feature
from policyeng.parsing.json_pointer import merged
from policyeng.testing.observed_reads import observe
from policyeng.verify.generators.json_mutations import ODD_TEXTS, Json, copied, draw_boolean
from policyeng.verify.generators.vocabulary import KINDS, Entries, Vocabulary, vocabulary_of


@dataclass(frozen=True, slots=True)
class Scene:
    """One case of a policy as edits of baselines.

    Attributes:
        verdict: the expected outcome.
        edits: merge patches, by the stem of the baseline.
        edited: the baselines after these patches, by the same stems.
        removed: the stems of baselines that the case leaves out.
        needs: the stems of baselines that the case depends on.
        stated: the statements that replace those of the baselines, by kind; only the kinds that the case states.
    """

    verdict: Verdict
    edits: Mapping[str, JsonObject]
    edited: Mapping[str, JsonObject]
    removed: frozenset[str]
    needs: frozenset[str]
    stated: Mapping[str, list[JsonObject]]
    parameters: JsonObject
    as_of: datetime


class Links:
    """The references between baselines: what is left out of a snapshot must not be referenced by the rest."""

    def __init__(self, baselines: Baselines) -> None:
        self._ids = {stem: lowered(str(one.get("id"))).encode() for stem, one in baselines.resources.items()}
        self._names = {stem: _as_value(identity.rpartition(b"/")[2]) for stem, identity in self._ids.items()}
        self._named = {stem: self.named(resource) for stem, resource in baselines.resources.items()}

    def named(self, document: JsonObject) -> frozenset[str]:
        """Return the stems of the baselines whose ids occur in a document."""
        text = orjson.dumps(document).lower()
        return frozenset(stem for stem, identity in self._ids.items() if identity in text)

    def called(self, document: JsonObject) -> frozenset[str]:
        """Return the stems of the baselines that a document refers to by name, such as `azureml:cluster`."""
        text = orjson.dumps(document).lower()
        return frozenset(stem for stem, name in self._names.items() if name.search(text))

    def around(self, stems: Iterable[str]) -> frozenset[str]:
        """Return some baselines with all that they refer to, directly or not."""
        waiting, found = set(stems), set[str]()
        while waiting:
            stem = waiting.pop()
            found.add(stem)
            waiting |= self._named.get(stem, frozenset()) - found
        return frozenset(found)

    def of_ids(self, ids: Iterable[str]) -> Iterator[str]:
        """Yield the stems of the baselines with some lower-case ids."""
        wanted = {identity.encode() for identity in ids}
        return (stem for stem, identity in self._ids.items() if identity in wanted)


def _as_value(name: bytes) -> re.Pattern[bytes]:
    """Return a pattern for a name as a complete JSON string, with an optional prefix as in references."""
    return re.compile(rb'"(?:[^":]*:)?' + re.escape(name) + rb'"(?!\s*:)')


def list_scenes(bundle: Bundle, policy: Policy, baselines: Baselines, links: Links) -> Iterator[Scene]:
    """Yield every case of a policy as a scene; none if it has no cases.

    Raises:
        BundleError: its `cases.yaml` is not well formed.
    """
    file, read = read_cases(policy), observe(bundle, policy).resources
    for verdict, name, case in file.named() if file else ():
        stems = set(links.of_ids(read.get(name, ())))
        yield _build_scene(stems, verdict, case, baselines, links, f"{policy.cases}: {name}")


def _build_scene(
    read: Collection[str], verdict: Verdict, case: Case, baselines: Baselines, links: Links, place: str
) -> Scene:
    edits = dict(case.with_)
    if case.baseline is not None:
        edits[case.baseline] = merged(edits.get(case.baseline, {}), case.patch, keep_null=True)
    touched = {stem: one for stem, one in baselines.resources.items() if stem in edits or stem in case.remove}
    snapshot = estate(Baselines(touched), case, place)
    edited = dict(zip(sorted(touched.keys() - set(case.remove)), snapshot.resources, strict=True))
    given = [kind for kind in STATED if getattr(case, kind) is not None]
    stated = {kind: [plain(entry) for entry in getattr(snapshot, kind)] for kind in given}
    documents = [*edits.values(), *(entry for entries in stated.values() for entry in entries)]
    stems = {*edited, *read, *(stem for document in documents for stem in links.called(document))}
    stems |= {stem for document in (*edited.values(), *documents) for stem in links.named(document)}
    return Scene(
        verdict=verdict,
        edits=edits,
        edited=edited,
        removed=frozenset(case.remove),
        needs=links.around(stems) - set(case.remove),
        stated=stated,
        parameters=case.parameters,
        as_of=case.as_of or DEFAULT_AS_OF,
    )


def plain(entry: Model) -> JsonObject:
    """Return a model as in a native snapshot, without the fields that are not set."""
    return entry.model_dump(mode="json", by_alias=True, exclude_none=True)


_CHOICES = {"purpose": Purpose, "target": Target, "accelerator": Accelerator, "cadence": Cadence}
_SCOPE_LENGTHS = (2, 4, 8, 8, 4, 2, 6, 10)
#: Tags that policies may read, and their values.
TAGS = ("environment", "stage", "data-classification", "Environment", "owner")
_PEOPLE = ("ann@contoso.example", " Ann@CONTOSO.example", "77777777-7777-7777-7777-777777777777", "bob", "")
TAG_VALUES = ("dev", "test", " Production", "STAGING", "regulated", "Confidential", "internal", "")


@dataclass(frozen=True, slots=True)
class StatementChoice:
    """The requirements for statements.

    Attributes:
        words: the words of the policies.
        as_of: the evaluation clock.
        focus: a policy that evaluates statements; most of them should meet its conditions.
        own: the words of the policy in focus.
        policies: the ids that evidence can be for.
    """

    words: Sequence[str]
    as_of: datetime
    focus: Policy | None
    own: Sequence[Json] = ()
    policies: Sequence[str] = ()


def draw_statements(random: Random, document: JsonObject, choice: StatementChoice) -> JsonObject:
    """Return a few approvals, workloads and entries of evidence for a document, with its own sometimes in addition."""
    workloads = random.randrange(4, 12) if choice.focus else random.randrange(4)
    made: JsonObject = {
        "approvals": [_approval(random, number, document, choice) for number in range(random.randrange(4))],
        "workloads": [_workload(random, number, document, choice) for number in range(workloads)],
    }
    own = Random(repr(made))  # noqa: S311  # so that a seed gives the same approvals and workloads as before
    for entry in made["approvals"]:
        if draw_boolean(own, 0.2):
            entry |= {"kind": own.choice(("model", "Model")), "model": own.choice(_models(document))}
    made["evidence"] = [_evidence(own, number, document, choice) for number in range(own.randrange(4))]
    for name, entries in made.items():
        entries += [entry for entry in document.get(name, ()) if draw_boolean(random, 0.5)]
    if draw_boolean(random, 0.3):
        made["takenAt"] = _time(random, choice.as_of)
    return made


def _models(document: JsonObject) -> list[str]:
    """Return the models that deployments of a document name, and one that none names."""
    named = [value_at(one, "/properties/model") for one in document.get("resources", ())]
    return ["azureml:other:1", *(one for one in named if isinstance(one, str))]


def _approval(random: Random, number: int, document: JsonObject, choice: StatementChoice) -> JsonObject:
    scope = _identity(random, document)
    if draw_boolean(random, 0.8):
        scope = "/".join(scope.split("/")[: random.choice(_SCOPE_LENGTHS) + 1])
    approval: JsonObject = {
        "id": f"R-{number}",
        "kind": random.choice(("vmSeries", "vmSeries", "vmseries", "VMSERIES ", "quota", "")),
        "series": _word(random, choice.words, ("M", "m", "NCsv3", " ND ", "NDv2", "FSv2")),
        "scope": random.choice((scope, scope, scope.upper(), f"{scope}/", f"{scope}-2", "/", "", scope[1:])),
        "status": random.choice(("granted", "granted", "granted", "requested", "denied", "revoked")),
    }
    if draw_boolean(random, 0.5):
        approval["region"] = _word(random, choice.words, ("eastus", "East US", "EASTUS ", "westeurope", "", " "))
    for name in ("grantedAt", "expiresAt"):
        if draw_boolean(random, 0.6):
            approval[name] = _time(random, choice.as_of)
    for name in ("requestedBy", "approvedBy"):
        if draw_boolean(random, 0.8):
            approval[name] = random.choice(_PEOPLE)
    return approval


def _evidence(random: Random, number: int, document: JsonObject, choice: StatementChoice) -> JsonObject:
    scope = _identity(random, document)
    subject = random.choice(choice.policies) if choice.policies else "mcsb-v1:NS-2"
    given = timedelta(days=random.choice((-400, -365, -364, -30, 0, 1)))
    clock = min(
        max(choice.as_of, datetime(3, 1, 1, tzinfo=UTC)), datetime(9990, 1, 1, tzinfo=UTC)
    )  # the calendar has an end
    expires = given + timedelta(days=random.choice((1, 30, 364, 365)))
    return {
        "id": f"E-{number}",
        "for": random.choice((subject, subject, subject.lower(), "mcsb-v1:NS-2")),
        "scope": random.choice(("-", scope, scope.upper(), "/".join(scope.split("/")[:3]), f"{scope}-2")),
        "statement": "a restart was tested",
        "givenBy": random.choice(_PEOPLE[:4]),
        "givenAt": (clock + given).isoformat(),
        "expiresAt": (clock + expires).isoformat(),
    }


def _time(random: Random, as_of: datetime) -> str:
    """Return a moment near the clock, or as far from it as the calendar allows."""
    if draw_boolean(random, 0.1):
        return random.choice(
            ("0001-01-01T00:00:00Z", "1677-12-31T23:59:59Z", "2262-04-12T00:00:00Z", "9999-12-31T23:59:59Z")
        )
    seconds = random.choice((0.0, 0.000001, -0.000001, 1.0, -1.0, 86400.0, -86400.0, 3.2e7, -3.2e7))
    text = (as_of + timedelta(seconds=seconds)).isoformat()
    return text.replace("+00:00", "Z") if draw_boolean(random, 0.7) else text


def _workload(random: Random, number: int, document: JsonObject, choice: StatementChoice) -> JsonObject:
    workload: JsonObject = {"id": f"w-{number}"}
    for name, kind in _CHOICES.items():
        if draw_boolean(random, 0.85):
            workload[name] = _one_of(random, get_args(kind), choice.own)
    if choice.focus and draw_boolean(random, 0.7):
        workload |= _narrowed(random, choice.focus)
    if draw_boolean(random, 0.8):
        workload["workspaceId"] = _workspace(random, document)
    if draw_boolean(random, 0.3):
        workload["sourceId"] = _identity(random, document)
    if draw_boolean(random, 0.6):
        workload["tags"] = {
            random.choice(TAGS): _word(random, choice.words, TAG_VALUES) for _ in range(random.randrange(1, 3))
        }
    if draw_boolean(random, 0.3):
        workload["model"] = {
            "sizeGiB": random.choice((0, 0.5, 8, 1e6)),
            "memoryGiB": random.choice((0, 47.9, 48, 48.1)),
        }
    if draw_boolean(random, 0.7 if choice.focus else 0.3):
        workload["features"] = [_one_of(random, get_args(Feature), choice.own) for _ in range(random.randrange(4))]
    return workload


def _one_of(random: Random, allowed: Sequence[str], own: Sequence[Json]) -> str:
    """Return a word that the model allows, preferably one of the policy in focus."""
    spoken = [word for word in allowed if word in own]
    return random.choice(spoken) if spoken and draw_boolean(random, 0.4) else random.choice(allowed)


def _narrowed(random: Random, focus: Policy) -> JsonObject:
    """Return members with which a declared workload meets a policy's conditions, in words that the model allows."""
    target = random.choice(
        [target for target in focus.header.judges if target.type == "workload"] or [TargetType(type="x")]
    )
    chosen = {pointer[1:]: random.choice(allowed) for pointer, allowed in target.where.items()}
    return {name: value for name, value in chosen.items() if value in get_args(_CHOICES.get(name))}


def _word(random: Random, words: Sequence[str], usual: Sequence[str]) -> str:
    kind = random.random()
    if kind < 0.75 or not words:
        return random.choice(usual)
    return random.choice(words) if kind < 0.95 else random.choice(ODD_TEXTS)


def _identity(random: Random, document: JsonObject) -> str:
    resources = document["resources"]
    return str(random.choice(resources)["id"]) if resources else "/subscriptions/s"


def _workspace(random: Random, document: JsonObject) -> str:
    spaces = [str(entry["id"]) for entry in document["resources"] if str(entry["type"]).lower().endswith("/workspaces")]
    identity = random.choice(spaces) if spaces else _identity(random, document)
    return identity.swapcase() if draw_boolean(random, 0.2) else identity


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
    def known(self) -> Baselines:
        """All baselines, which the cases refer to."""
        return baselines_of(self.bundle)

    @cached_property
    def baselines(self) -> Baselines:
        """The baselines that other snapshots are edits of: those that may matter to an active policy."""
        named = {stem for scenes in self.scenes.values() for scene in scenes for stem in (*scene.needs, *scene.removed)}
        kinds = _find_relevant_types(self.bundle)
        kept = {
            stem: resource
            for stem, resource in self.known.resources.items()
            if stem in named or not kinds.isdisjoint(_list_prefixes(lowered(str(resource.get("type", "")))))
        }
        return Baselines(kept, self.known.stated)

    @cached_property
    def links(self) -> Links:
        """The references between all baselines."""
        return Links(self.known)

    @cached_property
    def scenes(self) -> dict[str, list[Scene]]:
        """Every case as a scene, by policy id, except for policies without cases."""
        given = self.known, self.links
        found = {policy.id: list(list_scenes(self.bundle, policy, *given)) for policy in self.bundle.policies}
        return {identity: scenes for identity, scenes in found.items() if scenes}

    @cached_property
    def at_rest(self) -> frozenset[str]:
        """The ids of the policies that pass on the unchanged baselines."""
        snapshot = Snapshot.model_validate({**self.stated(), "resources": tuple(self.baselines.resources.values())})
        findings = evaluate(self.bundle, snapshot, EvaluationOptions(DEFAULT_AS_OF)).findings
        return frozenset(finding.policy for finding in findings if finding.outcome is Outcome.PASS)

    @cached_property
    def cases(self) -> dict[str, list[tuple[Case, JsonObject]]]:
        """Every case with its complete snapshot as a document, by policy id."""
        found: dict[str, list[tuple[Case, JsonObject]]] = {}
        for policy in self.bundle.policies:
            file = read_cases(policy)
            for _, name, case in file.named() if file else ():
                snapshot = estate(self.known, case, f"{policy.cases}: {name}")
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
        types = {target.type for policy in self.bundle.policies for target in policy.header.judges}
        return sorted(types - STATEMENTS - {DOCUMENT})

    @cached_property
    def by_type(self) -> dict[str, list[JsonObject]]:
        """The baselines, by lower-case type."""
        by_type: dict[str, list[JsonObject]] = {}
        for resource in self.baselines.resources.values():
            by_type.setdefault(lowered(str(resource.get("type", ""))), []).append(resource)
        return by_type

    @cached_property
    def policies_by_type(self) -> dict[str, list[Policy]]:
        """The policies, by the lower-case type that they select."""
        policies_by_type: dict[str, list[Policy]] = {}
        for policy in self.bundle.policies:
            for kind in dict.fromkeys(lowered(target.type) for target in policy.header.judges):
                policies_by_type.setdefault(kind, []).append(policy)
        return policies_by_type

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


def _find_relevant_types(bundle: Bundle) -> frozenset[str]:
    """Return the lower-case types, or their namespaces, that active policies select or may look up."""
    kinds = {WORKSPACE_TYPE}
    for policy, reach in zip(bundle.policies, bundle.reaches, strict=True):
        evaluated = {lowered(target.type) for target in policy.header.judges}
        kinds |= evaluated | reach.types
        if reach.others or reach.workloads or evaluated & STATEMENTS:
            kinds |= SPELLED.keys()
    return frozenset(kinds)


def _list_prefixes(kind: str) -> tuple[str, str]:
    """Return a type and its namespace."""
    return kind, kind.partition("/")[0]


def subjects(policy: Policy, resources: Iterable[JsonObject]) -> list[str]:
    """Return the ids of the resources that a policy selects."""
    return [str(resource["id"]) for resource in resources if is_selected(policy, resource)]


def is_selected(policy: Policy, resource: JsonObject) -> bool:
    """Check whether a policy selects a resource."""
    kind = lowered(str(resource.get("type", "")))
    return any(lowered(target.type) == kind and fits(target, resource) for target in policy.header.judges)


def fits(target: TargetType, resource: JsonObject) -> bool:
    """Check whether a resource of the type meets the conditions of an entry of `judges`."""
    there = {pointer: lowered(str(value_at(resource, pointer))) for pointer in target.where}
    return all(there[pointer] in {lowered(str(one)) for one in allowed} for pointer, allowed in target.where.items())


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
