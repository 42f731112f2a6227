"""Separate Terraform resources that ARM nests in others: outbound rules of workspaces, pools of clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from policyeng.models import lowered
from policyeng.parsing.json_pointer import escaped, filled, keys_of, value_at
from policyeng.sources.arm_resource import is_placeholder
from policyeng.sources.parsed import Placed


class _Fold(NamedTuple):
    """The target of a nested type: its parent type, the ARM pointer, and whether that is a list or an object."""

    parent: str
    pointer: str
    is_list: bool


_FOLDS: Mapping[str, _Fold] = {
    "microsoft.machinelearningservices/workspaces/outboundrules": _Fold(
        "microsoft.machinelearningservices/workspaces", "/properties/managedNetwork/outboundRules", is_list=False
    ),
    "microsoft.containerservice/managedclusters/agentpools": _Fold(
        "microsoft.containerservice/managedclusters", "/properties/agentPoolProfiles", is_list=True
    ),
}
#: The nested types, in lower case.
FOLDED = frozenset(_FOLDS)


def fold_children(every: Iterable[Placed]) -> list[Placed]:
    """Return the resources, with nested ones moved into their parents.

    A resource without its parent in the document stays. An unknown parent makes the field unreadable in all candidates.
    """
    whole: list[Placed] = []
    parts: dict[str, list[Placed]] = {}
    for placed in every:
        if lowered(placed.resource["type"]) in _FOLDS:
            above = placed.resource["id"].rpartition("/")[0].rpartition("/")[0]
            parts.setdefault(lowered(above), []).append(placed)
        else:
            whole.append(placed)
    joined = [_with(placed, parts.pop(lowered(placed.resource["id"]), ())) for placed in whole]
    homeless = {_fold_of(part): part for above, held in parts.items() for part in held if _is_open(above)}
    opened = [_opened(placed, homeless) for placed in joined]
    return [*opened, *(part for held in parts.values() for part in held)]


def _fold_of(part: Placed) -> _Fold:
    return _FOLDS[lowered(part.resource["type"])]


def _is_open(above: str) -> bool:
    """Check whether the last name of an id is unknown; the placeholder of a planned resource has a dot."""
    last = above.rpartition("/")[2]
    return is_placeholder(last) and "." not in last


def _opened(placed: Placed, homeless: Mapping[_Fold, Placed]) -> Placed:
    unreadable = {
        fold.pointer: f"it is known only after apply whether `{part.resource['id'].rpartition('/')[2]}` belongs to it"
        for fold, part in homeless.items()
        if fold.parent == lowered(placed.resource["type"])
    }
    return placed._replace(unreadable={**placed.unreadable, **unreadable}) if unreadable else placed


def _with(parent: Placed, parts: Sequence[Placed]) -> Placed:
    """Return the parent with its nested resources, their places and their unreadable parts."""
    resource: object = parent.resource
    unreadable, fields = dict(parent.unreadable), dict(parent.fields)
    for fold, several in groupby(parts, _fold_of):
        held = value_at(resource, fold.pointer)
        listed = list(held) if isinstance(held, list) else []
        by_name = dict(held) if isinstance(held, dict) else {}
        for part in several:
            name, properties = part.resource.get("name"), part.resource.get("properties") or {}
            base = f"{fold.pointer}/{len(listed) if fold.is_list else escaped(str(name))}"
            if fold.is_list:
                listed.append({**({"name": name} if name else {}), **properties})
            elif name:
                by_name[str(name)] = properties
            else:
                base = fold.pointer
                unreadable[base] = next(iter(part.unreadable.values()), "a name is known only after apply")
                continue
            fields |= {base: part.pointer, **dict(_move(part.fields, base))}
            unreadable |= dict(_move(part.unreadable, base))
        resource = filled(resource, keys_of(fold.pointer), listed if fold.is_list else by_name)
    return parent._replace(
        resource=resource if isinstance(resource, dict) else parent.resource, unreadable=unreadable, fields=fields
    )


def _move(pointers: Mapping[str, str], base: str) -> Iterator[tuple[str, str]]:
    for pointer, value in pointers.items():
        if pointer.startswith("/properties/"):
            yield base + pointer.removeprefix("/properties"), value
        elif pointer == "/name":
            yield f"{base}/name", value
