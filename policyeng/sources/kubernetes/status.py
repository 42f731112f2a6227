"""The deployed state of a live object's resource: its `status`, as last observed by the operator."""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.models import JsonObject
from policyeng.parsing.json_pointer import escaped
from policyeng.sources.kubernetes.kinds import ML_GROUP, group_of, key_of
from policyeng.sources.kubernetes.objects import get_inner

#: Keys of a `status` at the top of an ARM resource; `id`, `name` and `type` are determined elsewhere.
_TOP = ("etag", "extendedLocation", "identity", "kind", "location", "managedBy", "plan", "sku", "systemData", "tags")
#: The operator's own keys, and private endpoint connections, which have only ids and no approval.
_NOT_ARMS = ("$propertyBag", "conditions", "id", "name", "privateEndpointConnections", "properties", "type", "zones")
#: The kinds whose `properties` have one key for each variant.
_ONE_OF = ((ML_GROUP, "workspacescompute"), (ML_GROUP, "workspacesconnection"))
#: Fields that the spec defines completely if it has them.
_WHOLE = ("/identity", "/sku", "/tags")
_POLICY = "serviceoperator.azure.com/reconcile-policy"
_MAX_DEPTH = 128


def is_unmanaged(document: JsonObject) -> bool:
    """Check whether the operator ignores the spec and leaves the resource unchanged."""
    return _reconcile_policy(document) == "skip"


def is_kept(document: JsonObject) -> bool:
    """Check whether the resource remains when its object is deleted."""
    return _reconcile_policy(document) in ("detach-on-delete", "skip")


def _reconcile_policy(document: JsonObject) -> object:
    """Return the reconcile policy of an object; it is case-sensitive, and unknown values mean that ASO manages it.

    Source: `ParseReconcilePolicy` of github.com/Azure/azure-service-operator.
    """
    return get_inner(document, "metadata", "annotations", _POLICY)


def fill_in(resource: JsonObject, fields: dict[str, str], document: JsonObject) -> None:
    """Add the values of an object's `status` with their places.

    The spec takes precedence as the desired state; for an unmanaged resource the status does.
    """
    over = is_unmanaged(document)
    for at, source, reported in _status_parts(document):
        here = resource
        for part in at.split("/")[1:]:
            here = here.setdefault(part, {})
        _fill(here, reported, (at, source), fields, over=over)


def has_value(resource: JsonObject, pointer: str) -> bool:
    """Check whether there is a value at a JSON Pointer of plain keys."""
    return get_inner(resource, *pointer.split("/")[1:]) is not None


def _status_parts(document: JsonObject) -> Iterator[tuple[str, str, JsonObject]]:
    """Yield the parts of a status: the ARM pointer, the pointer in the object, and the values."""
    status = document["status"]
    yield "", "/status", {key: status[key] for key in _TOP if key in status}
    if key_of(group_of(document["apiVersion"]), document["kind"]) not in _ONE_OF:
        rest = {key: value for key, value in status.items() if key not in _TOP + _NOT_ARMS}
        yield "/properties", "/status", rest
        return
    kinds = get_inner(status, "properties")
    for key, reported in kinds.items() if isinstance(kinds, dict) else ():
        if isinstance(reported, dict):
            yield "/properties", f"/status/properties/{escaped(key)}", reported


def _fill(
    here: JsonObject, reported: JsonObject, place: tuple[str, str], fields: dict[str, str], *, over: bool
) -> None:
    at, source = place
    for key, value in reported.items():
        pointer, there = f"{at}/{escaped(key)}", f"{source}/{escaped(key)}"
        known = here.get(key)
        joined = isinstance(known, dict) and isinstance(value, dict) and pointer not in _WHOLE
        if value is None or (known is not None and not joined and not over):
            continue
        if joined and isinstance(known, dict) and pointer.count("/") < _MAX_DEPTH:
            _fill(known, value, (pointer, there), fields, over=over)
        else:
            here[key] = value
            fields[pointer] = there
