"""What a live object says of the resource that is there: its `status`, as the operator last saw it."""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.models import JsonObject
from policyeng.parsing.json_pointer import escaped
from policyeng.sources.kubernetes.kinds import ML_GROUP, group_of, key_of
from policyeng.sources.kubernetes.objects import inner

#: What of a `status` stands at the top of an ARM resource; its `id`, `name` and `type` are made out before.
_TOP = ("etag", "extendedLocation", "identity", "kind", "location", "managedBy", "plan", "sku", "systemData", "tags")
#: The operator's own, and of private endpoint connections the ids alone, which say nothing of their approval.
_NOT_ARMS = ("$propertyBag", "conditions", "id", "name", "privateEndpointConnections", "properties", "type", "zones")
#: Whose spec holds `properties` with one key for each kind of thing.
_ONE_OF = ((ML_GROUP, "workspacescompute"), (ML_GROUP, "workspacesconnection"))
#: What the spec says as a whole where it says it.
_WHOLE = ("/identity", "/sku", "/tags")
_POLICY = "serviceoperator.azure.com/reconcile-policy"
_MAX_DEPTH = 128


def is_unmanaged(document: JsonObject) -> bool:
    """Whether the operator leaves the resource as it is, whatever the spec says."""
    return _reconcile_policy(document) == "skip"


def is_kept(document: JsonObject) -> bool:
    """Whether the resource stays when its object is deleted."""
    return _reconcile_policy(document) in ("detach-on-delete", "skip")


def _reconcile_policy(document: JsonObject) -> object:
    """What the operator does for an object; it reads the word as it is spelled, and any other means that it manages.

    Source: `ParseReconcilePolicy` of github.com/Azure/azure-service-operator.
    """
    return inner(document, "metadata", "annotations", _POLICY)


def fill_in(resource: JsonObject, fields: dict[str, str], document: JsonObject) -> None:
    """Add what the `status` of an object says, and where it stands there.

    The spec goes before, for it is what will be; of a resource that is not managed the status does.
    """
    over = is_unmanaged(document)
    for at, stands, said in _said(document):
        here = resource
        for part in at.split("/")[1:]:
            here = here.setdefault(part, {})
        _fill(here, said, (at, stands), fields, over=over)


def stands_in(resource: JsonObject, pointer: str) -> bool:
    """Whether a value stands at a JSON Pointer of plain keys."""
    return inner(resource, *pointer.split("/")[1:]) is not None


def _said(document: JsonObject) -> Iterator[tuple[str, str, JsonObject]]:
    """The parts of a status: where each belongs in ARM, where it stands, and what it says."""
    status = document["status"]
    yield "", "/status", {key: status[key] for key in _TOP if key in status}
    if key_of(group_of(document["apiVersion"]), document["kind"]) not in _ONE_OF:
        rest = {key: value for key, value in status.items() if key not in _TOP + _NOT_ARMS}
        yield "/properties", "/status", rest
        return
    kinds = inner(status, "properties")
    for key, said in kinds.items() if isinstance(kinds, dict) else ():
        if isinstance(said, dict):
            yield "/properties", f"/status/properties/{escaped(key)}", said


def _fill(here: JsonObject, said: JsonObject, place: tuple[str, str], fields: dict[str, str], *, over: bool) -> None:
    at, stands = place
    for key, value in said.items():
        pointer, there = f"{at}/{escaped(key)}", f"{stands}/{escaped(key)}"
        known = here.get(key)
        joined = isinstance(known, dict) and isinstance(value, dict) and pointer not in _WHOLE
        if value is None or (known is not None and not joined and not over):
            continue
        if joined and isinstance(known, dict) and pointer.count("/") < _MAX_DEPTH:
            _fill(known, value, (pointer, there), fields, over=over)
        else:
            here[key] = value
            fields[pointer] = there
