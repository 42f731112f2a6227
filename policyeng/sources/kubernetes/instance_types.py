"""The instance types of an attached cluster: objects of the Azure Machine Learning extension for Kubernetes.

They become the instance types of a separate Kubernetes compute, of which nothing else is known.
Source: https://learn.microsoft.com/azure/machine-learning/how-to-manage-kubernetes-instance-types.
"""

from __future__ import annotations

from policyeng.models import JsonObject
from policyeng.parsing.json_pointer import escaped
from policyeng.sources.field_mapping import list_carried_fields
from policyeng.sources.kubernetes.aso_casing import in_arm_spelling
from policyeng.sources.kubernetes.objects import KubernetesObject, Names, get_inner, words
from policyeng.sources.parsed import Placed, Refusal, kind_of

_TYPES = "/properties/properties/instanceTypes"
_NAMELESS = "an instance type has no other fields of its compute"
_UNATTACHED = "an instance type does not name its compute"


def is_instance_type(document: JsonObject) -> bool:
    """Check whether an object of the extension's group is an instance type or a list of them."""
    return document.get("kind") in ("InstanceType", "InstanceTypeList")


def read_instance_types(document: JsonObject, pointer: str, names: Names) -> Placed | Refusal:
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
            return Refusal(pointer + at, message, "set `metadata.name`, and `spec` with `resources`")
        spelled = in_arm_spelling(spec, names, "")
        types[name] = spelled.value
        place = f"{_TYPES}/{escaped(name)}"
        fields[place] = f"{pointer}{at}/spec"
        unreadable |= {place + below: why for below, why in spelled.unresolved.items()}
    if not types:
        return Refusal(pointer, "an empty list of instance types", "remove it", holds_nothing=True)
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
