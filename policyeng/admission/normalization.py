"""Normalize changes as ARM reads them: ids are URLs, and names of members have no case."""

from __future__ import annotations

import re

from policyeng.errors import InputError
from policyeng.facts.arm_casing import REMOVE_ONE, Spellings, as_arm_reads, describe_duplicate
from policyeng.facts.ids import types_of
from policyeng.models import Change, Operation, lowered
from policyeng.parsing.json_text import shortened

_PUTS = (Operation.CREATE, Operation.REPLACE)
#: Parts that change the meaning of an id in a URL or when white space is removed: the end of the path, dot segments,
#: escapes of unreserved characters (RFC 3986, 2.3) or of a slash, and spaces around a name.
_MISLEADING = re.compile(
    r"[?#\\]|(?:^|/)\.\.?(?:/|$)|%(?:2[DEFdef]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[CFcf]|7[Ee])|(?:^|/)\s|\s(?:/|$)"
)
_TYPE = re.compile(r"[a-z0-9._-]+(?:/[a-z0-9._-]+)+")


def as_arm_reads_it(change: Change, place: str, spellings: Spellings) -> Change:
    """Return a change with member names as ARM spells them, and without a slash at the end of its id.

    Args:
        change: a change with a well-formed resource or patch.
        place: the place of the change, for messages.
        spellings: as for `changes_of`.

    Raises:
        InputError: an object has a duplicate member.
    """
    is_put = change.operation in _PUTS
    if change.id.endswith("/"):
        change = change.model_copy(update={"id": change.id.removesuffix("/")})
    written = change.resource if is_put else change.patch
    if is_put and written is not None and written["id"].endswith("/"):
        written = {**written, "id": written["id"].removesuffix("/")}
        change = change.model_copy(update={"resource": written})
    if not isinstance(written, dict):
        return change
    arm_type = lowered(written["type"]) if is_put else next(iter(types_of(change.id)), "")
    spelled = as_arm_reads(written, arm_type, spellings)
    if spelled.twice and not as_arm_reads(written, arm_type).twice:  # otherwise reported when the change is made
        raise InputError(describe_duplicate(spelled.twice), place=(place, spelled.twice[1]), remedy=REMOVE_ONE)
    if spelled.part is written:
        return change
    origin = change.origin
    if origin is not None:
        below = {pointer: origin.pointer + there for pointer, there in spelled.fields.items()}
        origin = origin.model_copy(update={"fields": {**below, **origin.fields}})
    return change.model_copy(update={"resource" if is_put else "patch": spelled.part, "origin": origin})


def why_not(change: Change) -> str:
    """Return why it is unclear which resource a change affects; empty if it is clear.

    If an id has another meaning as a URL, or if the type does not match the id, the wrong policies or none would be
    evaluated.
    """
    types = types_of(change.id.removesuffix("/"))
    if _MISLEADING.search(change.id):
        return "the id has another meaning as a URL; write it as ARM returns it"
    if types and not _TYPE.fullmatch(types[0]):
        return "the id does not contain a resource type; write it as ARM returns it"
    written = change.patch if change.resource is None else change.resource
    if isinstance(written, dict) and (twice := as_arm_reads(written, types[0] if types else "").twice):
        return f"{twice[1]}: {describe_duplicate(twice)}; {REMOVE_ONE}"
    if change.resource is None:
        return ""
    if not types:
        return "the id is not the full ARM id of a resource; write it as ARM returns it"
    if lowered(change.resource["type"]) not in types:
        stated = shortened(change.resource["type"])
        return f"the id is of type `{shortened(types[0])}`, but `type` is `{stated}`; correct one of them"
    return ""


def aligned(patch: object, before: object) -> object:
    """Return a patch with the existing spellings of member names, because ARM changes the existing members."""
    if not (isinstance(patch, dict) and isinstance(before, dict)):
        return patch
    there = {lowered(name): name for name in before}
    names = {name: name if name in before else there.get(lowered(name), name) for name in patch}
    return {names[name]: aligned(value, before.get(names[name])) for name, value in patch.items()}
