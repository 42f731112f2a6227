"""Reader for Kubernetes objects: Azure Service Operator, the Azure ML extension, and admission reviews.

The objects of a `kubectl get -o json` list are read one by one. Objects of other kinds have nothing to check.
"""

from __future__ import annotations

from msgspec.structs import replace

from policyeng.models import lowered
from policyeng.parsing.json_text import shortened
from policyeng.sources.kubernetes.kustomization import FIELDS, is_kustomization
from policyeng.sources.kubernetes.objects import (
    EXTENSION_GROUP,
    KINDS,
    ML_GROUP,
    KubernetesObject,
    Names,
    get_inner,
    group_of,
    is_object,
    is_review,
    key_of,
    list_objects,
    names_in,
    words,
)
from policyeng.sources.kubernetes.single_object import is_instance_type, is_whole, read_one
from policyeng.sources.parsed import ALONE, UNKNOWN_SCOPE, ParsedDocument, Placed, Surroundings, reading_of

SHAPES: tuple[frozenset[str], ...] = (
    frozenset(
        {
            *("apiversion", "binarydata", "data", "immutable", "items", "kind", "metadata", "provisioner", "request"),
            *("response", "roleref", "rules", "spec", "status", "stringdata", "subjects", "webhooks"),
        }
    ),
    frozenset(map(lowered, FIELDS)),
)
SUMMARY = "Kubernetes objects: Azure Service Operator, Azure ML instance types, admission reviews"


def detect(document: object) -> bool:
    """Check whether the document is a Kubernetes object, a list of objects, or an admission review."""
    if isinstance(document, list):
        return any(is_object(entry) for entry in document)
    return is_object(document) or is_review(document) or is_kustomization(document)


def belongs_to_workspace(document: object) -> bool:
    """Check whether the document contains parts of a workspace without the ARM id of that workspace."""
    return any(_in_workspace(entry.object) for entry in list_objects(document))


def read(document: object, around: Surroundings = ALONE) -> ParsedDocument:
    """Read the objects that represent Azure resources, and skip the others."""
    if is_kustomization(document):
        return ParsedDocument(nothing="a Kustomization, which lists and changes the objects of other files")
    objects = list(list_objects(document))
    if is_review(document):  # the object is as applied; no tool replaces placeholders anymore
        around = replace(around, as_applied=True)
    names = Names(around, names_in(document))
    read = [read_one(entry, names) for entry in objects]
    reading = reading_of(part for each in read for part in (each.entry, *each.remarks) if part is not None)
    nothing = "" if reading.resources or reading.problems else _explain_nothing(objects)
    return replace(reading, nothing=nothing, movable=_movable(reading.resources))


def _explain_nothing(objects: list[KubernetesObject]) -> str:
    """Return why no object is checked."""
    if not objects:
        return "an empty list of Kubernetes objects"
    first = objects[0]
    if first.nothing:
        return first.nothing
    kind = first.object.get("kind") if isinstance(first.object, dict) else None
    return f"a Kubernetes object of a kind that is not checked (`{shortened(str(kind))}`)"


def _in_workspace(document: object) -> bool:
    if not isinstance(document, dict) or not is_whole(document):
        return False
    group = group_of(document["apiVersion"])
    kind = KINDS.get(key_of(group, document["kind"]))
    if kind is not None and kind.parent == (ML_GROUP, "workspace"):
        return not words(get_inner(document, "spec", "owner", "armId")) and not words(
            get_inner(document, "status", "id")
        )
    return group == EXTENSION_GROUP and is_instance_type(document)


def _movable(resources: tuple[Placed, ...]) -> str:
    """Return the prefix of unknown ids; for instance types, which do not name a compute, the id itself."""
    ids = [str(placed.resource["id"]) for placed in resources]
    if any(identity.startswith(UNKNOWN_SCOPE) for identity in ids):
        return UNKNOWN_SCOPE
    return ids[0] if len(ids) == 1 and "/computes/{kubernetes-" in ids[0] else ""
