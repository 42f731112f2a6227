"""Azure Resource Manager ids and scopes, compared by whole segments and without case.

A scope is an id too: `/` (the tenant), a management group, a subscription, a resource group or a resource. What is not
well formed is no id: it is under nothing and nothing is under it. Source: learn.microsoft.com, "Understand scope for
Azure RBAC", scope format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from policyeng.facts.words import list_stated_keys, trim
from policyeng.models import lowered
from policyeng.named import NamedTuple

_MANAGEMENT_GROUP = ("providers", "microsoft.management", "managementgroups")
_WORKSPACE_TYPE = ("microsoft.machinelearningservices", "workspaces")
_PRIVATE_ENDPOINT = ("providers", "microsoft.network", "privateendpoints")

#: Positions in a list by the segments of scopes; see `index_scopes`.
ScopeIndex = dict[tuple[str, ...], list[int]]


def fold_id(arm_id: str) -> str:
    """Return an id for comparing, whatever it looks like: in lower case and without a slash at its end."""
    return lowered(arm_id).removesuffix("/")


def parts_of(arm_id: object) -> tuple[str, ...] | None:
    """Return the parts of an id between slashes, in lower case, none for the root `/`; None if it is not an id.

    One trailing slash is ignored. Same as `segments` of `lib.ids`: an id begins with a slash and has no blank part;
    otherwise its parts are not checked.
    """
    if not isinstance(arm_id, str):
        return None
    if arm_id == "/":
        return ()
    first, *parts = fold_id(arm_id).split("/")
    return tuple(parts) if not first and parts and all(map(trim, parts)) else None


@lru_cache(maxsize=16384)
def segments(arm_id: str) -> tuple[str, ...] | None:
    """Return the segments of an id in lower case, none for the root `/`; `None` if the id is malformed.

    Well formed is: a slash first, one more at the end or none, an optional subscription with an optional resource
    group, then provider blocks, each a namespace and one or more pairs of type and name.
    """
    parts = parts_of(arm_id)
    return parts if not parts or _is_well_formed(parts) else None


def _is_well_formed(parts: tuple[str, ...]) -> bool:
    """Return whether lower-case segments follow the grammar of ids."""
    at = 0
    if parts[0] == "subscriptions":
        at = 4 if parts[2:3] == ("resourcegroups",) else 2
    while at < len(parts):
        if parts[at] != "providers":
            return False
        at += 4
        while at < len(parts) and parts[at] != "providers":
            at += 2
    return at == len(parts)


def guid_of(role_id: object) -> str:
    """Return the last part of the id of a role, in lower case, whatever precedes it.

    Empty if the id is not a string.
    """
    return lowered(trim(role_id)).rstrip("/").rpartition("/")[2] if isinstance(role_id, str) else ""


def name_of(arm_id: str) -> str:
    """Return the last part of an id, spelled as there."""
    return arm_id.removesuffix("/").rpartition("/")[2]


def covers(scope: str, arm_id: str) -> bool | None:
    """Return whether an id is at or under a scope.

    `None` if ids alone are not enough: the scope is a management group and the id may belong to one of its
    subscriptions, or a part of one of them is still open. A malformed id or scope is never covered and never covers.
    """
    outer, inner = segments(scope), segments(arm_id)
    if outer is None or inner is None:
        return False
    if inner[: len(outer)] == outer:
        return True
    if may_hold(scope, arm_id):
        return None
    below_tenant = inner[:1] == ("subscriptions",) or inner[:3] == _MANAGEMENT_GROUP
    return None if below_tenant and len(outer) == 4 and outer[:3] == _MANAGEMENT_GROUP else False


def may_hold(scope: str, arm_id: str) -> bool:
    """Return whether an id is possibly at or under a scope: it would be, but parts of one are still open."""
    outer, inner = segments(scope) or (), segments(arm_id) or ()
    differing = [pair for pair in zip(outer, inner, strict=False) if pair[0] != pair[1]]
    return bool(differing) and len(outer) <= len(inner) and all(any(map(_is_open, pair)) for pair in differing)


def is_open(arm_id: str) -> bool:
    """Return whether a part of an id is still open, such as an unknown target subscription of a deployment.

    Such a part is in braces, `{subscription}`.
    """
    return "{" in arm_id and any(map(_is_open, segments(arm_id) or ()))


def with_open(scope: str, open_scopes: Iterable[str]) -> Iterator[str]:
    """Yield a scope in lower case, and those of some open ones of its kind that may turn out to be it."""
    yield fold_id(scope)
    depth = len(segments(scope) or ())
    yield from (other for other in open_scopes if len(segments(other) or ()) == depth and may_hold(scope, other))


def open_scopes(by_scope: Mapping[str, object]) -> list[str]:
    """Return the scopes of an index of which a part is still open, sorted.

    The inputs decide which those are: resources that they lack have ids without open parts.
    """
    return sorted(filter(is_open, list_stated_keys(by_scope)))


def _is_open(part: str) -> bool:
    return part.startswith("{") and part.endswith("}")


def is_at_or_under(arm_id: str, scope: str) -> bool:
    """Return whether an id is certainly at or under a scope; never for management groups, whose members are unknown."""
    return covers(scope, arm_id) is True


def resource_group_of(arm_id: str) -> str | None:
    """Return the lower-case id of the resource group that contains an id, or `None`."""
    parts = segments(arm_id) or ()
    return _joined(parts[:4]) if parts[:1] == ("subscriptions",) and parts[2:3] == ("resourcegroups",) else None


@lru_cache(maxsize=16384)
def workspace_of(arm_id: str) -> str | None:
    """Return the lower-case id of the Machine Learning workspace that an id is at or under, or `None`."""
    parts = segments(arm_id) or ()
    is_workspace = resource_group_of(arm_id) and parts[4:5] == ("providers",) and parts[5:7] == _WORKSPACE_TYPE
    return _joined(parts[:8]) if is_workspace else None


def index_scopes(scopes: Iterable[Iterable[str]]) -> ScopeIndex:
    """Return positions by the segments of their scopes; those without a known subscription by `()`."""
    found: ScopeIndex = {}
    for position, several in enumerate(scopes):
        for scope in {_place_of(scope) for scope in several}:
            found.setdefault(scope, []).append(position)
    return found


def positions_near(indexed: ScopeIndex, arm_id: str) -> list[int]:
    """Return, in their order, the positions in an index of scopes that may contain an id."""
    parts = segments(arm_id) or ()
    scopes = indexed if is_open(arm_id) else [parts[:depth] for depth in range(len(parts) + 1)]
    return sorted({position for scope in scopes for position in indexed.get(scope, ())})


def _place_of(scope: str) -> tuple[str, ...]:
    parts = segments(scope) or ()
    return parts if parts[:1] == ("subscriptions",) and not is_open(scope) else ()


@lru_cache(maxsize=16384)
def scopes_of(arm_id: str) -> tuple[str, ...]:
    """Return the lower-case ids of what contains an id: subscription, resource group, workspace or private endpoint."""
    parts = segments(arm_id) or ()
    subscription = _joined(parts[:2]) if parts[:1] == ("subscriptions",) else None
    group = resource_group_of(arm_id)
    endpoint = _joined(parts[:8]) if group and parts[4:7] == _PRIVATE_ENDPOINT and len(parts) > 7 else None
    return tuple(filter(None, (subscription, group, workspace_of(arm_id), endpoint)))


def extended_by(arm_id: str) -> str:
    """Return the lower-case id of the resource or scope that an extension resource extends; empty for other resources.

    An extension resource has a `providers` block below that of another resource, or is of the namespace
    Microsoft.Authorization, all of whose types extend resources and scopes.
    """
    extended, found, own = fold_id(arm_id).rpartition("/providers/")
    is_extension = found and ("/providers/" in extended or own.startswith("microsoft.authorization/"))
    return (extended or "/") if is_extension else ""


class ArmPlace(NamedTuple):
    """Where a resource is, by its lower-case id.

    Attributes:
        scopes: the result of `scopes_of`.
        workspace: the result of `workspace_of`.
        extended: the result of `extended_by`.
    """

    scopes: tuple[str, ...]
    workspace: str | None
    extended: str


def place_in_arm(key: str) -> ArmPlace:
    """Return where the resource with a lower-case id is, from one split of the id if it is an ordinary one."""
    head, _, tail = key.partition("/providers/")
    group, own = head.split("/"), tail.split("/")
    is_ordinary = (
        len(group) == 5
        and group[0] == ""
        and group[1] == "subscriptions"
        and group[3] == "resourcegroups"
        and group[2] != ""
        and group[4] != ""
        and len(own) > 2
        and len(own) % 2 == 1
        and "providers" not in own
        and "" not in own
        and key.isascii()
        and key.isprintable()
        and " " not in key
    )
    if not is_ordinary:
        return ArmPlace(scopes_of(key), workspace_of(key), extended_by(key))
    extended = head if own[0] == "microsoft.authorization" else ""
    scopes = f"/subscriptions/{group[2]}", head
    block = own[0], own[1]
    if block not in (_WORKSPACE_TYPE, _PRIVATE_ENDPOINT[1:]):
        return ArmPlace(scopes, None, extended)
    holder = f"{head}/providers/{own[0]}/{own[1]}/{own[2]}"
    return ArmPlace((*scopes, holder), holder if block == _WORKSPACE_TYPE else None, extended)


def _joined(parts: tuple[str, ...]) -> str:
    return "/" + "/".join(parts)


def types_of(identity: str) -> tuple[str, ...]:
    """Return the lower-case types that a full ARM id can have; none when it is not one.

    The last `providers` of an id decides: an extension resource has its own type, not that of what it extends.
    """
    folded = lowered(identity)
    segments = folded.split("/")
    if segments[0] or len(segments) < 3 or "" in segments[1:]:
        return ()
    start = folded.rfind("/providers/")
    if start < 0:
        return _scope_types(segments[1:])
    named = folded[start + len("/providers/") :].split("/")
    if len(named) < 3 or len(named) % 2 == 0:
        return ()
    return ("/".join((named[0], *named[1::2])),)


def _scope_types(segments: list[str]) -> tuple[str, ...]:
    """Subscriptions and resource groups, the two kinds of resources whose ids name no provider."""
    if segments[0] != "subscriptions":
        return ()
    if len(segments) == 2:
        return ("microsoft.resources/subscriptions",)
    if len(segments) == 4 and segments[2] == "resourcegroups":
        return ("microsoft.resources/resourcegroups", "microsoft.resources/subscriptions/resourcegroups")
    return ()
