"""The functions of ARM templates: on scalars, lists, objects and networks, and on the deployment scope."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from policyeng.models import lowered
from policyeng.parsing.arm_expressions import ExpressionError
from policyeng.parsing.arm_functions import (
    CIDR_FUNCTIONS,
    DEEP_FUNCTIONS,
    SHALLOW_FUNCTIONS,
    Function,
    a_list,
    a_text,
    an_object,
    concat,
    contains,
    distinct,
)
from policyeng.parsing.json_text import kind_of
from policyeng.sources.arm_template.expressions import TemplateScope, find_unresolved, stand_in, text_of
from policyeng.sources.templates import Unresolved

_ABSENT = Unresolved("absent")


def member(holder: object, key: object) -> object:
    """Return the member with a key, compared without case, or the entry at an index.

    Raises:
        ExpressionError: it does not exist.
    """
    found = _member(holder, key)
    if found is _ABSENT:
        raise ExpressionError(f"there is no `{key}` in it")
    return found


def _member(holder: object, key: object) -> object:
    if isinstance(holder, dict) and isinstance(key, str):
        if key in holder:
            return holder[key]
        return next((value for name, value in holder.items() if lowered(name) == lowered(key)), _ABSENT)
    if isinstance(holder, list | str) and isinstance(key, int) and not isinstance(key, bool):
        return holder[key] if 0 <= key < len(holder) else _ABSENT
    if holder is None:
        return _ABSENT
    raise ExpressionError("it has no members")


def _try_get(holder: object, *keys: object) -> object:
    for key in keys:
        if isinstance(holder, Unresolved):
            return holder
        holder = _member(holder, key)
        if holder is _ABSENT:
            return None
    return holder


def _union(*parts: object) -> object:
    if all(isinstance(part, list) for part in parts):
        return distinct([entry for part in parts for entry in a_list(part)])
    merged: dict[str, object] = {}
    for part in parts:
        merged = _merge(merged, an_object(part))
    return merged


def _merge(left: dict[str, object], right: dict[str, object]) -> dict[str, object]:
    """Merge objects recursively; lists are replaced. Keys are compared without case."""
    names = {lowered(key): key for key in left}
    merged = dict(left)
    for key, value in right.items():
        own = names.get(lowered(key), key)
        mine = merged.get(own)
        if isinstance(mine, dict) and isinstance(value, dict):
            merged[own] = _merge(mine, value)
        elif isinstance(mine, Unresolved) and isinstance(value, dict):
            merged[own] = mine  # its other members are not known
        elif value is None and mine is not None:
            merged[own] = Unresolved("it is not documented whether null replaces a value in `union`", "{union}")
        else:
            merged[own] = value
    return merged


def _create_object(*pairs: object) -> object:
    if len(pairs) % 2:
        raise ExpressionError("a key has no value")
    if unknown := next((key for key in pairs[::2] if isinstance(key, Unresolved)), None):
        return unknown
    return {a_text(key): value for key, value in zip(pairs[::2], pairs[1::2], strict=True)}


def _flatten(parts: object) -> object:
    if unknown := next((part for part in a_list(parts) if isinstance(part, Unresolved)), None):
        return unknown
    return [entry for part in a_list(parts) for entry in a_list(part)]


def _merge_shallowly(parts: object) -> object:
    if unknown := next((part for part in a_list(parts) if isinstance(part, Unresolved)), None):
        return unknown
    return {key: value for part in a_list(parts) for key, value in an_object(part).items()}


#: Functions that combine values, which can be unresolved, by name in lower case.
MAKING: Mapping[str, Function] = {"createarray": lambda *entries: list(entries), "createobject": _create_object}

#: Functions of lists and objects whose content can be unresolved, by name in lower case.
SHALLOW: Mapping[str, Function] = {
    **SHALLOW_FUNCTIONS,
    "flatten": _flatten,
    "shallowmerge": _merge_shallowly,
    "tryget": _try_get,
}

#: Functions whose arguments must be resolved completely, by name in lower case.
WHOLE: Mapping[str, Function] = {**CIDR_FUNCTIONS, **DEEP_FUNCTIONS}

#: Functions that compare entries of lists, which must be resolved, but not values of objects; `concat` compares none.
BY_KEY: Mapping[str, Function] = {"concat": concat, "contains": contains, "union": _union}


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


def call_in_scope(name: str, scope: TemplateScope, arguments: Sequence[object]) -> object:
    """Apply a function of `SCOPE_FUNCTIONS`, whose arguments are strings.

    Raises:
        ExpressionError: an argument is null, a list or an object, or the function fails.
    """
    unfit = next((kind_of(argument) for argument in arguments if isinstance(argument, list | dict | None)), "")
    if unfit:
        raise ExpressionError(f"{unfit} where a string should be")
    return SCOPE_FUNCTIONS[name](scope, *arguments)


#: By name in lower case.
SCOPE_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "extensionresourceid": _extension_id,
    "managementgroupresourceid": _management_group_id,
    "resourcegroup": _resource_group,
    "resourceid": _resource_id,
    "subscription": _subscription,
    "subscriptionresourceid": _subscription_id,
    "tenantresourceid": lambda scope, *arguments: _make_id("", scope.place.reason, arguments),
}
