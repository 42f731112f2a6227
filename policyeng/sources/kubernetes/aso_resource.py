"""Conversion of an Azure Service Operator object: from its `spec`, or from its `status` as last observed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from policyeng.errors import suggest_nearest
from policyeng.models import JsonObject, Problem, SourceNames, lowered
from policyeng.parsing.json_pointer import escaped, value_at
from policyeng.parsing.json_text import shortened
from policyeng.sources.arm_resource import attached, list_flattened, nest_printed, service_made
from policyeng.sources.field_mapping import FieldMapping, list_carried_fields, mapped
from policyeng.sources.kubernetes.aso_fields import (
    COMPUTE,
    COMPUTES,
    CONNECTION,
    OUTER,
    REGISTRY,
    RESHAPED,
    WORKSPACE,
    AsoObject,
    Rows,
    Table,
    convert_identity,
    in_arm_spelling,
    in_operator_spelling,
    placeholder_in,
    placeholder_reason,
)
from policyeng.sources.kubernetes.objects import KINDS, ML_GROUP, Names, get_inner, group_of, key_of, name_of, words
from policyeng.sources.parsed import UNKNOWN_SCOPE, Placed, format_value, refuse, remark

#: Keys of a `status` at the top of an ARM resource; `id`, `name` and `type` are determined elsewhere.
_STATUS_TOP = (
    "etag",
    "extendedLocation",
    "identity",
    "kind",
    "location",
    "managedBy",
    "plan",
    "sku",
    "systemData",
    "tags",
)
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
    yield "", "/status", {key: status[key] for key in _STATUS_TOP if key in status}
    if key_of(group_of(document["apiVersion"]), document["kind"]) not in _ONE_OF:
        rest = {key: value for key, value in status.items() if key not in _STATUS_TOP + _NOT_ARMS}
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


_SCRIPT = ("scriptArguments", "scriptData", "scriptSource", "timeout")
_ACCOUNT = ("password", "privateKeyData", "publicKeyData", "username")
#: By path below the place of a table, the keys of an object that one row converts as a unit, with ASO's names, too.
_TAKEN_WHOLE: Mapping[str, tuple[str, ...]] = {
    "/administratorAccount": _ACCOUNT,
    "/aksNetworkingConfiguration": ("dnsServiceIP", "dockerBridgeCidr", "serviceCidr", "subnetId", "subnetReference"),
    "/autoPauseProperties": ("delayInMinutes", "enabled"),
    "/autoScaleProperties": ("enabled", "maxNodeCount", "minNodeCount"),
    "/encryption/identity": ("userAssignedIdentity", "userAssignedIdentityReference"),
    "/encryption/keyVaultProperties": ("identityClientId", "keyIdentifier", "keyVaultArmId", "keyVaultArmReference"),
    "/featureStoreSettings": ("computeRuntime", "offlineStoreConnectionName", "onlineStoreConnectionName"),
    "/featureStoreSettings/computeRuntime": ("sparkRuntimeVersion",),
    "/identity": ("type", "userAssignedIdentities"),
    "/managedNetwork": ("isolationMode", "outboundRules", "status"),
    "/managedNetwork/status": ("sparkReady", "status"),
    "/managedResourceGroup": ("resourceId", "resourceReference"),
    "/personalComputeInstanceSettings": ("assignedUser",),
    "/personalComputeInstanceSettings/assignedUser": ("objectId", "tenantId"),
    "/schedules": ("computeStartStop",),
    "/schedules/computeStartStop/*": ("action", "cron", "recurrence", "schedule", "status", "triggerType"),
    "/schedules/computeStartStop/*/cron": ("expression", "startTime", "timeZone"),
    "/schedules/computeStartStop/*/recurrence": ("frequency", "interval", "schedule", "startTime", "timeZone"),
    "/schedules/computeStartStop/*/recurrence/schedule": ("hours", "minutes", "monthDays", "weekDays"),
    "/serverlessComputeSettings": (
        "serverlessComputeCustomSubnet",
        "serverlessComputeCustomSubnetReference",
        "serverlessComputeNoPublicIP",
    ),
    "/serviceManagedResourcesSettings": ("cosmosDb",),
    "/serviceManagedResourcesSettings/cosmosDb": ("collectionsThroughput",),
    "/setupScripts": ("scripts",),
    "/setupScripts/scripts": ("creationScript", "startupScript"),
    "/setupScripts/scripts/creationScript": _SCRIPT,
    "/setupScripts/scripts/startupScript": _SCRIPT,
    "/sku": ("capacity", "family", "name", "size", "tier"),
    "/sshSettings": ("adminPublicKey", "sshPublicAccess"),
    "/sslConfiguration": ("cert", "cname", "key", "leafDomainLabel", "overwriteExistingDomain", "status"),
    "/workspaceHubConfig": ("additionalWorkspaceStorageAccounts", "defaultWorkspaceResourceGroup"),
}
#: Further keys next to those in rows: secrets, which are not read, and references with ASO's names.
_FURTHER_KEYS: Mapping[str, tuple[str, ...]] = {
    "/subnet": ("reference",),
    "/userAccountCredentials": ("adminUserPassword", "adminUserSshPublicKey"),
    "/virtualMachineImage": ("reference",),
}


def find_unknown_keys(rows: Iterable[FieldMapping], part: JsonObject) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the unknown keys below the first level of a part of a `spec` that rows convert.

    Yields:
        the JSON Pointer of each key in that part, and the known keys next to it.
    """
    sources = [row.source for row in rows]
    led: dict[str, tuple[str, ...]] = {}
    for source in sources:
        above, _, last = source.rpartition("/")
        if above:
            led[above] = (*led.get(above, _FURTHER_KEYS.get(above, ())), last)
    known = {**_TAKEN_WHOLE, **led}
    for first in dict.fromkeys(source.split("/")[1] for source in sources):
        yield from _walk_unknown_keys(part.get(first), f"/{first}", f"/{first}", known)


def misshapen(rows: Iterable[FieldMapping], part: JsonObject) -> dict[str, str]:
    """Return by path a message for each value where rows expect an object."""
    above = dict.fromkeys(row.source.rpartition("/")[0] for row in rows)
    stated = {path: value_at(part, path) for path in above if path}
    return {
        path: f"`{path[1:]}` is {format_value(value)}; it should be an object"
        for path, value in stated.items()
        if value is not None and not isinstance(value, dict)
    }


def _walk_unknown_keys(
    value: object, path: str, pointer: str, known: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the unknown keys in a value, as deep as the tables go."""
    if isinstance(value, list) and f"{path}/*" in known:
        for index, entry in enumerate(value):
            yield from _walk_unknown_keys(entry, f"{path}/*", f"{pointer}/{index}", known)
    elif isinstance(value, dict) and path in known:
        for key, inner in value.items():
            below = f"{pointer}/{escaped(key)}"
            if key in known[path]:
                yield from _walk_unknown_keys(inner, f"{path}/{key}", below, known)
            elif not key.startswith("$"):  # from the operator's storage
                yield below, known[path]


_ROLE_ASSIGNMENT = "microsoft.authorization/roleassignments"
_UNPLACED = (
    "the manifest does not name the subscription and resource group to deploy to; pass `--scope` or `--workspace`"
)
_PLAIN: Mapping[tuple[str, str], Table] = {(ML_GROUP, "workspace"): WORKSPACE, (ML_GROUP, "registry"): REGISTRY}
#: Keys at the top of every ARM resource and of every `spec`; the rest of a `spec` is ARM's `properties`.
_TOP = ("extendedLocation", "identity", "kind", "location", "plan", "sku", "tags", "zones")
#: For each part of an object; more remarks do not help.
_MOST_REMARKS = 20
#: More keys at the top than the `spec` of any kind has.
_MOST_KEYS = 200
#: By group and kind, names that differ from those that other kinds have for the same reference.
_RENAMED: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("insights.azure.com", "diagnosticsetting"): {"storageAccount": "storageAccountId"}
}
_ALWAYS_STATED = ("/name", "/properties/isAttachedCompute")
_OPERATORS_OWN = ("$propertyBag", "azureName", "operatorSpec", "originalVersion", "owner")


@dataclass(frozen=True, slots=True)
class ConvertedObject:
    """The result of reading an object, and warnings about it."""

    entry: Placed | Problem | None
    remarks: tuple[Problem, ...] = ()


@dataclass(slots=True)
class _Conversion:
    """The converted parts of a `spec` in ARM shape."""

    resource: JsonObject = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    rows: Rows = ()

    def draw_version(self, table: Table, version: str, spec: AsoObject, at: str) -> None:
        """Convert a part of a spec, as the operator converts an old version to the newest one.

        Fields of only the newest version are then absent, and the service uses its default: a workspace of 2021-07-01
        has the kind `Default`.
        """
        rows = table.of(version)
        self.draw(rows, spec, at)
        self.rows += tuple(row for row in table.newest if row not in rows)

    def draw(self, rows: Rows, spec: AsoObject, at: str, *, as_they_are: bool = False) -> None:
        """Convert the part of a spec at a JSON Pointer, and record what is unknown."""
        stated = get_inner(spec.value, *at.split("/")[1:])
        part = stated if isinstance(stated, dict) else {}
        unresolved = {place[len(at) :]: why for place, why in spec.unresolved.items() if place.startswith(f"{at}/")}
        moved = {place[len(at) :]: there for place, there in spec.moved.items() if place.startswith(f"{at}/")}
        drawn = mapped(rows, part, f"/spec{at}", {**unresolved, **misshapen(rows, part)})
        _join(self.resource, drawn.resource)
        self.fields |= drawn.fields
        self.unreadable |= drawn.unreadable
        self.rows += rows
        for row, place, rest in _below(rows, moved):
            self.fields[row.target + rest] = f"/spec{moved[place]}"
        for row, place, rest in _below(rows, unresolved):
            if rest and row.target in RESHAPED:
                _drop(self.resource, row.target)
                rest = ""
            self.unreadable[row.target + rest] = unresolved[place]
        known = tuple(in_operator_spelling(row.source.split("/")[1]) for row in rows)
        strays = [(pointer.removeprefix(f"/spec{at}"), known) for pointer in drawn.unknown]
        if not as_they_are:
            strays += find_unknown_keys(rows, part)
        for pointer, keys in strays[:_MOST_REMARKS]:
            there = moved.get(pointer, f"{at}{pointer}")
            key = there.rpartition("/")[2]
            self.remarks[f"/spec{there}"] = f"unknown key `{shortened(key)}`{suggest_nearest(key, keys)}"


def read_operator_object(document: JsonObject, pointer: str, names: Names) -> ConvertedObject:
    """Read an object of a kind that is converted to ARM shape."""
    kind = KINDS[key_of(group_of(document["apiVersion"]), document["kind"])]
    spec, status = document.get("spec"), document.get("status")
    is_live = isinstance(status, dict) and bool(words(status.get("id")))
    if not isinstance(spec, dict) and not is_live:
        return ConvertedObject(refuse(pointer, "an object without a `spec`", "provide the complete manifest"))
    if not name_of(document):
        return ConvertedObject(refuse(pointer, "an object without a name", "set `metadata.name`"))
    if isinstance(spec, dict) and len(spec) > _MOST_KEYS:
        message = f"a `spec` with {len(spec)} keys; at most {_MOST_KEYS} are read"
        return ConvertedObject(refuse(f"{pointer}/spec", message, "remove the keys that its kind does not have"))
    try:
        arm_id = names.identity(document)
        scope = names.owner(document) if kind.extension else ""
    except KeyError:
        return ConvertedObject(refuse(pointer, "the owner of the object is unknown", "set `spec.owner.armId`"))
    home = lowered(arm_id).find("/providers/")
    names = replace(names, home=arm_id[:home] if home > 0 else "")
    spelled = in_arm_spelling(
        spec if isinstance(spec, dict) else {}, names, words(get_inner(document, "metadata", "namespace"))
    )
    drawn = _Conversion()
    refused = _draw(drawn, spelled, document)
    if refused is not None:
        return ConvertedObject(refused.model_copy(update={"place": pointer + refused.place}))
    if lowered(kind.arm_type) == _ROLE_ASSIGNMENT:
        drawn.resource.setdefault("properties", {})["scope"] = scope or names.around.scope
    text = "" if names.around.as_applied else placeholder_in(arm_id)
    return _place(document, pointer, arm_id, drawn, text, is_live=is_live)


def _place(
    document: JsonObject, pointer: str, arm_id: str, drawn: _Conversion, placeholder: str, *, is_live: bool
) -> ConvertedObject:
    group = group_of(document["apiVersion"])
    kind = KINDS[key_of(group, document["kind"])]
    resource = {"id": arm_id, "name": arm_id.rpartition("/")[2], "type": kind.arm_type, **drawn.resource}
    unreadable = service_made(kind.arm_type) | drawn.unreadable
    if "/properties" not in unreadable:
        resource.setdefault("properties", {})
    made = [where for where in unreadable if where not in drawn.unreadable]
    resource, unreadable = _nest_parts(resource, unreadable)
    if is_live:
        fill_in(resource, drawn.fields, document)
        unreadable = {where: why for where, why in unreadable.items() if not has_value(resource, where)}
    if placeholder:
        unreadable["/id"] = unreadable["/name"] = placeholder_reason(placeholder)
    elif arm_id.startswith(UNKNOWN_SCOPE):
        unreadable["/id"] = _UNPLACED
        if get_inner(resource, "properties", "scope"):
            unreadable["/properties/scope"] = _UNPLACED
    carried = None
    if group == ML_GROUP:
        reason = f"`{shortened(document['apiVersion'])}` has no field for it"
        carried = list_carried_fields(resource, drawn.rows, reason, *_ALWAYS_STATED, *made)
    remarks = [remark(pointer + place, message) for place, message in drawn.remarks.items()]
    if is_unmanaged(document) and not is_live:
        message = (
            "the operator does not manage the resource (`reconcile-policy: skip`); the manifest is checked as written"
        )
        remarks.append(remark(f"{pointer}/metadata/annotations", message))
    fields = {f"/{key}": f"/spec/{key}" for key in _TOP} | {"/name": "/metadata/name", "/properties": "/spec"}
    fields |= drawn.fields
    placed = {key: pointer + place for key, place in fields.items()}
    called = words(get_inner(document, "metadata", "name"))
    names = SourceNames(address=f"{document['kind']}/{called}", base=pointer, fields={"/properties": "/spec"})
    converted = Placed(attached(resource, unreadable), pointer, unreadable, carried, placed, names=names)
    return ConvertedObject(converted, tuple(remarks))


def _nest_parts(resource: JsonObject, unreadable: dict[str, str]) -> tuple[JsonObject, dict[str, str]]:
    """Return a resource whose parts have ARM's `properties`: the operator flattens them as commands do.

    A part with an unknown value makes all parts of its list unknown.
    """
    lists = list_flattened(resource["type"])
    if not lists or not isinstance(resource.get("properties"), dict):
        return resource, unreadable
    above = {where: "/".join(where.split("/")[:3]) for where in unreadable}
    moved = {above[where] if above[where] in lists else where: why for where, why in unreadable.items()}
    nested = nest_printed(resource, "").resource
    properties = {key: value for key, value in nested["properties"].items() if f"/properties/{key}" not in moved}
    return {**nested, "properties": properties}, moved


def _draw(drawn: _Conversion, spec: AsoObject, document: JsonObject) -> Problem | None:
    """Convert a complete `spec`; return a refusal if it is contradictory."""
    key = key_of(group_of(document["apiVersion"]), document["kind"])
    version = document["apiVersion"].rpartition("/")[2]
    if key in _PLAIN:
        drawn.draw_version(_PLAIN[key], version, spec, "")
    elif key == (ML_GROUP, "workspacescompute"):
        drawn.draw_version(OUTER, version, spec, "")
        return _draw_compute(drawn, spec, version)
    elif key == (ML_GROUP, "workspacesconnection"):
        _draw_connection(drawn, spec, version)
    else:
        drawn.draw(tuple(_as_they_are(spec, _RENAMED.get(key, {}))), spec, "", as_they_are=True)
    return None


def _draw_compute(drawn: _Conversion, spec: AsoObject, version: str) -> Problem | None:
    body = spec.value.get("properties")
    stated = [key for key, part in body.items() if isinstance(part, dict)] if isinstance(body, dict) else []
    if not stated:
        drawn.unreadable["/properties"] = "the object has no kind of compute; set `spec.properties`"
        drawn.rows += (FieldMapping("/properties", "/properties"),)
        return None
    if len(stated) > 1:
        kinds = ", ".join(f"`{shortened(key)}`" for key in stated[:4])
        return refuse("/spec/properties", f"more than one kind of compute: {kinds}", "keep one of them")
    variant = COMPUTES.get(lowered(stated[0]))
    if variant is None:
        known = suggest_nearest(stated[0], [each.compute_type for each in COMPUTES.values()])
        message = f"unknown kind of compute `{shortened(stated[0])}`{known}"
        return refuse("/spec/properties", message, f"the kinds are {', '.join(COMPUTES)}")
    at = f"/properties/{escaped(stated[0])}"
    drawn.fields |= {"/properties": f"/spec{at}", "/properties/computeType": f"/spec{at}"}
    drawn.fields["/properties/properties"] = f"/spec{at}/properties"
    drawn.draw_version(COMPUTE, version, spec, at)
    drawn.draw_version(variant.table, version, spec, f"{at}/properties")
    properties = drawn.resource.setdefault("properties", {})
    if isinstance(get_inner(spec.value, "properties", stated[0], "properties"), dict):
        properties.setdefault("properties", {})
    if "/properties/computeType" in drawn.unreadable:
        return None
    stated_type = properties.setdefault("computeType", variant.compute_type)
    if lowered(stated_type) != lowered(variant.compute_type):
        del properties["computeType"]
        reason = f"`computeType` is `{shortened(stated_type)}` below `{stated[0]}`; correct one of them"
        drawn.unreadable["/properties/computeType"] = reason
    return None


def _draw_connection(drawn: _Conversion, spec: AsoObject, version: str) -> None:
    """Convert a connection: its fields are below the key of its kind, or in older versions in the spec itself."""
    body = spec.value.get("properties")
    if not isinstance(body, dict):
        drawn.draw(OUTER.of(version) + CONNECTION.of(version), spec, "")
        return
    kinds = [f"/{escaped(key)}" for key, part in body.items() if isinstance(part, dict)]
    at = "/properties" + ("" if "category" in body else next(iter(kinds), ""))
    drawn.draw_version(OUTER, version, spec, "")
    drawn.draw_version(CONNECTION, version, spec, at)
    drawn.fields["/properties"] = f"/spec{at}"


def _as_they_are(spec: AsoObject, renamed: Mapping[str, str]) -> Iterator[FieldMapping]:
    """Yield rows for a kind whose `spec` is ARM's `properties`, except for the keys at the top of every resource.

    Args:
        spec: with ARM's names, but for those that only this kind has.
        renamed: by name in the spec, the name that ARM has for this kind.
    """
    keys = dict.fromkeys([*spec.value, *(place.split("/")[1] for place in spec.unresolved)])
    for key in keys:
        name = escaped(key) if key in spec.value else key
        if key in _OPERATORS_OWN:
            yield FieldMapping(f"/{name}", "")
        else:
            # A vault has `properties` in its `spec`, as ARM has them.
            target = f"/{name}" if key in (*_TOP, "properties") else f"/properties/{renamed.get(name, name)}"
            yield (
                FieldMapping(f"/{name}", target, convert_identity)
                if key == "identity"
                else FieldMapping(f"/{name}", target)
            )


def _below(rows: Rows, places: Mapping[str, str]) -> Iterator[tuple[FieldMapping, str, str]]:
    """Yield each row with the places at or below its source, and the rest of their pointers."""
    for place in places:
        for row in rows:
            if row.target and f"{place}/".startswith(f"{row.source}/"):
                yield row, place, place[len(row.source) :]


def _join(resource: JsonObject, more: JsonObject) -> None:
    for key, value in more.items():
        here = resource.get(key)
        if isinstance(here, dict) and isinstance(value, dict):
            _join(here, value)
        else:
            resource[key] = value


def _drop(resource: JsonObject, pointer: str) -> None:
    *parents, last = pointer.split("/")[1:]
    here = get_inner(resource, *parents)
    if isinstance(here, dict):
        here.pop(last, None)
