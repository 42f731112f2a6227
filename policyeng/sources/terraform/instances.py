"""The resource instances of a Terraform document, with their attributes and why some cannot be read.

Source: https://developer.hashicorp.com/terraform/internals/json-format and the state file of version 4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from policyeng.models import JsonObject
from policyeng.parsing.json_pointer import escaped, filled, keys_of, value_at

#: Modules below modules, and lists and objects within attributes, deeper than this are not looked into.
MAX_DEPTH = 64

AFTER_APPLY = "it is known only after apply"
SENSITIVE = "it is marked sensitive, so it is not read"

_STEP = re.compile(r'module\.([^.\[]+)(\[(?:"(?:[^"\\]|\\.)*"|\d+)\])?\.?')


@dataclass(frozen=True, slots=True)
class Instance:
    """One resource instance.

    Attributes:
        address: such as `module.ml["a"].azurerm_subnet.this[0]`.
        module: the address of its module instance; empty for the root.
        name: its Terraform name, such as `this`.
        index: its key in `count` or `for_each`; None without one.
        values: its attributes, without those that cannot be read.
        pointer: of the resource in the document.
        attributes: the pointer of `values` in the document.
        unread: by JSON Pointer into `values`, why a value cannot be read.
        before: the attributes that stay as they are unless they change; empty when it is created or replaced.
        is_data: it is looked up and not managed here.
        declared: its type in the configuration; empty if that is `type`.
    """

    address: str
    module: str
    type: str
    name: str
    index: object
    values: JsonObject
    pointer: str
    attributes: str
    unread: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, object] = field(default_factory=dict)
    is_data: bool = False
    declared: str = ""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """The planned change of one instance."""

    unknown: object = None
    sensitive: object = None
    before: Mapping[str, object] = field(default_factory=dict)


def in_values(values: object, base: str, changes: Mapping[str, PlannedChange] | None = None) -> Iterator[Instance]:
    """Yield the instances of a `values` object (`root_module`, nested `child_modules`) at a pointer.

    Args:
        values: as `planned_values` of a plan or `values` of a state.
        base: its pointer.
        changes: of a plan, by address; a state has none.
    """
    root = values.get("root_module") if isinstance(values, dict) else None
    waiting: list[tuple[object, str, int]] = [(root, f"{base}/root_module", 0)]
    while waiting:
        module, pointer, depth = waiting.pop(0)
        if not isinstance(module, dict) or depth > MAX_DEPTH:
            continue
        for index, entry in enumerate(_list(module.get("resources"))):
            place = f"{pointer}/resources/{index}"
            if isinstance(entry, dict) and isinstance(entry.get("type"), str):
                yield _instance(entry, str(module.get("address") or ""), place, changes)
        for index, child in enumerate(_list(module.get("child_modules"))):
            waiting.append((child, f"{pointer}/child_modules/{index}", depth + 1))


def in_state_file(document: JsonObject) -> Iterator[Instance]:
    """Yield the instances of a `terraform.tfstate` of version 4, without deposed objects."""
    for at, entry in enumerate(_list(document.get("resources"))):
        if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
            continue
        module, name = str(entry.get("module") or ""), str(entry.get("name") or "")
        for number, stored in enumerate(_list(entry.get("instances"))):
            if not isinstance(stored, dict) or stored.get("deposed"):
                continue
            pointer = f"/resources/{at}/instances/{number}"
            attributes = stored.get("attributes")
            sensitive = [_path(path) for path in _list(stored.get("sensitive_attributes"))]
            values = attributes if isinstance(attributes, dict) else {}
            unread = {path: SENSITIVE for path in sensitive if path}
            values, unread = _without(values, unread)
            yield Instance(
                address=f"{module}.{entry['type']}.{name}".lstrip(".") + _show_index(stored.get("index_key")),
                module=module,
                type=entry["type"],
                name=name,
                index=stored.get("index_key"),
                values=values,
                pointer=pointer,
                attributes=f"{pointer}/attributes",
                unread=unread,
                is_data=entry.get("mode") == "data",
            )


def module_calls(module: str) -> list[str]:
    """Return the names of the calls to a module instance: `a` and `b` for `module.a["x.y"].module.b`."""
    return [step[1] for step in _STEP.finditer(module)]


def parent_module(module: str) -> str:
    """Return the address of the module instance that calls a module instance; empty for the root."""
    steps = [step[0].rstrip(".") for step in _STEP.finditer(module)]
    return ".".join(steps[:-1])


def module_key(module: str) -> str:
    """Return the key of a module instance in the `count` or `for_each` of its call; empty if there is none."""
    last = next(reversed([step[2] for step in _STEP.finditer(module)]), None)
    return (last or "").strip('[]"')


def _instance(entry: JsonObject, module: str, pointer: str, changes: Mapping[str, PlannedChange] | None) -> Instance:
    address = str(entry.get("address") or f"{entry['type']}.{entry.get('name')}")
    change = (changes or {}).get(address, PlannedChange())
    values = entry.get("values")
    values = values if isinstance(values, dict) else {}
    unread = dict.fromkeys(_marked(entry.get("sensitive_values")), SENSITIVE)
    unread |= dict.fromkeys(_marked(change.sensitive), SENSITIVE)
    unread |= dict.fromkeys(_marked(change.unknown), AFTER_APPLY)
    values, unread = _without(values, unread)
    return Instance(
        address=address,
        module=module,
        type=entry["type"],
        name=str(entry.get("name") or ""),
        index=entry.get("index"),
        values=values,
        pointer=pointer,
        attributes=f"{pointer}/values",
        unread=unread,
        before=change.before,
        is_data=entry.get("mode") == "data",
    )


def instance_of(
    entry: JsonObject, values: JsonObject, pointer: str, below: str, change: PlannedChange | None = None
) -> Instance:
    """Return the instance of an entry of `resource_changes`, with the values at a pointer below it."""
    address = str(entry.get("address") or f"{entry.get('type')}.{entry.get('name')}")
    stated = {**entry, "address": address, "values": values}
    made = _instance(stated, str(entry.get("module_address") or ""), pointer, {address: change} if change else None)
    return replace(made, attributes=pointer + below)


def _show_index(index: object) -> str:
    """Return the key of an instance in `count` or `for_each` as addresses have it; empty without one."""
    return "" if index is None else f"[{json.dumps(index, ensure_ascii=False)}]"


def _marked(marks: object) -> Iterator[str]:
    """Yield the pointers of `true` in a structure that mirrors the values; deeper structures are marked completely."""
    waiting: list[tuple[object, str, int]] = [(marks, "", 0)]
    while waiting:
        mark, pointer, depth = waiting.pop()
        if mark is True or (depth > MAX_DEPTH and mark):
            yield pointer
        elif isinstance(mark, dict):
            waiting += ((inner, f"{pointer}/{escaped(key)}", depth + 1) for key, inner in mark.items())
        elif isinstance(mark, list):
            waiting += ((inner, f"{pointer}/{index}", depth + 1) for index, inner in enumerate(mark))


def _without(values: JsonObject, unread: Mapping[str, str]) -> tuple[JsonObject, dict[str, str]]:
    """Return the values without unreadable ones; an empty sensitive attribute counts as readable."""
    kept = {
        pointer: reason
        for pointer, reason in unread.items()
        if reason != SENSITIVE or value_at(values, pointer) not in (None, "", [], {})
    }
    cut: object = values
    for pointer in kept:
        if value_at(cut, pointer) is not None:
            cut = filled(cut, keys_of(pointer), None)
    return cut if isinstance(cut, dict) else {}, kept


def _path(steps: object) -> str:
    """Return the pointer of an entry of `sensitive_attributes`: steps of `get_attr` and `index`."""
    parts: list[str] = []
    for step in _list(steps)[:MAX_DEPTH]:
        value = step.get("value") if isinstance(step, dict) else None
        value = value.get("value") if isinstance(value, dict) else value
        if isinstance(value, str | int) and not isinstance(value, bool):
            parts.append(escaped(str(value)))
    return "".join(f"/{part}" for part in parts)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
