"""Lookup of the owner and the resource of a single object in a snapshot of Azure.

An object refers to its owner and other objects by their names in the cluster, which are taken as their names in Azure.
If two resources of the snapshot match, neither is used.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from policyeng.errors import InputError
from policyeng.facts.ids import fold_id, name_of, resource_group_of, segments
from policyeng.models import JsonObject, Snapshot, lowered
from policyeng.parsing.json_pointer import keys_of, value_at
from policyeng.sources.kubernetes.aso_resource import ConvertedObject
from policyeng.sources.kubernetes.kinds import KINDS, RESOURCE_GROUP, group_of, key_of
from policyeng.sources.kubernetes.objects import KubernetesObject, Names, get_inner, words
from policyeng.sources.kubernetes.objects import name_of as azure_name_of
from policyeng.sources.kubernetes.single_object import read_one
from policyeng.sources.parsed import UNKNOWN_SCOPE, NamedThing, Placed, Surroundings, find_nothing
from policyeng.sources.server_generated import service_made

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
