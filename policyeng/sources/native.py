"""The native snapshot format: ARM resources and the facts of the organization (`snapshotVersion`: 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Literal

from msgspec.structs import fields, replace

from policyeng.errors import suggest_nearest
from policyeng.facts.coverage import EVERYTHING, LISTED, SPELLED, covered_by, parse_entry, similar_type
from policyeng.facts.evidence import LONGEST, WHOLE_SNAPSHOT
from policyeng.facts.ids import segments
from policyeng.facts.letters import find_disguised_word, plain
from policyeng.models import (
    Approval,
    AwareDatetime,
    DeclaredWorkload,
    Evidence,
    JsonObject,
    Metric,
    Model,
    Principal,
    Problem,
    Quota,
    lowered,
    name_in_json,
)
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import kind_of, shortened
from policyeng.sources.arm_resource import read_entry, with_top_level_names
from policyeng.sources.parsed import (
    ALONE,
    Collection,
    Noun,
    ParsedDocument,
    Placed,
    Stated,
    Surroundings,
    format_value,
    limit_refusals,
    reading_of,
    refuse,
    remark,
)
from policyeng.sources.validation import read_fact

SUMMARY = "snapshots with `snapshotVersion` and `resources`"

_COLLECTIONS: Mapping[Collection, type[Noun]] = {
    "approvals": Approval,
    "workloads": DeclaredWorkload,
    "quotas": Quota,
    "metrics": Metric,
    "principals": Principal,
    "evidence": Evidence,
}


class _SnapshotHeader(Model, frozen=True, kw_only=True):
    snapshot_version: Literal[1]
    scope: str = ""
    taken_at: AwareDatetime | None = None
    incomplete: tuple[str, ...] = ()


_HEADER_KEYS = tuple(name_in_json(entry.name) for entry in fields(_SnapshotHeader))
_KEYS = (*_HEADER_KEYS, "covers", "resources", *_COLLECTIONS)
_ENTRY = "write `TYPE at ID`, such as `Microsoft.MachineLearningServices/workspaces/computes at /subscriptions/...`"


SHAPES: tuple[frozenset[str], ...] = (frozenset(map(lowered, _KEYS)),)


def known_keys() -> tuple[str, ...]:
    """Return the keys of a snapshot at the top level."""
    return _KEYS


def detect(document: object) -> bool:
    """Check whether the document states that it is a native snapshot."""
    return isinstance(document, dict) and "snapshotVersion" in document


def read(document: object, around: Surroundings = ALONE) -> ParsedDocument:  # noqa: ARG001  # the document is complete
    """Read a native snapshot; only the parts that are wrong are refused, each with its pointer."""
    if not isinstance(document, dict):
        message = f"not a native snapshot: {kind_of(document)} where an object should be"
        return ParsedDocument(problems=(refuse("", message, "add `snapshotVersion`: 1"),))
    refusals = list(limit_refusals(_unknown_keys(document)))
    version = document.get("snapshotVersion")
    if type(version) is not int or version != 1:
        message = f"`snapshotVersion` is {format_value(version)}; only version 1 is supported"
        return ParsedDocument(problems=(refuse("/snapshotVersion" if version else "", message, "set it to 1"),))
    header, faults = read_fact(_SnapshotHeader, {key: document[key] for key in _HEADER_KEYS if key in document}, "")
    stated = list(limit_refusals(_read_collections(document)))
    reading = reading_of(_read_resources(document))
    covers = list(limit_refusals(_covers(document, reading)))
    refusals += [*faults, *reading.refusals, *(entry for entry in (*covers, *stated) if isinstance(entry, Problem))]
    return replace(
        reading,
        stated=tuple(entry for entry in stated if isinstance(entry, Stated)),
        scope=header.scope if header else "",
        taken_at=header.taken_at if header else None,
        incomplete=header.incomplete if header else (),
        covers=tuple(dict.fromkeys(entry for entry in covers if isinstance(entry, str))),
        problems=(*refusals, *_find_misspelled(document)),
    )


def _covers(document: JsonObject, reading: ParsedDocument) -> Iterator[str | Problem]:
    """Yield what a snapshot covers: its `covers`, else all of `LISTED` if it has resources; and what these imply."""
    if "covers" in document:
        entries, refusals = _read_list(document, "covers")
        yield from refusals
        for index, entry in enumerate(entries):
            yield (
                entry if isinstance(entry, str) and parse_entry(entry) else _refuse_coverage(entry, f"/covers/{index}")
            )
        yield from covered_by((placed.resource for placed in reading.resources), is_list=False)
    elif "resources" in document:
        yield from EVERYTHING
        every = (placed.resource for placed in reading.resources)
        yield from covered_by((one for one in every if lowered(one["type"]) not in SPELLED), is_list=False)


def _refuse_coverage(entry: object, pointer: str) -> Problem:
    """Return why an entry of `covers` is not valid."""
    if not isinstance(entry, str):
        return refuse(pointer, f"an entry of `covers` is {kind_of(entry)}, not a string", _ENTRY)
    kind, found, scope = entry.partition(" at ")
    named = parse_entry(f"{kind} at /")
    if found and named and scope.startswith("/"):
        message, remedy = f"`{shortened(scope)}` is not the id of a scope or a resource", "write it as in ARM"
    elif found and named:
        message = f"the id `{shortened(scope)}` does not begin with a slash"
        remedy = "write `/` for everything, or the id of a scope or a resource"
    elif found:
        known = [one for one in LISTED if one.lower().endswith(f"/{kind.lower()}")]
        close = f"; did you mean `{known[0]}`" if known else suggest_nearest(kind, LISTED)
        message, remedy = f"`{shortened(kind)}` is not an ARM type{close}", "include its namespace"
    else:
        message, remedy = f"`{shortened(entry)}` does not state what is covered and where", _ENTRY
    return refuse(pointer, message, remedy)


def _find_misspelled(document: JsonObject) -> Iterator[Problem]:
    """Yield a remark for each type in `covers` that is probably misspelled."""
    seen = set[str]()
    for index, entry in enumerate(_read_list(document, "covers")[0]):
        covered = parse_entry(entry) if isinstance(entry, str) else None
        if covered and covered.kind not in seen and (close := similar_type(covered.kind)):
            yield remark(f"/covers/{index}", f"no policy looks up `{covered.kind}`; did you mean `{close}`")
        seen.add(covered.kind if covered else "")


def _unknown_keys(document: JsonObject) -> Iterator[Problem]:
    for key in document:
        if key not in _KEYS:
            message = f"unknown key `{shortened(key)}`{suggest_nearest(key, _KEYS)}"
            known = ", ".join(f"`{name}`" for name in _KEYS)
            yield refuse(f"/{escaped(key)}", message, f"the known keys are {known}")


def _read_list(document: JsonObject, key: str) -> tuple[list[object], tuple[Problem, ...]]:
    value = document.get(key, [])
    if isinstance(value, list):
        return value, ()
    return [], (refuse(f"/{key}", f"`{key}` is {kind_of(value)}, not a list", f"give `{key}` as a list"),)


def _read_resources(document: JsonObject) -> Iterator[Placed | Problem]:
    entries, refusals = _read_list(document, "resources")
    yield from refusals
    for index, entry in enumerate(entries):
        pointer = f"/resources/{index}"
        named = with_top_level_names(entry) if isinstance(entry, dict) else {}
        if named.get("id") and not named.get("type"):
            yield refuse(pointer, "a resource without `type`", "add its ARM `type`")
        else:
            yield read_entry(entry, pointer)


def _read_collections(document: JsonObject) -> Iterator[Stated | Problem]:
    for collection, model in _COLLECTIONS.items():
        entries, refusals = _read_list(document, collection)
        yield from refusals
        for index, entry in enumerate(entries):
            pointer = f"/{collection}/{index}"
            noun, faults = read_fact(model, entry, pointer)
            if isinstance(noun, Evidence):
                faults = tuple(_find_evidence_faults(noun, pointer))
            yield from faults if faults or noun is None else (Stated(collection, noun, pointer),)


def _find_evidence_faults(evidence: Evidence, pointer: str) -> Iterator[Problem]:
    texts = {"for": evidence.for_, "statement": evidence.statement, "givenBy": evidence.given_by}
    for key, text in texts.items():
        if not plain(text).strip():
            yield refuse(f"{pointer}/{key}", f"`{key}` is blank", f"give `{key}`")
    if word := find_disguised_word(evidence.given_by):
        message = f"`givenBy` has letters of another script that look like ASCII: `{shortened(ascii(word)[1:-1])}`"
        yield refuse(f"{pointer}/givenBy", message, "write it in one script")
    if evidence.scope != WHOLE_SNAPSHOT and segments(evidence.scope) is None:
        message = f"`scope` is not an ARM id: `{shortened(evidence.scope)}`"
        yield refuse(
            f"{pointer}/scope", message, "write the id of a scope or a resource, or `-` for the whole snapshot"
        )
    period = evidence.expires_at - evidence.given_at
    if period <= timedelta(0):
        yield refuse(f"{pointer}/expiresAt", "`expiresAt` is not after `givenAt`", "give a later `expiresAt`")
    elif period > LONGEST:
        message = f"`expiresAt` is more than {LONGEST.days} days after `givenAt`"
        yield refuse(f"{pointer}/expiresAt", message, f"let it expire within {LONGEST.days} days and renew it")
