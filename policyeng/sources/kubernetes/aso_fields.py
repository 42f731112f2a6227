"""The fields of Azure Service Operator's Machine Learning objects, and their names in ARM."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import shortened
from policyeng.sources.field_mapping import Bring, FieldMapping, UnfitError, boolean, convert_integer, text
from policyeng.sources.kubernetes.objects import Names, key_of, words

Rows = tuple[FieldMapping, ...]


def convert_members(value: object) -> JsonObject:
    """Return an object unchanged."""
    if isinstance(value, dict):
        return value
    raise UnfitError("an object")


def entries(value: object) -> list[object]:
    """Return a list unchanged."""
    if isinstance(value, list):
        return value
    raise UnfitError("a list")


def convert_identity(value: object) -> object:
    """Convert ASO's list of user-assigned identities to ARM's map by id."""
    body = dict(convert_members(value))
    listed = body.pop("userAssignedIdentities", None)
    if listed is None or isinstance(listed, dict):
        return body if listed is None else {**body, "userAssignedIdentities": listed}
    ids = [entry.get("id") if isinstance(entry, dict) else None for entry in entries(listed)]
    if not all(isinstance(arm_id, str) for arm_id in ids):
        raise UnfitError("an object whose identities are references with known ids")
    return {**body, "userAssignedIdentities": {str(arm_id): {} for arm_id in ids}}


def with_properties(*outer: str) -> Bring:
    """Return a converter of ASO's flat objects to ARM's, with all but the keys `outer` below `properties`."""

    def bring(value: object) -> object:
        return [
            {key: entry[key] for key in outer if key in entry}
            | {"properties": {key: member for key, member in entry.items() if key not in outer}}
            for entry in entries(value)
            if isinstance(entry, dict)
        ]

    return bring


def _rows(bring: Bring, *names: str, below: str = "") -> Rows:
    return tuple(FieldMapping(f"/{name}", f"{below}/{name}", bring) for name in names)


def _get_inside(bring: Bring, *names: str) -> Rows:
    return _rows(bring, *names, below="/properties")


def _unchecked(*names: str) -> Rows:
    return tuple(FieldMapping(f"/{name}", "") for name in names)


class Table(NamedTuple):
    """The rows of one kind, and the rows added in the API version 2024-04-01."""

    rows: Rows
    since_2024: Rows = ()

    @property
    def newest(self) -> Rows:
        """Return the rows of the newest version, which every other version is converted to."""
        return self.rows + self.since_2024

    def of(self, version: str) -> Rows:
        """Return the rows of an `apiVersion`; all rows if it has no date, or a later one."""
        date = re.search(r"\d{8}", version)
        return self.rows if date and date[0] < "20240401" else self.newest


_ENVELOPE: Rows = (
    *_rows(text, "location"),
    *_rows(convert_members, "tags", "sku"),
    *_rows(convert_identity, "identity"),
    *_unchecked("$propertyBag", "azureName", "operatorSpec", "originalVersion", "owner", "systemData"),
)

WORKSPACE = Table(
    (
        *_ENVELOPE,
        *_get_inside(
            text,
            "applicationInsights",
            "containerRegistry",
            "description",
            "discoveryUrl",
            "friendlyName",
            "imageBuildCompute",
            "keyVault",
            "primaryUserAssignedIdentity",
            "publicNetworkAccess",
            "storageAccount",
        ),
        *_get_inside(boolean, "allowPublicAccessWhenBehindVnet", "hbiWorkspace"),
        *_get_inside(
            convert_members, "encryption/identity", "encryption/keyVaultProperties", "serviceManagedResourcesSettings"
        ),
        *_get_inside(with_properties("name"), "sharedPrivateLinkResources"),
    ),
    (
        *_rows(text, "kind"),
        *_get_inside(text, "hubResourceId"),
        *_get_inside(boolean, "enableDataIsolation", "v1LegacyMode"),
        *_get_inside(entries, "associatedWorkspaces"),
        *_get_inside(
            convert_members, "featureStoreSettings", "managedNetwork", "serverlessComputeSettings", "workspaceHubConfig"
        ),
    ),
)

REGISTRY = Table(
    (
        *_ENVELOPE,
        *_rows(text, "kind"),
        *_get_inside(text, "discoveryUrl", "intellectualPropertyPublisher", "mlFlowRegistryUri", "publicNetworkAccess"),
        *_get_inside(convert_members, "managedResourceGroup"),
        *_get_inside(entries, "regionDetails"),
        *_get_inside(with_properties("id", "location"), "registryPrivateEndpointConnections"),
    )
)

#: The spec of kinds whose `properties` have variants, and the `properties` of a connection.
OUTER = Table((*_ENVELOPE, *_unchecked("properties")))
CONNECTION = Table(
    (
        *_get_inside(text, "authType", "category", "expiryTime", "group", "target", "valueFormat"),
        *_get_inside(boolean, "isSharedToAll"),
        *_get_inside(convert_members, "metadata"),
        *_get_inside(entries, "sharedUserList"),
        *_unchecked("credentials", "value"),
    )
)

#: Fields with another shape in ARM; if a part is unknown, the complete field is.
RESHAPED = frozenset(
    {"/identity", "/properties/registryPrivateEndpointConnections", "/properties/sharedPrivateLinkResources"}
)

#: The fields below the key of a compute's kind.
COMPUTE = Table(
    (
        *_get_inside(text, "computeLocation", "computeType", "description", "resourceId"),
        *_get_inside(boolean, "disableLocalAuth"),
        *_unchecked("properties"),
    )
)


class Variant(NamedTuple):
    """One kind of compute: its `computeType`, and the fields of its inner `properties`."""

    compute_type: str
    table: Table


def _compute(*rows: FieldMapping) -> Rows:
    """Return the rows with targets in the inner `properties`."""
    return tuple(row._replace(target=f"/properties/properties{row.target}") if row.target else row for row in rows)


_CLUSTER = Table(
    _compute(
        *_rows(boolean, "enableNodePublicIp", "isolatedNetwork"),
        *_rows(text, "osType", "remoteLoginPortPublicAccess", "vmPriority", "vmSize"),
        *_rows(convert_integer, "scaleSettings/maxNodeCount", "scaleSettings/minNodeCount"),
        *_rows(text, "scaleSettings/nodeIdleTimeBeforeScaleDown", "subnet/id", "virtualMachineImage/id"),
        *_rows(text, "userAccountCredentials/adminUserName"),
    ),
    _compute(*_rows(convert_members, "propertyBag")),
)
_INSTANCE = Table(
    _compute(
        *_rows(text, "applicationSharingPolicy", "computeInstanceAuthorizationType", "subnet/id", "vmSize"),
        *_rows(convert_members, "personalComputeInstanceSettings", "setupScripts", "sshSettings"),
    ),
    _compute(
        *_rows(boolean, "enableNodePublicIp"), *_rows(entries, "customServices"), *_rows(convert_members, "schedules")
    ),
)
_AKS = Table(
    _compute(
        *_rows(convert_integer, "agentCount"),
        *_rows(text, "agentVmSize", "clusterFqdn", "clusterPurpose", "loadBalancerSubnet", "loadBalancerType"),
        *_rows(convert_members, "aksNetworkingConfiguration", "sslConfiguration"),
    )
)
_KUBERNETES = Table(
    _compute(
        *_rows(
            text,
            "defaultInstanceType",
            "extensionInstanceReleaseTrain",
            "extensionPrincipalId",
            "namespace",
            "vcName",
        ),
        *_rows(convert_members, "instanceTypes"),
        *_unchecked("relayConnectionString", "serviceBusConnectionString"),
    )
)
_MACHINE = Table(
    _compute(
        *_rows(text, "address", "virtualMachineSize"),
        *_rows(convert_integer, "sshPort"),
        *_rows(boolean, "isNotebookInstanceCompute"),
        *_rows(convert_members, "administratorAccount"),
    ),
    _compute(*_rows(convert_integer, "notebookServerPort")),
)
_HDINSIGHT = Table(
    _compute(
        *_rows(text, "address"), *_rows(convert_integer, "sshPort"), *_rows(convert_members, "administratorAccount")
    )
)
_SPARK = Table(
    _compute(
        *_rows(convert_members, "autoPauseProperties", "autoScaleProperties"),
        *_rows(convert_integer, "nodeCount"),
        *_rows(
            text,
            "nodeSize",
            "nodeSizeFamily",
            "poolName",
            "resourceGroup",
            "sparkVersion",
            "subscriptionId",
            "workspaceName",
        ),
    )
)

#: By the key below `spec.properties` in lower case.
COMPUTES: Mapping[str, Variant] = {
    lowered(compute_type): Variant(compute_type, table)
    for compute_type, table in {
        "AKS": _AKS,
        "AmlCompute": _CLUSTER,
        "ComputeInstance": _INSTANCE,
        "DataFactory": Table(()),
        "DataLakeAnalytics": Table(_compute(*_rows(text, "dataLakeStoreAccountName"))),
        "Databricks": Table(_compute(*_rows(text, "workspaceUrl"), *_unchecked("databricksAccessToken"))),
        "HDInsight": _HDINSIGHT,
        "Kubernetes": _KUBERNETES,
        "SynapseSpark": _SPARK,
        "VirtualMachine": _MACHINE,
    }.items()
}


#: ARM's names of references that do not follow the pattern of `Id` for `Reference`.
_ARM_NAMES: Mapping[str, str] = {
    "reference": "id",
    **{
        f"{name}Reference": name
        for name in (
            "applicationInsights",
            "containerRegistry",
            "keyVault",
            "loadBalancerSubnet",
            "primaryUserAssignedIdentity",
            "serverlessComputeCustomSubnet",
            "storageAccount",
            "subresourceTarget",
            "userAssignedIdentity",
        )
    },
    **{
        f"{name}Reference": f"{name}ID"
        for name in ("diskEncryptionSet", "nodePublicIPPrefix", "podSubnet", "vnetSubnet")
    },
}
#: Maps with keys of the user, which are not references or secrets.
_USERS_OWN = frozenset({"environmentVariables", "labels", "limits", "nodeLabels", "nodeSelector", "requests", "tags"})
#: Placeholders that a tool replaces before the manifest is applied: `${X}`, `$(X)`, `{{ x }}` and `<x>` anywhere in a
#: text; `$X` and `__X__` as the complete text or a complete segment of a path.
_BRACKETS = (("${", "}"), ("$(", ")"), ("{{", "}}"))
_PLACEHOLDER = re.compile(r"<[A-Za-z][\w .-]*>|(?:\A|(?<=/))(?:\$\w+|__\w+__)(?=/|\Z)")
#: Deeper than the JSON and YAML readers allow.
_MAX_DEPTH = 128
_LEFT_OUT = object()


@dataclass(frozen=True, slots=True)
class AsoObject:
    """A part of an object with ARM's field names.

    Attributes:
        value: the part without unknown values.
        moved: by JSON Pointer into `value`, the pointer in the object if it differs.
        unresolved: by JSON Pointer into `value`, why a part is not known.
    """

    value: JsonObject
    moved: dict[str, str] = field(default_factory=dict)
    unresolved: dict[str, str] = field(default_factory=dict)


def in_arm_spelling(part: JsonObject, names: Names, namespace: str) -> AsoObject:
    """Convert a `spec` or `status` to ARM's field names."""
    speller = _Speller(names, namespace)
    value = speller.convert(part, "", "", 0)
    return AsoObject(value if isinstance(value, dict) else {}, speller.moved, speller.unresolved)


def placeholder_in(text: object) -> str:
    """Return the first placeholder of a text; empty if there is none."""
    if not isinstance(text, str):
        return ""
    for opening, closing in _BRACKETS:  # a pattern would be quadratic in unclosed openings
        start = text.find(opening)
        end = text.find(closing, start + len(opening)) if start >= 0 else -1
        if end >= 0:
            return text[start : end + len(closing)]
    found = _PLACEHOLDER.search(text)
    return found[0] if found else ""


def placeholder_reason(text: str) -> str:
    """Return the message for a text with a placeholder."""
    return f"`{shortened(text)}` is a placeholder for a tool to replace; provide the manifest as it is applied"


class _Speller:
    def __init__(self, names: Names, namespace: str) -> None:
        self._names, self._namespace = names, namespace
        self.moved: dict[str, str] = {}
        self.unresolved: dict[str, str] = {}

    def convert(self, value: object, at: str, source: str, depth: int, *, own: bool = False) -> object:
        """Convert a value to ARM's field names; `at` is the pointer in ARM, `source` the pointer in the object."""
        if depth > _MAX_DEPTH:
            return self._left_out(at, "it is nested too deeply; reduce the nesting")
        if isinstance(value, str):
            text = self._placeholder_in(value)
            return self._left_out(at, placeholder_reason(text)) if text else value
        if isinstance(value, list):
            entries = [
                self.convert(entry, f"{at}/{index}", f"{source}/{index}", depth + 1)
                for index, entry in enumerate(value)
            ]
            gap = next((index for index, entry in enumerate(entries) if entry is _LEFT_OUT), None)
            return entries if gap is None else self._left_out(at, self.unresolved.pop(f"{at}/{gap}"))
        if isinstance(value, dict):
            return self._members(value, at, source, depth, own=own)
        return value

    def _members(self, value: JsonObject, at: str, source: str, depth: int, *, own: bool) -> JsonObject:
        spelled: JsonObject = {}
        for key, member in value.items():
            place = f"{source}/{escaped(key)}"
            if own:
                self._put(spelled, key, self.convert(member, f"{at}/{escaped(key)}", place, depth + 1, own=True))
            elif _is_reference(key, member):
                self._refer(spelled, key, member, at, place)
            elif key.endswith("FromConfig") and isinstance(member, dict):
                name = key.removesuffix("FromConfig")
                source = shortened(str(member.get("name")))
                reason = f"it comes from the config map `{source}`; write the value in the manifest"
                self.moved[f"{at}/{escaped(name)}"] = place
                self._put(spelled, name, self._left_out(f"{at}/{escaped(name)}", reason))
            elif key in _USERS_OWN or not _is_secret(member):
                called, inside, below = f"{at}/{escaped(key)}", member, place
                if at.endswith("/outboundRules") and (rule := _one_of(member)):
                    inside, below = member[rule], f"{place}/{rule}"
                    self.moved[called] = below
                converted = self.convert(inside, called, below, depth + 1, own=key in _USERS_OWN)
                self._put(spelled, key, converted)
        return spelled

    def _refer(self, spelled: JsonObject, key: str, reference: JsonObject, at: str, place: str) -> None:
        called = _ARM_NAMES.get(key, f"{key.removesuffix('Reference')}Id")
        pointer = f"{at}/{called}"
        self.moved[pointer] = place
        arm_id, kind, name = (words(reference.get(part)) for part in ("armId", "kind", "name"))
        text = self._placeholder_in(arm_id or name)
        if text:
            self._left_out(pointer, placeholder_reason(text))
        elif arm_id:
            spelled[called] = reference["armId"]  # with any space around it, which is as wrong in ARM
        elif not kind or not name:
            self._left_out(pointer, f"`{key}` does not name a resource; set `armId`, or `group`, `kind` and `name`")
        else:
            try:
                spelled[called] = self._names.named(key_of(reference.get("group"), kind), name, self._namespace)
            except KeyError:
                reason = f"the ARM id of the {shortened(kind)} `{shortened(name)}` is unknown; set `armId`"
                self._left_out(pointer, reason)

    def _placeholder_in(self, text: str) -> str:
        return "" if self._names.around.as_applied else placeholder_in(text)

    def _put(self, spelled: JsonObject, key: str, value: object) -> None:
        if value is not _LEFT_OUT:
            spelled[key] = value

    def _left_out(self, at: str, reason: str) -> object:
        self.unresolved[at] = reason
        return _LEFT_OUT


def _is_reference(key: str, value: object) -> bool:
    """Check whether a member refers to a resource; the `imageReference` of a machine does not."""
    named = key == "reference" or key.endswith("Reference")
    return named and isinstance(value, dict) and value.keys() <= {"armId", "group", "kind", "name", "wellKnownName"}


def _is_secret(value: object) -> bool:
    """Check whether a value refers to a key of a Kubernetes secret."""
    return isinstance(value, dict) and value.keys() == {"key", "name"} and all(map(words, value.values()))


def _one_of(value: object) -> str:
    """Return the only key of an object that contains one object; ASO has such a key for each variant."""
    only = next(iter(value), "") if isinstance(value, dict) and len(value) == 1 else ""
    return only if only and isinstance(value, dict) and isinstance(value[only], dict) else ""


def in_operator_spelling(name: str) -> str:
    """Return ASO's name of an ARM key at the top of a `spec`."""
    return _OPERATOR_NAMES.get(name, name)


_OPERATOR_NAMES = {called: key for key, called in _ARM_NAMES.items()}
