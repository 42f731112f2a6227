"""Resources of their own in Terraform that ARM has within others: outbound rules of workspaces, pools of clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from policyeng.models import JsonObject, lowered
from policyeng.sources.arm_entry import is_placeholder
from policyeng.sources.reading import Placed
from policyeng.sources.terraform.instances import value_at
from policyeng.strict.json_text import escaped


class _Fold(NamedTuple):
    """Where a type goes: the type of its parent, the ARM pointer there, and whether that is a list, not by name."""

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


def folded(every: Iterable[Placed]) -> list[Placed]:
    """The resources, those that belong within another put there.

    One whose parent is not among them stays; one whose parent is not known makes what it may belong to unreadable.
    """
    whole: dict[str, Placed] = {}
    parts: list[tuple[_Fold, Placed]] = []
    others: list[Placed] = []
    for placed in every:
        fold = _FOLDS.get(lowered(placed.resource["type"]))
        if fold is not None:
            parts.append((fold, placed))
        elif lowered(placed.resource["id"]) in whole:
            others.append(placed)
        else:
            whole[lowered(placed.resource["id"])] = placed
    for fold, part in parts:
        above = part.resource["id"].rpartition("/")[0].rpartition("/")[0]
        if (parent := whole.get(lowered(above))) is not None:
            whole[lowered(above)] = _within(parent, fold, part)
            continue
        others.append(part)
        if is_placeholder(above.rpartition("/")[2]):
            whole |= {key: _open(one, fold, part) for key, one in whole.items() if _is(one, fold.parent)}
    return [*whole.values(), *others]


def _is(placed: Placed, arm_type: str) -> bool:
    return lowered(placed.resource["type"]) == arm_type


def _open(placed: Placed, fold: _Fold, part: Placed) -> Placed:
    last = part.resource["id"].rpartition("/")[2]
    why = f"it is known only after apply whether `{last}` belongs to it; check the state after it"
    return placed._replace(unreadable={**placed.unreadable, fold.pointer: why})


def _within(parent: Placed, fold: _Fold, part: Placed) -> Placed:
    """The parent with a part in it, and the places and gaps of the part."""
    name = part.resource.get("name")
    if not fold.is_list and not isinstance(name, str):
        return _open(parent, fold, part)
    properties = part.resource.get("properties") or {}
    held = value_at(parent.resource, fold.pointer)
    if fold.is_list:
        known = held if isinstance(held, list) else []
        value: object = [*known, {**({"name": name} if name else {}), **properties}]
        base = f"{fold.pointer}/{len(known)}"
    else:
        value = {**(held if isinstance(held, dict) else {}), str(name): properties}
        base = f"{fold.pointer}/{escaped(str(name))}"
    moved = dict(_moved(part.fields, base))
    return parent._replace(
        resource=_with(parent.resource, fold.pointer, value),
        unreadable={**parent.unreadable, **dict(_moved(part.unreadable, base))},
        fields={**parent.fields, base: part.pointer, **moved},
    )


def _moved(pointers: Mapping[str, str], base: str) -> Iterator[tuple[str, str]]:
    for pointer, value in pointers.items():
        if pointer.startswith("/properties/"):
            yield base + pointer.removeprefix("/properties"), value
        elif pointer == "/name":
            yield f"{base}/name", value


def _with(resource: JsonObject, pointer: str, value: object) -> JsonObject:
    """A copy of the resource with a value at a pointer of keys; only what lies on the way is copied."""
    key, _, rest = pointer[1:].partition("/")
    held = resource.get(key)
    inner = held if isinstance(held, dict) else {}
    return {**resource, key: _with(inner, f"/{rest}", value) if rest else value}
