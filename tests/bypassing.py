"""Edits that somebody who wants past the gate would make of a denied change; none of them may get it allowed.

A change is denied, and then sent again as ARM would still take it: with other letters, under other names, next to
harmless ones, in another format, as an object of a cluster in any version. `python -m tests.bypassing 5000 1` tries
that many edits from a seed.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, NamedTuple

import orjson

import policyeng
from policyeng import admit
from policyeng.bundle import Bundle, Policy
from policyeng.bundle.cases import baselines_of, read_cases
from policyeng.errors import InputError, PolicyengError
from policyeng.evaluation.pointers import overlap
from policyeng.facts.ids import fold_id
from policyeng.models import WORKSPACE_TYPE, Blame, Change, Decision, JsonObject, Snapshot, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.server.admission_review import ReviewedObject, convert_request, request_in, request_of
from policyeng.sources import DocumentContext, parse_changes
from policyeng.sources.kubernetes.aso_fields import COMPUTES
from policyeng.sources.kubernetes.single_object import BesideSnapshot
from policyeng.testing.observed_reads import observe
from policyeng.testing.runner import prepared_cases
from policyeng.verify.generators.examples import Examples
from tests.carriers import CHANGE_WRAPPINGS, wrapped
from tests.cluster import READ_KINDS as CLUSTER_KINDS
from tests.cluster import object_of_resource, review_of
from tests.laws.changing import changes_of_estate

Place = tuple[str | int, ...]
_WORKSPACE = "workspace:"
#: Below these the names are the user's, and each has a meaning.
_USERS = ("tags", "jobs", "inputs", "outputs", "environmentVariables", "traffic", "userAssignedIdentities", "kvTags")


@dataclass(frozen=True)
class Denied:
    """A change that is denied.

    Attributes:
        before: the state.
        change: one, in the form of `{"operation": ...}`.
        compliant: the resource as it may be; empty where none is known.
        policies: those that deny it.
    """

    name: str
    bundle: Bundle
    before: Snapshot
    change: JsonObject
    as_of: datetime
    parameters: Mapping[str, JsonObject]
    compliant: JsonObject = field(default_factory=dict)
    policies: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        """Where the change has what is written."""
        return "patch" if "patch" in self.change else "resource"

    @property
    def written(self) -> JsonObject:
        """The resource or the patch."""
        written: JsonObject = self.change[self.key]
        return written

    @property
    def existing(self) -> JsonObject | None:
        """The resource with the id before the change."""
        key = fold_id(self.change["id"])
        return next((one for one in self.before.resources if fold_id(str(one.get("id"))) == key), None)

    @property
    def arm_type(self) -> str:
        """The type of what is changed, in lower case."""
        return lowered(str((self.change.get("resource") or self.existing or {}).get("type")))

    def decided(self, changes: Any, prior: Sequence[Change] = ()) -> Decision:
        """The decision on changes, after others that have been made already."""
        options: JsonObject = {"before": prior, "blame": Blame.INTRODUCED} if prior else {}
        return admit(self.bundle, self.before, changes, as_of=self.as_of, parameters=self.parameters, **options)

    def sent(self, content: bytes, context: DocumentContext | None = None) -> Decision:
        """The decision on a document, as `policyeng admit` reads it."""
        read = parse_changes(content, "change.json", context=context)
        return self.decided(read)


class Edit(NamedTuple):
    """A denied change in another form.

    Attributes:
        sent: changes for the evaluator in process, or a document.
        may_be_silent: it is of a format that cannot state all, so that what was denied may be undecided.
        prior: changes that have been made of the state already, as a stored object shows.
        like: what is no weaker in its place; this edit may do what it may.
    """

    sent: list[Any] | bytes
    context: DocumentContext | None = None
    may_be_silent: bool = False
    prior: tuple[Change, ...] = ()
    like: list[Any] | None = None


Editing = Callable[[Random, Denied], Edit | None]
EDITS: dict[str, Editing] = {}


def edit(made: Editing) -> Editing:
    """Have an edit tried."""
    EDITS[made.__name__.strip("_")] = made
    return made


# ---------------------------------------------------------------- places


def objects(value: object, at: Place = ()) -> Iterator[tuple[Place, JsonObject]]:
    """The objects in a document with their places, those aside whose keys are the user's."""
    if isinstance(value, dict):
        if not at or at[-1] not in _USERS:
            yield at, value
        for key, inner in value.items():
            yield from objects(inner, (*at, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from objects(inner, (*at, index))


def leaves(value: object, at: Place = ()) -> Iterator[tuple[Place, object]]:
    """The values in a document that contain no others."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*at, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*at, index))
    else:
        yield at, value


def at(document: Any, place: Place) -> Any:
    """The value at a place; None where there is none."""
    for step in place:
        try:
            document = document[step]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def with_value(document: Any, place: Place, value: object) -> Any:
    """A copy with something else at a place."""
    if not place:
        return value
    copy: Any = dict(document) if isinstance(document, dict) else list(document)
    copy[place[0]] = with_value(copy[place[0]], place[1:], value)
    return copy


def pointers_read(bundle: Bundle) -> dict[str, set[str]]:
    """The pointers that policies read, by the lower-case type of the resource."""
    found: dict[str, set[str]] = {}
    for policy in bundle.policies:
        read = observe(bundle, policy)
        own = {lowered(target.type): read.own for target in policy.header.judges}
        for pointers in (own, read.others, {WORKSPACE_TYPE: read.workspace}):
            for arm_type, several in pointers.items():
                found.setdefault(arm_type, set()).update(several)
    return found


def looks_at(denied: Denied, place: Place) -> bool:
    """Whether some policy looks at a place, above it or below it."""
    pointer = "".join(f"/{escaped(step)}" for step in place)
    return any(overlap(pointer, other) for other in pointers_read(denied.bundle).get(denied.arm_type, ()))


def other_letters(random: Random, text: str) -> str:
    """A text in other letters."""
    return random.choice((str.upper, str.lower, str.swapcase, lambda one: one[:1].swapcase() + one[1:]))(text)


def again(denied: Denied, written: object, **more: object) -> Edit:
    """The change with something else written, read as a document or given in process."""
    return Edit([{**denied.change, denied.key: written, **more}])


# ---------------------------------------------------------------- members


@edit
def _members_beside(random: Random, denied: Denied) -> Edit | None:
    """Unknown members, called nearly as those that are looked at, with what would be compliant."""
    written = denied.written
    for _ in range(random.choice((1, 3, 10))):
        place, holder = random.choice(list(objects(written)))
        names = [key for key in holder if isinstance(holder[key], str | int | bool)] or ["x"]
        name = random.choice(names)
        near = random.choice(
            (
                f" {name}",
                f"{name} ",
                f"{name}2",
                f"_{name}",
                name[:-1],
                name.replace("e", "\u0435"),
                f"{name}\u200b",
                f"x-{name}",
            )
        )
        if near in holder or not near or looks_at(denied, (*place, near)) or lowered(near) in map(lowered, holder):
            continue
        value: object = random.choice((at(denied.compliant, (*place, name)), "Disabled", True, {}, [name]))
        written = with_value(written, place, {**holder, near: value})
    return again(denied, written)


@edit
def _members_in_other_letters(random: Random, denied: Denied) -> Edit | None:
    """ARM reads the names of members without case."""

    def respelled(value: Any, here: Place = ()) -> Any:
        if isinstance(value, list):
            return [respelled(inner, (*here, index)) for index, inner in enumerate(value)]
        if not isinstance(value, dict):
            return value
        own = here and here[-1] in _USERS
        return {
            key
            if own or (not here and key in ("id", "type")) or random.random() < keep
            else other_letters(random, key): respelled(inner, (*here, key))
            for key, inner in value.items()
        }

    keep = random.choice((0.0, 0.5, 0.9))
    return again(denied, respelled(denied.written))


@edit
def _members_twice(random: Random, denied: Denied) -> Edit | None:
    """A member once more in other letters, with what would be compliant."""
    place, holder = random.choice(list(objects(denied.written)))
    known = [key for key in holder if holder[key] is not None and looks_at(denied, (*place, key))]
    if not known:
        return None
    key = random.choice(known)
    twin = next((one for one in (key.upper(), key.lower(), key.swapcase()) if one not in holder), "")
    if not twin:
        return None
    value = at(denied.compliant, (*place, key))
    entries = list(holder.items())
    entries.insert(random.randrange(len(entries) + 1), (twin, value))
    if random.random() < 0.5:  # the odd one is what was denied
        entries = [(one, holder[key] if one == twin else value if one == key else inner) for one, inner in entries]
    return again(denied, with_value(denied.written, place, dict(entries)))


@edit
def _keys_twice(random: Random, denied: Denied) -> Edit | None:
    """One key twice in one object, which only the bytes can show."""
    found = [(place, key) for place, holder in objects(denied.written) for key in holder]
    if not found:
        return None
    place, key = random.choice(found)
    mark = "\u0001mark"
    holder = at(denied.written, place)
    entries = [(mark if one == key else one, inner) for one, inner in holder.items()]
    entries.insert(random.choice((0, len(entries))), (key, at(denied.compliant, (*place, key))))
    content = orjson.dumps([{**denied.change, denied.key: with_value(denied.written, place, dict(entries))}])
    return Edit(content.replace(orjson.dumps(mark), orjson.dumps(key)))


@edit
def _order(random: Random, denied: Denied) -> Edit | None:
    """Other orders of members."""

    def shuffled(value: Any) -> Any:
        if isinstance(value, list):
            return [shuffled(inner) for inner in value]
        if not isinstance(value, dict):
            return value
        entries = list(value.items())
        random.shuffle(entries)
        return {key: shuffled(inner) for key, inner in entries}

    return again(denied, shuffled(denied.written))


@edit
def _junk(random: Random, denied: Denied) -> Edit | None:
    """A lot of what means nothing."""
    junk: Any = "x" * random.choice((1, 10_000))
    for _ in range(random.choice((1, 20, 60))):
        junk = random.choice(({"properties": junk}, [junk], {"publicNetworkAccess": "Disabled", "a": junk}))
    holders = [(place, holder) for place, holder in objects(denied.written) if not looks_at(denied, (*place, "junk"))]
    if not holders:
        return None
    place, holder = random.choice(holders)
    return again(denied, with_value(denied.written, place, {**holder, "junk": junk}))


# ---------------------------------------------------------------- ids and types


@edit
def _ids_in_other_forms(random: Random, denied: Denied) -> Edit | None:
    """Other letters, slashes, escapes and spaces in the id, the type, or both."""
    identity: str = denied.change["id"].rstrip("/")
    name = identity.rpartition("/")[2]
    kind = identity.split("/")[-2]
    ways = (
        other_letters(random, identity),
        f"{identity}/",
        f"{identity}//",
        f"/{identity}",
        f" {identity}",
        f"{identity} ",
        f"{identity}?api-version=2025-12-01",
        f"{identity}#",
        identity.replace(f"/{name}", f"//{name}"),
        identity.replace(f"/{kind}/", f"/%{ord(kind[0]):02x}{kind[1:]}/"),
        identity.replace(f"/{name}", f"/%{ord(name[0]):02X}{name[1:]}"),
        identity.replace(f"/{name}", f"/other/../{name}"),
        identity.replace(f"/{name}", f"/./{name}"),
        identity.replace(f"/{kind}/", f"/{kind}\u200b/"),
    )
    other = random.choice(ways)
    written = denied.written
    if denied.key == "resource":
        written = {**written, "id": other}
        if random.random() < 0.4:
            written["type"] = random.choice(
                (
                    other_letters(random, written["type"]),
                    f"{written['type']} ",
                    f" {written['type']}",
                    f"{written['type']}/",
                    "Microsoft.Resources/tags",
                    "/".join(
                        (other.split("/providers/")[-1].split("/")[0], *other.split("/providers/")[-1].split("/")[1::2])
                    ),
                    written["type"].replace("e", "\u0435", 1),
                )
            )
    return again(denied, written, id=other)


# ---------------------------------------------------------------- values


@edit
def _values_in_other_letters(random: Random, denied: Denied) -> Edit | None:
    """ARM reads the words of enumerations and the names of sizes without case."""
    found = [
        (place, value)
        for place, value in leaves(denied.written)
        if isinstance(value, str) and place[0] not in ("id", "type")
    ]
    if not found:
        return None
    written = denied.written
    for place, value in random.sample(found, min(len(found), random.choice((1, 2, 50)))):
        if looks_at(denied, place):
            written = with_value(written, place, other_letters(random, value))
    return again(denied, written)


@edit
def _values_with_spaces(random: Random, denied: Denied) -> Edit | None:
    """White space around what is denied."""
    found = [
        (place, value)
        for place, value in leaves(denied.written)
        if isinstance(value, str) and place[0] not in ("id", "type") and looks_at(denied, place)
    ]
    if not found:
        return None
    place, value = random.choice(found)
    other = random.choice((f" {value}", f"{value} ", f"\t{value}\n", f"{value}\u00a0"))
    return again(denied, with_value(denied.written, place, other))


@edit
def _numbers_in_other_forms(random: Random, denied: Denied) -> Edit | None:
    """`4` as `4.0`, and as text, which ARM makes a number of; so with true and false."""
    found = [
        (place, value)
        for place, value in leaves(denied.written)
        if isinstance(value, int | float) and looks_at(denied, place)
    ]
    if not found:
        return None
    place, value = random.choice(found)
    forms: list[object] = [str(value).lower()]
    if not isinstance(value, bool) and value == int(value) and abs(value) < 2**53:
        forms += [float(value), float(value)]
    return again(denied, with_value(denied.written, place, random.choice(forms)))


# ---------------------------------------------------------------- operations


def _patching(denied: Denied) -> JsonObject | None:
    """The patch that makes what is denied of what is there."""
    existing = denied.existing
    if existing is None or denied.key == "patch":
        return None
    patch: JsonObject = _between(existing, denied.written)
    return patch


def _between(before: Any, after: Any) -> Any:
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return after
    patch = {key: _between(before.get(key), inner) for key, inner in after.items() if before.get(key) != inner}
    return patch | {key: None for key in before if key not in after}


def _has_null(value: object) -> bool:
    return any(leaf is None for _, leaf in leaves(value))


@edit
def _operations(random: Random, denied: Denied) -> Edit | None:
    """As another operation, or as several."""
    change, written = denied.change, denied.written
    identity = change["id"]
    if denied.key == "patch":
        parts = list(written.items())
        random.shuffle(parts)
        patches = [{**change, "patch": {key: value}} for key, value in parts] or [change]
        return Edit(random.choice((patches, [change, change], [{**change, "patch": {}}, change])))
    ways: list[list[Any]] = [
        [{**change, "operation": random.choice(("Create", "replace", "REPLACE"))}],
        [written],
        [change, change],
        [{**change, "resource": {**written, "properties": {}}}, change],
    ]
    below = [one for one in denied.before.resources if fold_id(str(one.get("id"))).startswith(fold_id(identity) + "/")]
    if not below:
        ways.append([identity, change])
    patch = _patching(denied)
    if patch is not None and not _has_null(written):
        ways.append([{"operation": "patch", "id": identity, "patch": patch}])
        each = [{"operation": "patch", "id": identity, "patch": {key: value}} for key, value in patch.items()]
        ways += [each, each[::-1]] if each else []
    return Edit(random.choice(ways))


@edit
def _patch_in_other_letters(random: Random, denied: Denied) -> Edit | None:
    """A patch whose names are those that are there, but for case."""
    patch = denied.written if denied.key == "patch" else _patching(denied)
    if not patch or (denied.key == "resource" and _has_null(denied.written)):
        return None

    if len({lowered(key) for _, holder in objects(patch) for key in holder}) < len(
        {key for _, holder in objects(patch) for key in holder}
    ):
        return None  # it has names that differ only in case

    def spelled(value: Any, here: Place = ()) -> Any:
        if not isinstance(value, dict) or (here and here[-1] in _USERS and here[-1] != "tags"):
            return value
        return {other_letters(random, key): spelled(inner, (*here, key)) for key, inner in value.items()}

    return Edit([{"operation": "patch", "id": denied.change["id"], "patch": spelled(patch)}])


@edit
def _among_others(random: Random, denied: Denied) -> Edit | None:
    """Among changes that change nothing, or something that no policy looks at."""
    own = fold_id(denied.change["id"])
    others: list[Any] = [
        {"operation": "patch", "id": one["id"], "patch": {}}
        for one in random.sample(denied.before.resources, min(5, len(denied.before.resources)))
        if isinstance(one.get("id"), str) and fold_id(one["id"]) != own and lowered(str(one.get("type"))) != "x"
    ]
    others.insert(random.randrange(len(others) + 1), denied.change)
    return Edit(others)


# ---------------------------------------------------------------- formats


@edit
def _as_what_if(random: Random, denied: Denied) -> Edit | None:
    """As what-if output, with change types that do not fit, too."""
    if denied.key == "patch" or _has_null(denied.written):
        return None
    before = denied.existing
    entry: JsonObject = {
        "resourceId": denied.change["id"],
        "changeType": random.choice(("Create", "Modify", "Deploy", "modify", "NoChange", "Ignore")),
        "after": denied.written,
    }
    if before is not None:
        entry |= {"before": before, "delta": _delta(before, denied.written)}
    if entry["changeType"] in ("NoChange", "Ignore") and (before is None or not entry["delta"]):
        return None  # nothing changes indeed
    document: JsonObject = {"changes": [entry], "status": "Succeeded"}
    if random.random() < 0.3:
        document = {"status": "Succeeded", "properties": {"changes": [entry]}}
    return Edit(orjson.dumps(document), None, may_be_silent=True)


def _delta(before: JsonObject, after: JsonObject) -> list[JsonObject]:
    """The members that differ, as what-if has them."""
    kinds = {
        key: "Modify" if key in before and key in after else "Delete" if key in before else "Create"
        for key in {**before, **after}
    }
    return [
        {"path": key, "propertyChangeType": kind, "before": before.get(key), "after": after.get(key)}
        for key, kind in kinds.items()
        if before.get(key) != after.get(key)
    ]


@edit
def _as_template(random: Random, denied: Denied) -> Edit | None:  # noqa: ARG001  # nothing to choose
    """As a resource of an ARM template, if no text of it would be an expression."""
    written = denied.written
    identity: str = denied.change["id"]
    group, _, rest = identity.partition("/providers/")
    if denied.key == "patch" or not rest or "/providers/" in rest or len(group.split("/")) != 5:
        return None
    if any(isinstance(leaf, str) and leaf.startswith("[") for _, leaf in leaves(written)) or _has_null(written):
        return None
    names = "/".join(rest.split("/")[2::2])
    if str(written.get("name", names)) not in (names, names.rpartition("/")[2]):
        return None  # a template has one name, which is that of the id
    body = {key: value for key, value in written.items() if key not in ("id", "name", "type")}
    resource = {"type": written["type"], "apiVersion": "2025-12-01", "name": names, **body}
    schema = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"
    document = {"$schema": schema, "contentVersion": "1.0.0.0", "resources": [resource]}
    return Edit(orjson.dumps(document), DocumentContext(scope=group), may_be_silent=True)


@edit
def _as_plan(random: Random, denied: Denied) -> Edit | None:
    """As an `azapi_resource` of a Terraform plan, also one that states that nothing changes."""
    written = denied.written
    identity: str = denied.change["id"]
    if denied.key == "patch" or _has_null(written) or denied.existing is None:
        return None
    parent, _, name = identity.rpartition("/")
    parent = parent.rpartition("/")[0]
    if "/providers/" in parent and parent.partition("/providers/")[2].count("/") == 0:
        parent = parent.partition("/providers/")[0]

    def attributes(resource: JsonObject) -> JsonObject:
        body = {key: value for key, value in resource.items() if key in ("properties", "sku", "kind", "zones")}
        own: JsonObject = {key: resource[key] for key in ("location", "tags") if key in resource}
        return {
            "id": identity,
            "type": f"{written['type']}@2025-12-01",
            "name": name,
            "parent_id": parent,
            "body": body,
            **own,
        }

    address = {"address": "azapi_resource.it", "mode": "managed", "type": "azapi_resource", "name": "it"}
    after = attributes(written)
    planned = {**address, "values": after}
    actions = random.choice((["update"], ["update"], ["no-op"]))
    if actions == ["no-op"] and attributes(denied.existing) == after:
        return None  # nothing changes indeed
    change = {**address, "change": {"actions": actions, "before": attributes(denied.existing), "after": after}}
    document = {
        "format_version": "1.2",
        "planned_values": {"root_module": {"resources": [planned]}},
        "resource_changes": [change],
    }
    return Edit(orjson.dumps(document), None, may_be_silent=True)


@edit
def _in_carriers(random: Random, denied: Denied) -> Edit | None:
    """In the template of a deployment, a stack or a plan, in up to two other templates."""
    alone = _as_template(random, denied)
    if alone is None or alone.context is None or not isinstance(alone.sent, bytes):
        return None
    name = random.choice(sorted(CHANGE_WRAPPINGS))
    made = wrapped(random, orjson.loads(alone.sent), name, random.choice((0, 1, 2)), alone.context.scope)
    if made.is_stored:
        return None  # it is not deployed to the place of what is denied
    return alone._replace(sent=orjson.dumps(made.document))


# ---------------------------------------------------------------- objects of a cluster


def _document(resource: JsonObject, version: str) -> JsonObject:
    """The object of Azure Service Operator for a resource; the API server drops fields of later versions."""
    group, name, kind = CLUSTER_KINDS[lowered(str(resource["type"]))]
    written = object_of_resource(resource, group, name, kind, version)
    for compute_type, part in written["spec"]["properties"].items() if name == "workspacescompute" else ():
        if isinstance(stated := part.get("properties"), dict) and (variant := COMPUTES.get(lowered(compute_type))):
            later = {row.source[1:] for row in variant.table.newest} - {
                row.source[1:] for row in variant.table.of(version)
            }
            fields = {key: value for key, value in stated.items() if key not in later}
            written["spec"]["properties"] = {compute_type: {**part, "properties": fields}}
    return written


def _reviewed(denied: Denied, new: JsonObject, old: JsonObject | None) -> ReviewedObject:
    """What the webhook makes of a request on an object.

    Raises:
        InputError: it cannot be read, and is denied.
    """
    verb = "CREATE" if old is None else "UPDATE"
    request = request_of(request_in(review_of(verb, new, old)))
    return convert_request(request, BesideSnapshot(denied.before)) if request is not None else ReviewedObject()


def _cluster(denied: Denied, old: JsonObject | None, version: str) -> Edit:
    """A request on an object in a version; with what the same in the newest version, which is no weaker, requests."""
    new = _document(denied.written, version)
    newest = {"apiVersion": _document(denied.written, CLUSTER_KINDS[denied.arm_type][2].versions[-1])["apiVersion"]}
    reviewed = _reviewed(denied, new, old)
    like = _reviewed(denied, new | newest, old and old | newest)
    return Edit(list(reviewed.changes), None, prior=reviewed.prior, like=list(like.changes))


def _is_of_a_cluster(denied: Denied) -> bool:
    identity = str(denied.change["id"])
    return (
        denied.key == "resource" and denied.arm_type in CLUSTER_KINDS and identity.lower().startswith("/subscriptions/")
    )


@edit
def _as_an_object(random: Random, denied: Denied) -> Edit | None:
    """As an object of any version, which is made."""
    if not _is_of_a_cluster(denied):
        return None
    return _cluster(denied, None, random.choice(CLUSTER_KINDS[denied.arm_type][2].versions))


@edit
def _as_an_update(random: Random, denied: Denied) -> Edit | None:
    """As an update of an object that is anything but what is denied: of another version, empty, broken, compliant."""
    if not _is_of_a_cluster(denied) or not denied.compliant:
        return None
    versions = CLUSTER_KINDS[denied.arm_type][2].versions
    version = random.choice(versions)
    new, old = _document(denied.written, version), _document(denied.compliant, random.choice(versions))
    old["apiVersion"] = new["apiVersion"]  # the API server converts both to one
    spec = old["spec"]
    for _ in range(random.choice((0, 1, 3))):
        place, holder = random.choice([entry for entry in objects(spec) if entry[1]] or [((), spec)])
        key = random.choice(list(holder) or ["x"])
        if key not in ("owner", "armId", "azureName"):
            junk: Any = random.choice(("${X}", None, [], {}, "", 7, {"name": "a", "key": "b"}))
            spec = with_value(spec, place, {**holder, key: junk})
    odd: JsonObject = random.choice(
        ({}, {"spec": None}, {"spec": {}}, {"status": {"id": denied.change["id"]}}, {"status": {"conditions": []}})
    )
    return _cluster(denied, {**old, "spec": spec, **odd}, version)


# ---------------------------------------------------------------- what is denied


def denied_cases(bundle: Bundle, random: Random) -> Iterator[Denied]:
    """The fail cases of the policies as changes, again and again: the resource put over the compliant one."""
    baselines = baselines_of(bundle)
    compliant = {fold_id(one["id"]): one for one in baselines.resources.values()}
    found = []
    for policy in bundle.policies:
        file = read_cases(policy)
        for case in prepared_cases(policy, file, baselines) if file else ():
            key = fold_id(case.identity)
            subject = next((one for one in case.snapshot.resources if fold_id(one["id"]) == key), None)
            if case.expected != "fail" or subject is None or key not in compliant:
                continue
            rest = (compliant[key] if one is subject else one for one in case.snapshot.resources)
            before = case.snapshot.model_copy(update={"resources": tuple(rest)})
            change = {"operation": "replace", "id": subject["id"], "resource": subject}
            given = {policy.id: case.case.parameters}
            name = f"{policy.id}: {case.name}"
            found.append((Denied(name, bundle, before, change, case.as_of, given, compliant[key]), policy))
    while True:
        denied, policy = random.choice(found)
        yield from _if_denied(denied, [policy])


def denied_drawn(bundle: Bundle, random: Random) -> Iterator[Denied]:
    """Drawn changes of drawn estates, as far as they are denied."""
    examples = Examples(bundle)
    looked = sorted({pointer for policy in bundle.policies for read in observe(bundle, policy)[:2] for pointer in read})
    while True:
        example = examples.drawn(random)
        before = example.snapshot
        for change in changes_of_estate(random, before, (), looked):
            if change.operation == "delete" or change.unreadable or change.carried:
                continue
            given = change.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"unreadable", "carried"})
            if not isinstance(given.get("resource", {}).get("properties", {}), dict):
                continue
            yield from _if_denied(Denied("drawn", bundle, before, given, example.as_of, example.parameters), ())


def _if_denied(found: Denied, policies: Sequence[Policy]) -> Iterator[Denied]:
    try:
        decision = found.decided([found.change])
    except InputError:
        return
    ids = {finding.policy for finding in decision.denied if finding.outcome == "fail"}
    if decision.exit_code == 1 and ids and ids.issuperset(policy.id for policy in policies):
        yield Denied(**{**vars(found), "policies": frozenset(ids)})


class Bypass(NamedTuple):
    """An edit that gets past the gate."""

    edit: str
    of: str
    policies: tuple[str, ...]
    sent: str


def tried(random: Random, denied: Denied, name: str) -> str | Bypass:
    """What comes of one edit of a denied change, drawn by name; empty where it does not apply."""
    made = EDITS[name](random, denied)
    if made is None:
        return ""
    try:
        if isinstance(made.sent, bytes):
            decision = denied.sent(made.sent, made.context)
        elif made.like is not None:
            if denied.decided(made.like, made.prior).allowed:
                return "allowed in the newest version, too"
            decision = denied.decided(made.sent, made.prior)
        elif random.random() < 0.5:
            decision = denied.sent(orjson.dumps(made.sent))
        else:
            decision = denied.decided(made.sent)
    except InputError:
        return "refused"
    if not decision.allowed:
        return f"exit {decision.exit_code}"
    undecided = {finding.policy for finding in decision.undecided}
    if made.may_be_silent and denied.policies <= undecided:
        return "undecided, for the format does not state it"
    sent = made.sent if isinstance(made.sent, bytes) else orjson.dumps(made.sent, default=Change.model_dump_json)
    return Bypass(name, denied.name, tuple(sorted(denied.policies - undecided)), sent.decode()[:4000])


def run(count: int, seed: int, bundle: Bundle | None = None) -> tuple[Counter[tuple[str, str]], list[Bypass]]:
    """Try so many edits; half of denied cases, half of drawn changes.

    Returns:
        how often each edit came to what, and what got past the gate.
    """
    random = Random(seed)  # noqa: S311  # nothing here is secret
    bundle = bundle or policyeng.load_bundle()
    cases, drawn = denied_cases(bundle, random), denied_drawn(bundle, random)
    seen, past = Counter[tuple[str, str]](), []
    while seen.total() < count:
        denied = next(random.choice((cases, drawn)))
        for name in random.sample(sorted(EDITS), min(len(EDITS), 6)):
            try:
                fault = tried(random, denied, name)
            except PolicyengError as error:
                fault = f"refused as {type(error).__name__}"
            if isinstance(fault, Bypass):
                past.append(fault)
                fault = "ALLOWED"
            seen[name, fault] += bool(fault)
    return seen, past


if __name__ == "__main__":
    counted, found = run(int(sys.argv[1]), int(sys.argv[2]))
    for (edited, outcome), number in sorted(counted.items()):
        print(f"{number:6} {edited}: {outcome}")  # noqa: T201  # a script
    for one in found[:200]:
        print(f"\n{one.edit} of {one.of} past {', '.join(one.policies)}\n  {one.sent[:1500]}")  # noqa: T201  # the same
    sys.exit(bool(found))
