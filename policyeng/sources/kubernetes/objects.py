"""The Kubernetes objects in lists and admission reviews, and their ARM ids."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from policyeng.facts.ids import types_of
from policyeng.models import JsonObject, lowered
from policyeng.sources.kubernetes.kinds import EXTENSION_GROUP, KINDS, ML_GROUP, RESOURCE_GROUP, group_of, key_of
from policyeng.sources.parsed import NamedThing, Surroundings

#: Groups whose objects are detected without `metadata`, so an object without it is refused and not skipped.
_OWN_GROUPS = frozenset({ML_GROUP, EXTENSION_GROUP})
#: How many objects of the same kind and name in equally near documents are compared.
_MOST_COPIES = 20


class KubernetesObject(NamedTuple):
    """An object with its JSON Pointer in the document; or why there is none, in `nothing`."""

    object: object
    pointer: str
    nothing: str = ""


def is_object(value: object) -> bool:
    """Check whether a value is a Kubernetes object: `apiVersion`, `kind` and `metadata`, and no ARM `type`."""
    if not isinstance(value, dict) or not isinstance(value.get("apiVersion"), str):
        return False
    kind, arm_type = value.get("kind"), value.get("type")
    if not isinstance(kind, str) or (isinstance(arm_type, str) and lowered(arm_type).startswith("microsoft.")):
        return False
    return isinstance(value.get("metadata"), dict) or is_list(value) or group_of(value["apiVersion"]) in _OWN_GROUPS


def is_list(value: JsonObject) -> bool:
    """Check whether an object is a list of objects, with a kind such as `List` or `WorkspaceList`."""
    kind = value.get("kind")
    return isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list)


def is_review(value: object) -> bool:
    """Check whether a value is an admission review."""
    return (
        isinstance(value, dict)
        and value.get("kind") == "AdmissionReview"
        and (group_of(value.get("apiVersion")) == "admission.k8s.io" or isinstance(value.get("request"), dict))
    )


def list_objects(document: object) -> Iterator[KubernetesObject]:
    """Yield the objects of a document in order; items of a typed list get its `apiVersion` and `kind`."""
    waiting = [KubernetesObject(document, "")]
    while waiting:
        value, pointer, _ = waiting.pop()
        entries, below = _entries(value, pointer)
        if entries is not None:
            waiting += [KubernetesObject(entry, f"{below}/{index}") for index, entry in enumerate(entries)][::-1]
        elif isinstance(value, dict) and is_review(value):
            yield _object_of_review(value, pointer)
        else:
            yield KubernetesObject(value, pointer)


def _entries(value: object, pointer: str) -> tuple[list[object] | None, str]:
    if isinstance(value, list):
        return value, pointer
    if not isinstance(value, dict) or not is_list(value) or group_of(value.get("apiVersion")) == EXTENSION_GROUP:
        return None, pointer
    given = {} if value["kind"] == "List" else {"apiVersion": value.get("apiVersion"), "kind": value["kind"][:-4]}
    return [{**given, **item} if isinstance(item, dict) else item for item in value["items"]], f"{pointer}/items"


def _object_of_review(review: JsonObject, pointer: str) -> KubernetesObject:
    request = review.get("request")
    if not isinstance(request, dict):
        return KubernetesObject(None, pointer, "an admission review without a request")
    if request.get("operation") == "DELETE":
        return KubernetesObject(None, pointer, "an admission review of a deletion: nothing to check")
    if not isinstance(request.get("object"), dict):
        return KubernetesObject(None, pointer, "an admission review without an object")
    return KubernetesObject(request["object"], f"{pointer}/request/object")


def get_inner(value: object, *path: str) -> object:
    """Return the value below a path of keys; None if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def words(value: object) -> str:
    """Return a text without surrounding space; empty if the value is not text."""
    return value.strip() if isinstance(value, str) else ""


def name_of(document: JsonObject) -> str:
    """Return the Azure name of an object, escaped for an id; empty if it has none."""
    name = words(get_inner(document, "spec", "azureName")) or words(get_inner(document, "metadata", "name"))
    return name.replace("/", "~")


@dataclass(frozen=True, slots=True)
class Names:
    """The ARM ids of the objects of one document, and of the objects that they refer to.

    Attributes:
        around: the deployment scope of the document, and the lookup of objects in other documents.
        known: the objects of the document, by group, kind, namespace and name.
        home: the scope of objects that are in no document; the scope of the document if empty.
    """

    around: Surroundings
    known: Mapping[Hashable, JsonObject]
    home: str = ""

    def identity(self, document: JsonObject) -> str:
        """Return the ARM id of an object: the id from the service, or an id below its owner.

        Raises:
            KeyError: there is no such kind, or its owner is unknown.
        """
        kind = KINDS[key_of(group_of(document.get("apiVersion")), document.get("kind"))]
        stated = get_inner(document, "status", "id")
        if isinstance(stated, str) and lowered(kind.arm_type) in types_of(stated):
            return stated
        name = name_of(document) or "{name}"
        if not kind.parent:
            return f"{self.owner(document) or self.around.scope}/providers/{kind.arm_type}/{name}"
        return f"{self.owner(document)}/{kind.arm_type.rpartition('/')[2]}/{name}"

    def owner(self, document: JsonObject) -> str:
        """Return the ARM id of an object's owner; empty if that is a resource group without an id.

        Raises:
            KeyError: the owner is unknown.
        """
        kind = KINDS[key_of(group_of(document.get("apiVersion")), document.get("kind"))]
        owner = get_inner(document, "spec", "owner")
        if words(get_inner(owner, "armId")):
            return words(get_inner(owner, "armId")).rstrip("/")
        key = kind.parent or RESOURCE_GROUP
        if kind.extension and get_inner(owner, "kind"):
            key = key_of(get_inner(owner, "group"), get_inner(owner, "kind"))
            if key in KINDS and KINDS[key].extension:
                raise KeyError(key)  # prevents cycles of owners
        name = words(get_inner(owner, "name"))
        if key == RESOURCE_GROUP:
            return ""
        return self.named(key, name, words(get_inner(document, "metadata", "namespace")), owns=True)

    def named(self, key: tuple[str, str], name: str, namespace: str, *, owns: bool = False) -> str:
        """Return the ARM id of the object of a kind and name.

        Args:
            key: group and kind in lower case.
            name: of the object.
            namespace: of the object that refers to it; both are in the same one.
            owns: whether it owns the object that refers to it, and so exists.

        Raises:
            KeyError: the id is unknown, because of an unknown kind, a missing parent object, or different objects in
                equally near documents.
        """
        scope = self.home or self.around.scope
        if key == RESOURCE_GROUP:
            return scope
        there = self.known.get((*key, namespace, lowered(name)))
        if there is not None:
            return self.identity(there)
        found = self.around.find((*key, namespace, lowered(name)))
        if found:
            return self._identity_of(found)
        kind = KINDS[key]
        if key == (ML_GROUP, "workspace") and owns:
            around = self.around.workspace
            if not name or lowered(around.rpartition("/")[2]) == lowered(name):
                return around
        if kind.parent:
            raise KeyError(key)
        return f"{scope}/providers/{kind.arm_type}/{name.replace('/', '~') or '{name}'}"

    def _identity_of(self, found: Sequence[NamedThing]) -> str:
        """Return the ARM id of an object in other documents.

        Raises:
            KeyError: the documents have different ids, or there are too many.
        """
        ids: dict[str, str] = {}
        for thing, neighbors, find in found[:_MOST_COPIES]:
            identity = Names(replace(self.around, find=find), neighbors).identity(thing)
            ids.setdefault(lowered(identity), identity)
        if len(ids) > 1 or len(found) > _MOST_COPIES:
            raise KeyError(*ids)
        return next(iter(ids.values()))


def names_in(document: object) -> dict[Hashable, JsonObject]:
    """Return the objects of a document that represent Azure resources, by group, kind, namespace and name."""
    known: dict[Hashable, JsonObject] = {}
    for entry in list_objects(document):
        there = entry.object
        if isinstance(there, dict):
            key = key_of(group_of(there.get("apiVersion")), there.get("kind"))
            namespace = words(get_inner(there, "metadata", "namespace"))
            if key in KINDS:
                known.setdefault((*key, namespace, lowered(words(get_inner(there, "metadata", "name")))), there)
    return known
