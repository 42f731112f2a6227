"""What-if output of ARM: `az deployment ... what-if --no-pretty-print`, and the answer of the REST API.

Source: https://learn.microsoft.com/rest/api/resources/deployments/what-if and
https://learn.microsoft.com/azure/azure-resource-manager/templates/deploy-what-if (change types, limits).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from policyeng.errors import suggest_nearest
from policyeng.facts.arm_casing import as_arm_reads
from policyeng.facts.ids import types_of
from policyeng.models import Carried, Change, JsonObject, Operation, Problem, lowered
from policyeng.parsing.json_pointer import escaped, filled, keys_of, value_at
from policyeng.parsing.json_text import kind_of, shortened
from policyeng.sources.arm_resource import attached, is_placeholder, read_entry, service_made
from policyeng.sources.parsed import (
    ALONE,
    Changing,
    ParsedDocument,
    Placed,
    Surroundings,
    format_value,
    refuse,
    remark,
)
from policyeng.sources.templates import carrier_of, find_twice

SUMMARY = "what-if output: `az deployment group what-if --no-pretty-print`, and what the REST API answers"

#: By change type in lower case, what it does; empty for what it leaves as it is.
_OPERATIONS: Mapping[str, Operation | None] = {
    "create": Operation.CREATE,
    "modify": Operation.REPLACE,
    "delete": Operation.DELETE,
    "nochange": None,
    "ignore": None,
    "deploy": Operation.REPLACE,
    "unsupported": Operation.REPLACE,
}
_LISTS = ("changes", "potentialChanges")
SHAPES: tuple[frozenset[str], ...] = (
    frozenset({"changes", "correlationid", "diagnostics", "error", "potentialchanges", "properties", "status"}),
)
_COMMAND = "provide the output of `az deployment group what-if --no-pretty-print --result-format FullResourcePayloads`"
_MAYBE = "what-if cannot determine whether it is made; it is checked as if it were"
#: A template expression that only the deployment evaluates; text that is meant so begins with a name that is called.
_EXPRESSION = re.compile(r"\[\s*[A-Za-z_][\w.]*\s*\(.*\]", re.DOTALL)
#: What is printed in place of a secret.
_MASKED = re.compile(r"\*{3,}")
_SHORT_CIRCUITED = "shortcircuit"


def detect(document: object) -> bool:
    """Check whether the document is a what-if response, successful or failed."""
    if not isinstance(document, dict):
        return False
    answer = document.get("properties", document)
    if not isinstance(answer, dict):
        return False
    if any(_is_change(entry) for key in _LISTS for entry in _list(answer.get(key))):
        return True
    is_empty = any(answer.get(key) == [] for key in _LISTS) or isinstance(document.get("error"), dict)
    return is_empty and isinstance(document.get("status"), str) and "operation" not in document


def read(document: object, around: Surroundings = ALONE) -> ParsedDocument:  # noqa: ARG001  # it needs no context
    """Read the changes of a deployment; values that are unknown before it are unreadable or refused."""
    if not isinstance(document, dict) or not detect(document):
        return ParsedDocument(problems=(refuse("", "not what-if output", _COMMAND),))
    status, fault = document.get("status", "succeeded"), document.get("error")
    if not isinstance(status, str) or lowered(status) != "succeeded" or isinstance(fault, dict):
        why = f": {shortened(str(fault.get('message')))}" if isinstance(fault, dict) and fault.get("message") else ""
        return ParsedDocument(
            problems=(
                refuse(
                    "",
                    f"what-if ended with the status {format_value(status)}{why}",
                    "fix the error, and run what-if again",
                ),
            )
        )
    base = "/properties" if isinstance(document.get("properties"), dict) else ""
    answer = document["properties"] if base else document
    parts = [
        (base, answer),
        *((f"{base}/{key}/{at}", one) for key in _LISTS for at, one in enumerate(_list(answer.get(key)))),
    ]
    if twice := next((twice for pointer, part in parts for twice in find_twice(part, pointer)), None):
        return ParsedDocument(problems=(twice,))
    entries = [entry for key in _LISTS for entry in _list_changes(answer, key, base)]
    entries += _diagnostics(answer, base)
    return ParsedDocument(
        states_changes=True,
        changes=tuple(entry for entry in entries if isinstance(entry, Changing)),
        problems=tuple(entry for entry in entries if isinstance(entry, Problem)),
    )


def _list_changes(answer: JsonObject, key: str, base: str) -> Iterator[Changing | Problem]:
    entries = answer.get(key)
    if entries is not None and not isinstance(entries, list):
        yield refuse(f"{base}/{key}", f"`{key}` is {kind_of(entries)}, not a list", _COMMAND)
    for index, entry in enumerate(_list(entries)):
        pointer = f"{base}/{key}/{index}"
        read_ones = list(_change(entry, pointer))
        yield from read_ones
        if key == "potentialChanges" and any(isinstance(one, Changing) for one in read_ones):
            yield remark(pointer, _MAYBE)


def _change(entry: object, pointer: str) -> Iterator[Changing | Problem]:
    if not isinstance(entry, dict) or not isinstance(entry.get("changeType"), str):
        yield refuse(pointer, "a change without `changeType`", _COMMAND)
        return
    kind, identity = lowered(entry["changeType"]), entry.get("resourceId")
    if kind not in _OPERATIONS:
        message = f"unknown change type {format_value(entry['changeType'])}{suggest_nearest(kind, _OPERATIONS)}"
        yield refuse(f"{pointer}/changeType", message, "update policyeng")
    elif not isinstance(identity, str) and isinstance(entry.get("identifiers"), dict):
        yield remark(pointer, "a resource of an extension, not of Azure, so no policy checks it")
    elif _OPERATIONS[kind] is None and _has_effect(entry):
        message = f"the change type is {format_value(entry['changeType'])}, but `before` and `after` differ"
        yield refuse(pointer, message, _COMMAND)
    elif _OPERATIONS[kind] is None:
        if kind == "ignore" and not isinstance(entry.get("before"), dict):
            yield remark(pointer, f"what-if did not examine {format_value(identity)}, and assumes that it is unchanged")
    elif not isinstance(identity, str) or is_placeholder(identity) or not types_of(identity):
        why = entry.get("unsupportedReason") or f"`resourceId` is not the id of a resource: {format_value(identity)}"
        yield refuse(
            pointer, f"what-if cannot determine what changes: {shortened(str(why))}", "name it without `reference`"
        )
    elif kind == "unsupported":
        yield Changing(_unsupported(entry, identity), pointer)
    elif kind == "delete":
        yield Changing(Change(operation=Operation.DELETE, id=identity), pointer)
    elif not isinstance(entry.get("after"), dict):
        yield refuse(pointer, f"what-if does not report the result for `{shortened(identity)}`", _COMMAND)
    else:
        yield _build_put(entry, identity, Operation(_OPERATIONS[kind] or Operation.REPLACE), f"{pointer}/after")


def _has_effect(entry: JsonObject) -> bool:
    """Check whether something changes; fields in only one of `before` and `after` can be read-only and do not count."""
    kinds = [lowered(str(one.get("propertyChangeType"))) for one in _list(entry.get("delta")) if isinstance(one, dict)]
    return any(kind != "noeffect" for kind in kinds) or _differ(entry.get("before"), entry.get("after"))


def _differ(before: object, after: object) -> bool:
    """Check whether the common fields of two documents differ; text is compared without case, as in ARM."""
    if isinstance(before, dict) and isinstance(after, dict):
        there = {lowered(key): value for key, value in before.items()}
        return any(_differ(there[lowered(key)], value) for key, value in after.items() if lowered(key) in there)
    if isinstance(before, str) and isinstance(after, str):
        return lowered(before) != lowered(after) and not (_why_unknown(before) or _why_unknown(after))
    return not (before is None or after is None) and before != after


def _unsupported(entry: JsonObject, identity: str) -> Change:
    """Return the change of a resource for which what-if reports only that it is deployed."""
    why = entry.get("unsupportedReason")
    reason = (
        f"what-if does not support it ({shortened(why)})" if isinstance(why, str) else "what-if does not support it"
    )
    return build_unread(identity, reason)


def build_unread(identity: str, reason: str) -> Change:
    """Return the change that puts a resource of which only the id is known, and the reason for that."""
    return Change(
        operation=Operation.REPLACE,
        id=identity,
        resource={"id": identity, "type": _type_of(identity)},
        carried=Carried(pointers=("/id", "/type"), reason=reason),
    )


def _type_of(identity: str) -> str:
    placed = read_entry({"id": identity, "properties": {}}, "")
    return str(placed.resource["type"]) if isinstance(placed, Placed) else types_of(identity)[0]


def _build_put(entry: JsonObject, identity: str, operation: Operation, pointer: str) -> Changing | Problem:
    unreadable: dict[str, str] = {}
    stated = as_arm_reads({**entry["after"], "id": identity}, _type_of(identity)).part
    carrier = carrier_of(stated.get("type") or _type_of(identity), stated)
    templates = [lowered(f"/properties/{name}") for name in carrier.members] if carrier else []
    after = _remove_unknown(stated, "", unreadable, templates)
    placed = read_entry(after, pointer)
    if not isinstance(placed, Placed):
        return placed
    resource = placed.resource
    before = entry.get("before")
    for at, why in service_made(resource["type"]).items():
        if value_at(resource, at) is None and at not in unreadable:
            if (current := value_at(before, at)) is None:
                unreadable[at] = why
            else:
                resource = _with(resource, at, current)
    for at, old in _without_effect(entry.get("delta"), ""):
        if value_at(resource, at) is not None:
            resource = _with(resource, at, old)
            if old is None:
                unreadable[at] = "the service accepts no value for it, and what-if does not report the current one"
    resource = attached(resource, unreadable)
    notes = {**placed.unreadable, **unreadable}
    return Changing(Change(operation=operation, id=identity, resource=resource, unreadable=notes), pointer)


def _with(resource: JsonObject, pointer: str, value: object) -> JsonObject:
    after = filled(resource, keys_of(pointer), value)
    return after if isinstance(after, dict) else resource


def _remove_unknown(value: object, pointer: str, unreadable: dict[str, str], templates: Sequence[str]) -> object:
    """Return a value without parts that are known only after deployment; in a list they become null.

    Expressions in embedded templates, by their pointers in lower case, stay.
    """
    if lowered(pointer) in templates:
        return value
    if isinstance(value, str) and (why := _why_unknown(value)):
        unreadable[pointer] = why
        return None
    if isinstance(value, list):
        return [
            _remove_unknown(inner, f"{pointer}/{index}", unreadable, templates) for index, inner in enumerate(value)
        ]
    if isinstance(value, dict):
        made = {
            key: _remove_unknown(inner, f"{pointer}/{escaped(key)}", unreadable, templates)
            for key, inner in value.items()
        }
        return {key: inner for key, inner in made.items() if inner is not None or value[key] is None}
    return value


def _why_unknown(text: str) -> str:
    if _EXPRESSION.fullmatch(text):
        return f"it is known only after deployment: `{shortened(text)}`"
    return "what-if masks it" if _MASKED.fullmatch(text) else ""


def _without_effect(delta: object, base: str) -> Iterator[tuple[str, object]]:
    """Yield the pointers of values that the service ignores, with their values before."""
    for entry in _list(delta):
        if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
            continue
        pointer = base + "".join(f"/{escaped(part)}" for part in entry["path"].split("."))
        if lowered(str(entry.get("propertyChangeType"))) == "noeffect":
            yield pointer, entry.get("before")
        yield from _without_effect(entry.get("children"), pointer)


def _diagnostics(answer: JsonObject, base: str) -> Iterator[Changing | Problem]:
    for index, entry in enumerate(_list(answer.get("diagnostics"))):
        if not isinstance(entry, dict):
            continue
        message = shortened(str(entry.get("message") or entry.get("code")))
        level, code = lowered(str(entry.get("level"))), lowered(str(entry.get("code")))
        pointer = f"{base}/diagnostics/{index}"
        if level == "error" or _SHORT_CIRCUITED in code:
            yield refuse(pointer, f"what-if omitted something: {message}", "fix the cause, and run what-if again")
        elif level != "info":
            yield remark(pointer, f"what-if reported: {message}")


def _is_change(entry: object) -> bool:
    return isinstance(entry, dict) and "changeType" in entry


def _list(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()
