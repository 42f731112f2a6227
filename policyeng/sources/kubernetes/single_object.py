"""Reader for one Kubernetes object of any kind."""

from __future__ import annotations

from policyeng.models import JsonObject
from policyeng.parsing.json_text import shortened
from policyeng.sources.kubernetes.aso_resource import ConvertedObject, read_operator_object
from policyeng.sources.kubernetes.instance_types import is_instance_type, read_instance_types
from policyeng.sources.kubernetes.kinds import EXTENSION_GROUP, KINDS, ML_GROUP, group_of, key_of
from policyeng.sources.kubernetes.objects import KubernetesObject, Names
from policyeng.sources.parsed import Refusal, kind_of

_MANIFEST = "provide a manifest, or the output of `kubectl get -o yaml`"


def read_one(entry: KubernetesObject, names: Names) -> ConvertedObject:
    """Read an object that represents an Azure resource; the result is empty for any other kind."""
    document, pointer, nothing = entry
    if nothing:
        return ConvertedObject(None)
    if not isinstance(document, dict) or not is_whole(document):
        message = f"not a Kubernetes object: expected `apiVersion` and `kind`, found {kind_of(document)}"
        return ConvertedObject(Refusal(pointer, message, _MANIFEST))
    if not is_judged(document["apiVersion"], document["kind"]):
        return ConvertedObject(None)
    group = group_of(document["apiVersion"])
    if key_of(group, document["kind"]) in KINDS:
        return read_operator_object(document, pointer, names)
    if group == EXTENSION_GROUP:
        return ConvertedObject(read_instance_types(document, pointer, names))
    message = f"the kind `{shortened(document['kind'])}` of `{group}` is not supported"
    return ConvertedObject(Refusal(pointer, message, "provide the resource as `az rest --method get` prints it"))


def is_whole(document: JsonObject) -> bool:
    """Check whether an object has `apiVersion` and `kind`."""
    return isinstance(document.get("apiVersion"), str) and isinstance(document.get("kind"), str)


def is_judged(api_version: str, kind: str) -> bool:
    """Check whether objects of a kind are checked, readable or not; all kinds of Machine Learning are."""
    group = group_of(api_version)
    known = KINDS.get(key_of(group, kind))
    if known is not None:
        return known.read
    return group == ML_GROUP or (group == EXTENSION_GROUP and is_instance_type({"kind": kind}))
