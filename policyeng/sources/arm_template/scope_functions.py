"""The functions of ARM templates that return ids or properties of the deployment scope.

Each takes the scope and the values of its arguments, which can be unresolved, and raises ExpressionError.
Source: https://learn.microsoft.com/azure/azure-resource-manager/templates/template-functions-resource and -scope.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from policyeng.models import lowered
from policyeng.sources.arm_template.expressions import ExpressionError
from policyeng.sources.arm_template.scalar_functions import a_text
from policyeng.sources.arm_template.scope import TemplateScope
from policyeng.sources.arm_template.unresolved import find_unresolved, stand_in, text_of
from policyeng.sources.template_parameters import Unresolved

_GUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_WHERE = "the location of the resource group is not known; give `--parameters location=<region>`"
_LATER = "it is known only at deployment"


def id_below(base: str, arm_type: str, names: Sequence[str]) -> str:
    """Return the ARM id of a resource.

    Args:
        base: the id of what it is deployed to, or that it extends.
        arm_type: such as `Microsoft.Storage/storageAccounts/blobServices`.
        names: one for each part of the type after the first.

    Raises:
        ExpressionError: there are more or fewer names.
    """
    provider, *kinds = arm_type.split("/")
    if len(kinds) != len(names) or not kinds:
        raise ExpressionError(f"`{arm_type}` takes {len(kinds)} names, not {len(names)}")
    if lowered(arm_type) == "microsoft.resources/resourcegroups":
        return f"{base}/resourceGroups/{names[0]}"
    below = "".join(f"/{kind}/{name}" for kind, name in zip(kinds, names, strict=True))
    return f"{base}/providers/{provider}{below}"


def _split_arguments(arguments: Sequence[object]) -> tuple[str, list[str], Unresolved | None]:
    """Return the type and the names in the arguments, and the first unresolved one."""
    if not arguments:
        raise ExpressionError("the type of a resource is missing")
    if isinstance(arguments[0], Unresolved):
        raise ExpressionError("the type of the resource is not known")
    kind = a_text(arguments[0]).strip("/")
    names = [name for argument in arguments[1:] for name in text_of(argument).strip("/").split("/")]
    missing = kind.count("/") - len(names)
    unknown = find_unresolved(list(arguments))
    if missing > 0 and unknown is not None and len(arguments) == 2:
        names = [f"{{{kind.split('/')[-1]} of {names[0].strip('{}')}}}"] * missing + names
    return kind, names, unknown


def _make_id(base: str, reason: str, arguments: Sequence[object]) -> object:
    kind, names, unknown = _split_arguments(arguments)
    text = id_below(base, kind, names)
    if unknown is not None:
        return Unresolved(unknown.reason, text)
    return Unresolved(reason, text) if "{" in base else text


def _resource_id(scope: TemplateScope, *arguments: object) -> object:
    """Apply `resourceId([subscriptionId], [resourceGroupName], resourceType, name, ...)`."""
    at = next((index for index, entry in enumerate(arguments[:3]) if isinstance(entry, str) and "/" in entry), None)
    if at is None:
        if unknown := find_unresolved(list(arguments)):
            return Unresolved(unknown.reason, stand_in("resourceId", arguments))
        raise ExpressionError("the type of a resource is missing")
    base, reason = scope.place.id, scope.place.reason
    before = [text_of(argument).replace("/", "~") for argument in arguments[:at]]
    unknown = find_unresolved(list(arguments[:at]))
    if at == 2:
        base = f"/subscriptions/{before[0]}/resourceGroups/{before[1]}"
    elif at == 1 and _GUID.fullmatch(before[0]):
        base = "/subscriptions/" + "/".join([before[0], *base.split("/")[3:5]])
    elif at == 1:
        base = f"{scope.place.subscription}/resourceGroups/{before[0]}"
    return _make_id(base, unknown.reason if unknown else reason, arguments[at:])


def _subscription_id(scope: TemplateScope, *arguments: object) -> object:
    """Apply `subscriptionResourceId([subscriptionId], resourceType, name, ...)`."""
    base, reason = scope.place.subscription, scope.place.reason
    if arguments and "/" not in text_of(arguments[0]):
        unknown = find_unresolved([arguments[0]])
        base = f"/subscriptions/{text_of(arguments[0])}"
        reason, arguments = unknown.reason if unknown else reason, arguments[1:]
    return _make_id(base, reason, arguments)


def _extension_id(scope: TemplateScope, base: object, *arguments: object) -> object:  # noqa: ARG001  # the signature is fixed
    """Apply `extensionResourceId(baseResourceId, resourceType, name, ...)`."""
    unknown = find_unresolved([base])
    identity = _make_id(text_of(base).rstrip("/"), "", arguments)
    return Unresolved(unknown.reason, text_of(identity)) if unknown else identity


def _management_group_id(scope: TemplateScope, *arguments: object) -> object:
    """Apply `managementGroupResourceId([managementGroupId], resourceType, name, ...)`."""
    base, reason = scope.place.id, scope.place.reason
    if arguments and "/" not in text_of(arguments[0]):
        base = f"/providers/Microsoft.Management/managementGroups/{text_of(arguments[0])}"
        arguments = arguments[1:]
    return _make_id(base, reason, arguments)


def _resource_group(scope: TemplateScope) -> object:
    place = scope.place
    segments = place.id.split("/")
    if len(segments) != 5 or lowered(segments[3]) != "resourcegroups":
        raise ExpressionError("the template is not deployed to a resource group")
    return {
        "id": place.stated(place.id),
        "name": place.stated(segments[4]),
        "type": "Microsoft.Resources/resourceGroups",
        "location": Unresolved(_WHERE, "{location}"),
        "tags": Unresolved(f"the tags of the resource group: {_LATER}", "{tags}"),
        "managedBy": Unresolved(f"who manages the resource group: {_LATER}", "{managedBy}"),
        "properties": {"provisioningState": "Succeeded"},
    }


def _subscription(scope: TemplateScope) -> object:
    whole = scope.place.subscription
    if not whole:
        raise ExpressionError("the template is not deployed to a subscription")
    return {
        "id": scope.place.stated(whole),
        "subscriptionId": scope.place.stated(whole.split("/")[2]),
        "tenantId": Unresolved(f"the tenant of the subscription: {_LATER}", "{tenantId}"),
        "displayName": Unresolved(f"the name of the subscription: {_LATER}", "{subscriptionName}"),
    }


#: By name in lower case.
FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "extensionresourceid": _extension_id,
    "managementgroupresourceid": _management_group_id,
    "resourcegroup": _resource_group,
    "resourceid": _resource_id,
    "subscription": _subscription,
    "subscriptionresourceid": _subscription_id,
    "tenantresourceid": lambda scope, *arguments: _make_id("", scope.place.reason, arguments),
}
