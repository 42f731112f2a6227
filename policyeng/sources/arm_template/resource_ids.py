"""Types, names and ARM ids of the resources in a template."""

from __future__ import annotations

from typing import NamedTuple

from policyeng.models import lowered
from policyeng.sources.arm_template.expressions import ExpressionError
from policyeng.sources.arm_template.scope import DeploymentTarget
from policyeng.sources.arm_template.scope_functions import id_below
from policyeng.sources.arm_template.unresolved import text_of
from policyeng.sources.template_parameters import Unresolved


class Called(NamedTuple):
    """The type, name and id of a resource.

    Attributes:
        arm_type: the full type; for an extension, without the type that it extends.
        path: the prefix of the types of its children; for an extension, with the type that it extends.
        name: the full name, such as `workspace/cluster`, with unknown parts in braces.
        base: the id of what it is deployed to, or that it extends.
        id: its ARM id.
    """

    arm_type: str
    path: str
    name: str
    base: str
    id: str


def name_resource(kind: str, name: object, parent: Called | None, base: str) -> Called:
    """Return the full type, name and id of a resource.

    Args:
        kind: its type; relative to the parent if it has one.
        name: its name, likewise; can be unresolved.
        parent: the resource that contains it.
        base: the id of what it is deployed to, or that it extends.

    Raises:
        ExpressionError: type and name do not have matching numbers of parts.
    """
    kind, text = kind.strip("/"), text_of(name).strip("/")
    if parent is not None:
        if "." not in kind.split("/", maxsplit=1)[0]:
            text = text if text.count("/") > kind.count("/") and not _extends(kind) else f"{parent.name}/{text}"
            kind = f"{parent.path}/{kind}"
        elif not lowered(kind).startswith(f"{lowered(parent.path)}/"):
            base = parent.id
    names = text.split("/")
    missing = kind.count("/") - len(names)
    if missing > 0 and isinstance(name, Unresolved):
        inner = names[0].strip("{}")
        names = [f"{{{part} of {inner}}}" for part in kind.split("/")[1 : missing + 1]] + names
    if "" in names:
        raise ExpressionError(f"a part of the name `{text}` is empty")
    return _name_extension(kind, names, base) if _extends(kind) else _full_names(kind, kind, names, base)


def _full_names(kind: str, path: str, names: list[str], base: str) -> Called:
    return Called(kind, path, "/".join(names), base, id_below(base, kind, names))


def _extends(kind: str) -> bool:
    """Check whether a type is the older form of an extension: `Microsoft.X/y/providers/roleAssignments`."""
    return "/providers/" in f"/{lowered(kind)}/"


def _name_extension(kind: str, names: list[str], base: str) -> Called:
    """Return the names of an extension whose name contains the provider: `storage/Microsoft.Authorization/guid`."""
    segments = kind.split("/")
    at = len(segments) - 1 - [lowered(segment) for segment in reversed(segments)].index("providers")
    if len(segments) - 1 != len(names):
        raise ExpressionError(f"`{kind}` takes {len(segments) - 1} names, not {len(names)}")
    outer = id_below(base, "/".join(segments[:at]), names[: at - 1])
    arm_type = "/".join([names[at - 1], *segments[at + 1 :]])
    return Called(arm_type, kind, "/".join(names), outer, id_below(outer, arm_type, names[at:]))


def scope_id(value: object, place: DeploymentTarget) -> str:
    """Return the id of an extension's `scope`, which is absolute or relative to what the template is deployed to."""
    text = text_of(value)
    if text.startswith("/"):
        return text.rstrip("/")
    return f"{place.id}/providers/{text}" if "/" in text else f"/{text}"
