"""What a change is of, and what it says, as ARM reads both: ids as URLs, names of members without case."""

from __future__ import annotations

import re

from policyeng.errors import InputError
from policyeng.facts.arm_casing import REMOVE_ONE, Spellings, as_arm_reads, twice_said
from policyeng.facts.ids import types_of
from policyeng.models import Change, Operation, lowered
from policyeng.parsing.json_text import shortened

_PUTS = (Operation.CREATE, Operation.REPLACE)
#: What makes another id of one once it is a URL or is cleaned of white space: where the path ends, steps, an escape of
#: what nobody needs to escape (RFC 3986, 2.3) or of a slash, and spaces around a name.
_MISLEADING = re.compile(
    r"[?#\\]|(?:^|/)\.\.?(?:/|$)|%(?:2[DEFdef]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[CFcf]|7[Ee])|(?:^|/)\s|\s(?:/|$)"
)
_TYPE = re.compile(r"[a-z0-9._-]+(?:/[a-z0-9._-]+)+")


def as_arm_reads_it(change: Change, place: str, spellings: Spellings) -> Change:
    """A change with the names of members as ARM has them, and no slash at the end of its id.

    Args:
        change: one of which the resource or the patch is known to be one.
        place: of the change, for messages.
        spellings: as for `changes_of`.

    Raises:
        InputError: a member stands twice.
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
    if spelled.twice and not as_arm_reads(written, arm_type).twice:  # else it is said where the change is made
        raise InputError(twice_said(spelled.twice), place=(place, spelled.twice[1]), remedy=REMOVE_ONE)
    if spelled.part is written:
        return change
    origin = change.origin
    if origin is not None:
        below = {pointer: origin.pointer + there for pointer, there in spelled.fields.items()}
        origin = origin.model_copy(update={"fields": {**below, **origin.fields}})
    return change.model_copy(update={"resource" if is_put else "patch": spelled.part, "origin": origin})


def why_not(change: Change) -> str:
    """Why it cannot be told what is changed; empty where it can.

    An id that is another one once a URL is made of it, or a type that is not that of the id, would have a resource
    judged as what it is not, or by nothing.
    """
    types = types_of(change.id.removesuffix("/"))
    if _MISLEADING.search(change.id):
        return "the id is another one as a URL; write it as ARM returns it"
    if types and not _TYPE.fullmatch(types[0]):
        return "the id is that of no type of resources; write it as ARM returns it"
    written = change.patch if change.resource is None else change.resource
    if isinstance(written, dict) and (twice := as_arm_reads(written, types[0] if types else "").twice):
        return f"{twice[1]}: {twice_said(twice)}; {REMOVE_ONE}"
    if change.resource is None:
        return ""
    if not types:
        return "the id is not the full ARM id of a resource; write it as ARM returns it"
    if lowered(change.resource["type"]) not in types:
        said = f"the id is that of a `{shortened(types[0])}`, and `type` says `{shortened(change.resource['type'])}`"
        return f"{said}; correct the one that is wrong"
    return ""


def aligned(patch: object, before: object) -> object:
    """A patch with the names that are there already, where they are others but for case: ARM changes what is there."""
    if not (isinstance(patch, dict) and isinstance(before, dict)):
        return patch
    there = {lowered(name): name for name in before}
    names = {name: name if name in before else there.get(lowered(name), name) for name in patch}
    return {names[name]: aligned(value, before.get(names[name])) for name, value in patch.items()}
