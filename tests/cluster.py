"""Objects of a cluster and the reviews that the Kubernetes API server makes of what is done to them."""

from __future__ import annotations

from policyeng.models import JsonObject, lowered
from policyeng.sources.kubernetes.objects import KINDS, KubernetesKind

GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
ELSEWHERE = "/subscriptions/22222222-2222-2222-2222-222222222222/resourceGroups/rg-ml"
WORKSPACE = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/ws"
ML = "machinelearningservices.azure.com/v1api20240401"
#: By lower-case ARM type, the group, kind and versions of the objects that are read.
READ_KINDS = {lowered(kind.arm_type): (group, name, kind) for (group, name), kind in KINDS.items() if kind.read}
_TOP = ("identity", "kind", "location", "sku", "tags")
POLICY = "serviceoperator.azure.com/reconcile-policy"


def workspace_object(*, policy: str = "", status: JsonObject | None = None, **spec: object) -> JsonObject:
    """A Workspace of Azure Service Operator called `ws`, owned by the resource group `rg-ml`."""
    return object_of("Workspace", {"owner": {"name": "rg-ml"}, **spec}, name="ws", policy=policy, status=status)


def object_of(
    kind: str,
    spec: object,
    *,
    api_version: str = ML,
    name: str = "it",
    policy: str = "",
    status: JsonObject | None = None,
) -> JsonObject:
    """An object of any kind."""
    metadata: JsonObject = {"name": name, "namespace": "ml"}
    if policy:
        metadata["annotations"] = {POLICY: policy}
    content: JsonObject = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
    return content if status is None else {**content, "status": status}


def review_of(
    operation: str, new: JsonObject | None = None, old: JsonObject | None = None, **more: object
) -> JsonObject:
    """A review of the API server; the kind is that of the object."""
    shown = new or old or {}
    group, _, version = str(shown.get("apiVersion")).rpartition("/")
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": group, "version": version, "kind": shown.get("kind")},
        "resource": {"group": group, "version": version, "resource": f"{str(shown.get('kind')).lower()}s"},
        "name": "it",
        "namespace": "ml",
        "operation": operation,
        "userInfo": {"username": "admin", "groups": ["system:authenticated"]},
        "object": new,
        "oldObject": old,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        **more,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def object_of_resource(resource: JsonObject, group: str, name: str, kind: KubernetesKind, version: str) -> JsonObject:
    """The object for a resource; `owner` is by its ARM id."""
    identity = str(resource["id"])
    above = identity.rsplit("/", 2)[0] if kind.parent else identity[: identity.lower().rindex("/providers/")]
    spec: JsonObject = {"azureName": identity.rpartition("/")[2], "owner": {"armId": above}}
    spec |= {key: resource[key] for key in _TOP if key in resource}
    properties = resource.get("properties")
    if name == "workspacescompute" and isinstance(properties, dict):
        spec["properties"] = {str(properties.get("computeType", "AmlCompute")): properties}
    elif isinstance(properties, dict):
        spec |= {key: value for key, value in properties.items() if key != "scope"}
    called = {"name": "it", "namespace": "ml"}
    return {"apiVersion": f"{group}/{version}", "kind": name, "metadata": called, "spec": spec}
