"""Reader for one Kubernetes object of any kind, and lookup of its owner and its resource in a snapshot of Azure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from policyeng.errors import InputError
from policyeng.facts.ids import fold_id, name_of, resource_group_of, segments
from policyeng.facts.letters import as_technical_name
from policyeng.models import JsonObject, Problem, Snapshot, lowered
from policyeng.parsing.json_pointer import escaped, keys_of, value_at
from policyeng.parsing.json_text import kind_of, shortened
from policyeng.sources.arm_resource import describe_misspelt, service_made
from policyeng.sources.field_mapping import list_carried_fields
from policyeng.sources.kubernetes.aso_fields import in_arm_spelling
from policyeng.sources.kubernetes.aso_resource import ConvertedObject, read_operator_object
from policyeng.sources.kubernetes.objects import (
    EXTENSION_GROUP,
    KINDS,
    ML_GROUP,
    RESOURCE_GROUP,
    KubernetesObject,
    Names,
    get_inner,
    group_of,
    key_of,
    words,
)
from policyeng.sources.kubernetes.objects import name_of as azure_name_of
from policyeng.sources.parsed import UNKNOWN_SCOPE, NamedThing, Placed, Surroundings, find_nothing, refuse

_TYPES = "/properties/properties/instanceTypes"
_NAMELESS = "an instance type has no other fields of its compute"
_UNATTACHED = "an instance type does not name its compute"


def is_instance_type(document: JsonObject) -> bool:
    """Check whether an object of the extension's group is an instance type or a list of them."""
    return document.get("kind") in ("InstanceType", "InstanceTypeList")


def read_instance_types(document: JsonObject, pointer: str, names: Names) -> Placed | Problem:
    """Read an instance type, or a list of them that is applied as one object."""
    listed = document.get("items")
    several = isinstance(listed, list) and document["kind"] == "InstanceTypeList"
    objects = (
        [KubernetesObject(entry, f"/items/{index}") for index, entry in enumerate(listed or [])]
        if several
        else [KubernetesObject(document, "")]
    )
    types: JsonObject = {}
    fields: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    for entry, at, _ in objects:
        name, spec = words(get_inner(entry, "metadata", "name")), get_inner(entry, "spec")
        if not name or not isinstance(spec, dict):
            message = f"an instance type with {kind_of(spec)} as `spec`" if name else "an instance type without a name"
            return refuse(pointer + at, message, "set `metadata.name`, and `spec` with `resources`")
        spelled = in_arm_spelling(spec, names, "")
        types[name] = spelled.value
        place = f"{_TYPES}/{escaped(name)}"
        fields[place] = f"{pointer}{at}/spec"
        unreadable |= {place + below: why for below, why in spelled.unresolved.items()}
    if not types:
        return refuse(pointer, "an empty list of instance types", "remove it", kind="empty")
    called = words(get_inner(document, "metadata", "name")) or next(iter(types))
    return _compute(
        f"{{kubernetes-{called.replace('/', '~')}}}", types, Placed({}, pointer, unreadable, None, fields), names
    )


def _compute(name: str, types: JsonObject, placed: Placed, names: Names) -> Placed:
    resource = {
        "id": f"{names.around.workspace}/computes/{name}",
        "name": name,
        "type": "Microsoft.MachineLearningServices/workspaces/computes",
        "properties": {
            "computeType": "Kubernetes",
            "isAttachedCompute": True,
            "properties": {"instanceTypes": types},
        },
    }
    known = ("/name", "/properties/computeType", "/properties/isAttachedCompute", _TYPES)
    return placed._replace(
        resource=resource,
        unreadable={"/id": _UNATTACHED, **placed.unreadable},
        carried=list_carried_fields(resource, (), _NAMELESS, *known),
    )


_MANIFEST = "provide a manifest, or the output of `kubectl get -o yaml`"


def read_one(entry: KubernetesObject, names: Names) -> ConvertedObject:
    """Read an object that represents an Azure resource; the result is empty for any other kind."""
    document, pointer, nothing = entry
    if nothing:
        return ConvertedObject(None)
    if not isinstance(document, dict) or not is_whole(document):
        message = f"not a Kubernetes object: expected `apiVersion` and `kind`, found {kind_of(document)}"
        return ConvertedObject(refuse(pointer, message, _MANIFEST))
    for name in ("apiVersion", "kind"):
        plain = {key: as_technical_name(document[key]) for key in ("apiVersion", "kind")}
        if (misspelt := describe_misspelt(name, document[name])) and is_checked(plain["apiVersion"], plain["kind"]):
            return ConvertedObject(refuse(f"{pointer}/{name}", misspelt, "write it in ASCII, without spaces"))
    if not is_checked(document["apiVersion"], document["kind"]):
        return ConvertedObject(None)
    group = group_of(document["apiVersion"])
    if key_of(group, document["kind"]) in KINDS:
        return read_operator_object(document, pointer, names)
    if group == EXTENSION_GROUP:
        return ConvertedObject(read_instance_types(document, pointer, names))
    message = f"the kind `{shortened(document['kind'])}` of `{group}` is not supported"
    return ConvertedObject(refuse(pointer, message, "provide the resource as `az rest --method get` prints it"))


def is_whole(document: JsonObject) -> bool:
    """Check whether an object has `apiVersion` and `kind`."""
    return isinstance(document.get("apiVersion"), str) and isinstance(document.get("kind"), str)


def is_checked(api_version: str, kind: str) -> bool:
    """Check whether objects of a kind are checked, readable or not; all kinds of Machine Learning are."""
    group = group_of(api_version)
    known = KINDS.get(key_of(group, kind))
    if known is not None:
        return known.read
    return group == ML_GROUP or (group == EXTENSION_GROUP and is_instance_type({"kind": kind}))


_SET_OWNER = "set `spec.owner.armId`"


class BesideSnapshot:
    """A reader of single objects of a cluster against one snapshot.

    Attributes:
        snapshot: the resources in Azure, indexed once; do not change it.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._ids: dict[tuple[str, str], dict[str, str]] = {}
        self._groups: dict[str, dict[str, str]] = {}
        self._resources: dict[str, JsonObject] = {}
        for resource in snapshot.resources:
            identity, arm_type = resource.get("id"), resource.get("type")
            if isinstance(identity, str) and isinstance(arm_type, str):
                named = lowered(arm_type), lowered(name_of(identity))
                self._ids.setdefault(named, {})[fold_id(identity)] = identity
                self._resources[fold_id(identity)] = resource
                group = resource_group_of(identity)
                if group:
                    self._groups.setdefault(name_of(group), {})[group] = "/".join(identity.split("/")[:5])

    def resource(self, identity: str) -> JsonObject | None:
        """Return the resource of an id in the snapshot."""
        return self._resources.get(fold_id(identity))

    def of_type(self, arm_type: str) -> list[JsonObject]:
        """Return the resources of a type, in the order of the snapshot."""
        return [resource for resource in self._resources.values() if lowered(resource["type"]) == lowered(arm_type)]

    def identity(self, document: JsonObject, known: str) -> str:
        """Return the ARM id of an object.

        Args:
            document: of a kind of `KINDS`.
            known: the id from the service; empty if there is none.

        Raises:
            InputError: the owner is unknown.
        """
        try:
            return Names(self._around(document), {}).identity(_with_known_id(document, known))
        except KeyError:
            raise InputError("the owner of the object is unknown", remedy=_SET_OWNER) from None

    def read(self, document: JsonObject, known: str) -> ConvertedObject:
        """Read the desired state of an object: its `spec`, without its `status`.

        Values that only the service sets come from the snapshot.

        Raises:
            InputError: two resource groups could own it.
        """
        names = Names(self._around(document), {})
        read = read_one(KubernetesObject(_with_known_id(document, known), ""), names)
        return ConvertedObject(self._filled(read.entry), read.remarks) if isinstance(read.entry, Placed) else read

    def _filled(self, placed: Placed) -> Placed:
        there = self.resource(placed.resource["id"])
        made = service_made(placed.resource["type"]) if there is not None else {}
        values = {pointer: value_at(there, pointer) for pointer in made if pointer in placed.unreadable}
        known = {pointer: value for pointer, value in values.items() if value is not None}
        resource = placed.resource
        for pointer, value in known.items():
            resource = _with(resource, keys_of(pointer), value)
        unreadable = {pointer: why for pointer, why in placed.unreadable.items() if pointer not in known}
        return placed._replace(resource=resource, unreadable=unreadable)

    def _around(self, document: JsonObject) -> Surroundings:
        return Surroundings(scope=self._scope(document) or UNKNOWN_SCOPE, find=self._find, as_applied=True)

    def _scope(self, document: JsonObject) -> str:
        """Return the resource group that owns an object, by its name; empty if it has another owner, or is unknown.

        Raises:
            InputError: several subscriptions have a group of that name.
        """
        kind = KINDS.get(key_of(group_of(document.get("apiVersion")), document.get("kind")))
        owner = get_inner(document, "spec", "owner")
        name = lowered(words(get_inner(owner, "name")))
        by_kind = key_of(get_inner(owner, "group"), get_inner(owner, "kind"))
        if kind is None or kind.parent or not name or (kind.extension and by_kind not in (RESOURCE_GROUP, ("", ""))):
            return ""
        groups = self._groups.get(name, {})
        if len(groups) > 1:
            same = f"/providers/{lowered(kind.arm_type)}/{lowered(azure_name_of(document))}"
            groups = {group: spelled for group, spelled in groups.items() if group + same in self._resources}
            if len(groups) != 1:
                message = f"several subscriptions have a resource group `{words(get_inner(owner, 'name'))}`"
                raise InputError(message, remedy=_SET_OWNER)
        return next(iter(groups.values()), "") or self._in_subscription(words(get_inner(owner, "name")))

    def _in_subscription(self, name: str) -> str:
        """Return the id of a resource group that is not in the snapshot, if the snapshot is of one subscription."""
        parts = segments(self.snapshot.scope) or ()
        alone = parts[:1] == ("subscriptions",) and len(parts) == 2 and "/" not in name
        return f"{self.snapshot.scope.removesuffix('/')}/resourceGroups/{name}" if alone else ""

    def _find(self, key: Hashable) -> Sequence[NamedThing]:
        """Return the resources that an object of a group, kind, namespace and name can represent."""
        if not isinstance(key, tuple) or len(key) != 4 or key[:2] not in KINDS:
            return ()
        group, kind, _, name = key
        ids = self._ids.get((lowered(KINDS[group, kind].arm_type), name), {})
        return [
            NamedThing({"apiVersion": f"{group}/", "kind": kind, "status": {"id": identity}}, {}, find_nothing)
            for identity in ids.values()
        ]


def _with_known_id(document: JsonObject, known: str) -> JsonObject:
    """Return an object with only the known id as its `status`."""
    rest = {key: value for key, value in document.items() if key != "status"}
    return {**rest, "status": {"id": known}} if known else rest


def _with(resource: JsonObject, keys: Sequence[str], value: object) -> JsonObject:
    """Return a copy of an object with a value below some keys; unchanged if a parent is not an object."""
    first, *rest = keys
    if not rest:
        return {**resource, first: value}
    below = resource.get(first, {})
    return {**resource, first: _with(below, rest, value)} if isinstance(below, dict) else resource
