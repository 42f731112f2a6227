"""What `policyeng schema resource TYPE` prints: the members of a resource type, for people."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from textwrap import wrap

from policyeng.errors import UsageError
from policyeng.models import lowered
from policyeng.schema import ObjectMember, ResourceType, ValueType, find_type, list_types

_WIDTH = 80
_SCALARS = {"string": "text", "boolean": "true or false", "integer": "whole number", "any": "anything"}


def describe_type(arm_type: str) -> str:
    """Return the members of a type, an object at its first place only.

    Raises:
        UsageError: the schema does not have the type.
    """
    known = find_type(arm_type)
    if known is None:
        names = {lowered(name): name for name in list_types()}
        near = get_close_matches(lowered(arm_type), names, n=4, cutoff=0.4)
        near = near or sorted(name for name in names if name.endswith(lowered(arm_type).rpartition("/")[2]))[:4]
        remedy = f"choose one such as {', '.join(names[name] for name in near)}" if near else "see docs/schema.md"
        raise UsageError(f"unknown resource type `{arm_type}`", remedy=remedy)
    return "\n".join(_lines(known))


def _lines(known: ResourceType) -> Iterator[str]:
    yield known.name
    yield f"API version {known.version}"
    yield ""
    yield from _members(known.body, "", set())


def _members(kind: ValueType, indent: str, seen: set[ValueType]) -> Iterator[str]:
    """Yield the lines of the members that all kinds have, and of those that a kind adds."""
    kinds = dict(sorted(kind.kinds.items()))
    common = {key for key in kind.types if all(key in of_kind.types for of_kind in kinds.values())}
    common -= {key for key in common if len({of_kind.types[key] for of_kind in kinds.values()}) > 1}
    for key in sorted(common):
        yield from _member(key, kind.members[key], indent, seen)
    for word, of_kind in kinds.items():
        spelled = kind.types[kind.discriminator].words.get(word, word)
        yield f"{indent}where {kind.discriminator} is {spelled}:"
        for key in sorted(of_kind.members.keys() - common):
            yield from _member(key, of_kind.members[key], f"{indent}  ", seen)


def _member(key: str, member: ObjectMember, indent: str, seen: set[ValueType]) -> Iterator[str]:
    words = [word for word in ("required", "read_only", "create_only", "write_only") if getattr(member, word)]
    notes = [word.replace("_", "-") for word in words]
    if member.versions:
        notes.append(f"only in {member.versions[0]}" + (" and others" if member.versions[1:] else ""))
    inner, described = member.type, ""
    while inner.entries or inner.values:
        if inner.is_any or inner.objects:
            break
        described += "list of " if inner.entries else "map of "
        inner = inner.entries or inner.values or inner
    is_new = bool(inner.types) and inner not in seen
    described += _describe(inner) + ("" if is_new or not inner.types else " (see above)")
    text = f"{key}: {described}" + (f" [{', '.join(notes)}]" if notes else "")
    yield from wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}    ", break_on_hyphens=False)
    if is_new:
        seen.add(inner)
        yield from _members(inner, f"{indent}  ", seen)


def _describe(kind: ValueType) -> str:
    if kind.words:
        return " | ".join(sorted(kind.words.values()))
    if kind.objects:
        return kind.objects[0]
    return " or ".join(_SCALARS.get(name, name) for name in sorted(kind.scalars)) or "anything"
