"""Exemption files in YAML or JSON: a list `exemptions`, each entry with an owner, an approver and an expiry time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from policyeng.errors import InputError, suggest_nearest
from policyeng.facts.ids import types_of
from policyeng.facts.letters import find_disguised_word, plain, same_person
from policyeng.models import Exemption, Problem
from policyeng.parsing.json_places import lines_of
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, kind_of, parse_json, shortened
from policyeng.sources.arm_resource import is_placeholder
from policyeng.sources.discovery import Named, content_of, display
from policyeng.sources.parsed import problem_of, raise_errors, refuse, seen
from policyeng.sources.validation import read_fact

DEFAULT_MAX_DAYS = 365

_SCOPE_REMEDY = "give the ARM id of a resource, resource group, subscription or management group"
_PATTERN_SIGNS = frozenset("*?[]{}()|,^$\\ \t\n")


class ExemptionsRead(NamedTuple):
    """The valid exemptions, and an error for each fault; an entry with a fault exempts nothing."""

    exemptions: tuple[Exemption, ...]
    problems: tuple[Problem, ...]


def load_exemptions(path: str | Path, *, max_days: int = DEFAULT_MAX_DAYS) -> tuple[Exemption, ...]:
    """Read an exemption file completely or fail.

    Raises:
        InputError: the file has a fault; with the file, line, entry and remedy of the first one.
    """
    exemptions, problems = read_exemptions(path, max_days=max_days)
    raise_errors(problems)
    return exemptions


def read_exemptions(
    path: str | Path, *, max_days: int = DEFAULT_MAX_DAYS, max_bytes: int = DEFAULT_MAX_BYTES
) -> ExemptionsRead:
    """Read an exemption file, YAML unless its name ends in `.json`; a fault in one entry does not affect the others.

    Args:
        path: the file.
        max_days: the longest time from `createdAt` to `expiresAt`, in days.
        max_bytes: the largest file that is read.
    """
    file = display(Path(path))
    try:
        content = content_of(Named(file, Path(path)), None, max_bytes)
        if file.lower().endswith(".json"):
            document, places = parse_json(content, file, max_bytes=max_bytes), None
        else:
            from policyeng.parsing.yaml_text import parse_yaml  # YAML is loaded only where there is some

            document, places = parse_yaml(content, file, max_bytes=max_bytes)
    except InputError as error:
        return ExemptionsRead((), (problem_of(error),))
    exemptions, faults = _read_entries(document, timedelta(days=max_days))
    pointers = [fault.place for fault in faults]
    lines = lines_of(content, pointers) if places is None else [places.get(entry, (1, 1))[0] for entry in pointers]
    problems = (
        fault.located(f"{file}:{line}", _entry_name(fault.place, document))
        for fault, line in zip(faults, lines, strict=True)
    )
    return ExemptionsRead(exemptions, tuple(problems))


def exemptions_of(document: object, file: str, *, max_days: int = DEFAULT_MAX_DAYS) -> ExemptionsRead:
    """Return the exemptions of an object with the list `exemptions`, as in a file.

    Args:
        document: the object.
        file: its name in messages, to which the JSON Pointer of a fault is added.
        max_days: the longest time from `createdAt` to `expiresAt`, in days.
    """
    exemptions, faults = _read_entries(document, timedelta(days=max_days))
    problems = (fault.located(f"{file}:{fault.place}", _entry_name(fault.place, document)) for fault in faults)
    return ExemptionsRead(exemptions, tuple(problems))


def _read_entries(document: object, longest: timedelta) -> tuple[tuple[Exemption, ...], list[Problem]]:
    listed = document.get("exemptions") if isinstance(document, dict) else None
    if not isinstance(document, dict) or "exemptions" not in document:
        message = f"no `exemptions` in the file: {seen(document)}"
        return (), [refuse("", message, "start with `exemptions:` and list them below it")]
    faults = [
        refuse(f"/{escaped(key)}", f"unknown key `{shortened(key)}`{suggest_nearest(key, ['exemptions'])}", "remove it")
        for key in document
        if key != "exemptions"
    ]
    if not isinstance(listed, list):
        message = f"`exemptions` is {kind_of(listed)}, not a list"
        return (), [*faults, refuse("/exemptions", message, "list the exemptions, each with a dash")]
    accepted: dict[str, Exemption] = {}
    for index, entry in enumerate(listed):
        pointer = f"/exemptions/{index}"
        exemption, own_faults = read_fact(Exemption, _with_times(entry), pointer)
        own_faults = own_faults if exemption is None else tuple(_find_faults(exemption, pointer, longest, accepted))
        faults += own_faults
        if exemption is not None and not own_faults:
            accepted[exemption.id] = exemption
    return tuple(accepted.values()), faults


def _with_times(entry: object) -> object:
    """Return an entry whose dates are times: `createdAt` is the start of its day, and `expiresAt` the end, in UTC."""
    if not isinstance(entry, dict):
        return entry
    times = {"createdAt": timedelta(0), "expiresAt": timedelta(days=1)}
    return {**entry, **{key: _time_of(entry[key], after) for key, after in times.items() if key in entry}}


def _time_of(given: object, after: timedelta) -> object:
    if not isinstance(given, str) or len(given) != len("2026-12-31"):
        return given
    try:
        return (datetime.fromisoformat(given).replace(tzinfo=UTC) + after).isoformat()
    except (ValueError, OverflowError):  # the reader of times refuses it
        return given


def _find_faults(exemption: Exemption, pointer: str, longest: timedelta, ids: Collection[str]) -> Iterator[Problem]:
    if exemption.id in ids:
        yield refuse(f"{pointer}/id", "an earlier exemption has the same `id`", "give each exemption its own `id`")
    for key, text in (("reason", exemption.reason), ("owner", exemption.owner), ("approvedBy", exemption.approved_by)):
        if not plain(text).strip():
            yield refuse(f"{pointer}/{key}", f"`{key}` is blank", f"give the {key}")
    people = (("owner", exemption.owner), ("approvedBy", exemption.approved_by))
    hidden = [(key, word) for key, text in people if (word := find_disguised_word(text))]
    for key, word in hidden:
        message = f"`{key}` has letters of another script that look like ASCII: `{shortened(ascii(word)[1:-1])}`"
        yield refuse(f"{pointer}/{key}", message, "write it in one script")
    if not hidden and same_person(exemption.owner, exemption.approved_by):
        message = f"`owner` and `approvedBy` are both `{shortened(plain(exemption.owner))}`"
        yield refuse(f"{pointer}/approvedBy", message, "let someone other than the owner approve it")
    if _PATTERN_SIGNS & set(exemption.policy):
        message = f"`policy` is not the exact id of one policy: `{shortened(exemption.policy)}`"
        yield refuse(f"{pointer}/policy", message, "write one exemption for each policy id")
    if not types_of(exemption.scope) or is_placeholder(exemption.scope) or "*" in exemption.scope:
        yield refuse(f"{pointer}/scope", f"`scope` is not an ARM id: `{shortened(exemption.scope)}`", _SCOPE_REMEDY)
    yield from _find_period_faults(exemption, pointer, longest)


def _find_period_faults(exemption: Exemption, pointer: str, longest: timedelta) -> Iterator[Problem]:
    period = exemption.expires_at - exemption.created_at
    if period <= timedelta(0):
        message = "`expiresAt` is not after `createdAt`"
        yield refuse(f"{pointer}/expiresAt", message, "give a later `expiresAt`")
    elif period > longest:
        message = f"`expiresAt` is more than {longest.days} days after `createdAt`"
        remedy = f"let it expire within {longest.days} days and renew it, or raise `max_exemption_days`"
        yield refuse(f"{pointer}/expiresAt", message, remedy)


def _entry_name(pointer: str, document: object) -> str:
    """Return the name of a pointer's entry in messages: its id, or its position in the list."""
    parts: Sequence[str] = pointer.split("/")
    listed = document.get("exemptions") if isinstance(document, dict) else None
    if len(parts) < 3 or not isinstance(listed, list):
        return ""
    entry = listed[int(parts[2])]
    identity = entry.get("id") if isinstance(entry, dict) else None
    return f"exemption `{shortened(identity)}`" if isinstance(identity, str) else f"exemption {int(parts[2]) + 1}"
