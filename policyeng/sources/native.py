"""The native snapshot: ARM resources beside the organisation's own facts (`snapshotVersion`: 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from pydantic import AwareDatetime

from policyeng.errors import nearest
from policyeng.facts.coverage import EVERYTHING, covered_by
from policyeng.models import Approval, DeclaredWorkload, JsonObject, Metric, Model, Principal, Quota
from policyeng.sources.arm_entry import read_entry, with_top_level_names
from policyeng.sources.reading import (
    ALONE,
    Collection,
    Noun,
    Placed,
    Reading,
    Refusal,
    Stated,
    Surroundings,
    first_refusals,
    kind_of,
    reading_of,
    spelled,
)
from policyeng.sources.validation import validated
from policyeng.strict.json_pointer import escaped
from policyeng.strict.json_text import shortened

SUMMARY = "snapshots with `snapshotVersion` and `resources`"

_COLLECTIONS: Mapping[Collection, type[Noun]] = {
    "approvals": Approval,
    "workloads": DeclaredWorkload,
    "quotas": Quota,
    "metrics": Metric,
    "principals": Principal,
}


class _Header(Model):
    snapshot_version: Literal[1]
    scope: str = ""
    taken_at: AwareDatetime | None = None
    incomplete: tuple[str, ...] = ()
    covers: tuple[str, ...] | None = None


_HEADER_KEYS = tuple(entry.alias or name for name, entry in _Header.model_fields.items())
_KEYS = (*_HEADER_KEYS, "resources", *_COLLECTIONS)


def detect(document: object) -> bool:
    """Whether the document says that it is a native snapshot."""
    return isinstance(document, dict) and "snapshotVersion" in document


def read(document: object, around: Surroundings = ALONE) -> Reading:  # noqa: ARG001  # it says everything itself
    """Read a native snapshot; a part that is wrong is refused alone, with its pointer."""
    if not isinstance(document, dict):
        message = f"not a native snapshot: {kind_of(document)} where an object should be"
        return Reading(refusals=(Refusal("", message, "begin with `snapshotVersion`: 1"),))
    refusals = list(first_refusals(_unknown_keys(document)))
    version = document.get("snapshotVersion")
    if type(version) is not int or version != 1:
        message = f"`snapshotVersion` is {spelled(version)}; version 1 is the one that is read"
        return Reading(refusals=(Refusal("/snapshotVersion" if version else "", message, "write 1"),))
    header, faults = _header({key: document[key] for key in _HEADER_KEYS if key in document})
    stated = list(first_refusals(_stated(document)))
    reading = reading_of(_resources(document))
    refusals += [*faults, *reading.refusals, *(entry for entry in stated if isinstance(entry, Refusal))]
    return replace(
        reading,
        stated=tuple(entry for entry in stated if isinstance(entry, Stated)),
        scope=header.scope if header else "",
        taken_at=header.taken_at if header else None,
        incomplete=header.incomplete if header else (),
        covers=_covers(header, reading) if "resources" in document else (),
        refusals=tuple(refusals),
    )


def _covers(header: _Header | None, reading: Reading) -> tuple[str, ...]:
    """What a snapshot with resources covers: all that policies look up, unless it states something else."""
    if header is None or header.covers is None:
        return EVERYTHING
    shown = covered_by((placed.resource for placed in reading.resources), is_list=False)
    return tuple(dict.fromkeys((*header.covers, *shown)))


def _header(stated: JsonObject) -> tuple[_Header | None, tuple[Refusal, ...]]:
    """The header; one that states nothing but the version needs no validator, which takes longer than the reading."""
    return validated(_Header, stated, "") if len(stated) > 1 else (_Header.model_construct(snapshot_version=1), ())


def _unknown_keys(document: JsonObject) -> Iterator[Refusal]:
    for key in document:
        if key not in _KEYS:
            message = f"unknown key `{shortened(key)}`{nearest(key, _KEYS)}"
            known = ", ".join(f"`{name}`" for name in _KEYS)
            yield Refusal(f"/{escaped(key)}", message, f"known are {known}")


def _listed(document: JsonObject, key: str) -> tuple[list[object], tuple[Refusal, ...]]:
    value = document.get(key, [])
    if isinstance(value, list):
        return value, ()
    return [], (Refusal(f"/{key}", f"`{key}` is {kind_of(value)}, not a list", f"give `{key}` as a list"),)


def _resources(document: JsonObject) -> Iterator[Placed | Refusal]:
    entries, refusals = _listed(document, "resources")
    yield from refusals
    for index, entry in enumerate(entries):
        pointer = f"/resources/{index}"
        named = with_top_level_names(entry) if isinstance(entry, dict) else {}
        if named.get("id") and not named.get("type"):
            yield Refusal(pointer, "a resource without `type`", "give its ARM `type`")
        else:
            yield read_entry(entry, pointer)


def _stated(document: JsonObject) -> Iterator[Stated | Refusal]:
    for collection, model in _COLLECTIONS.items():
        entries, refusals = _listed(document, collection)
        yield from refusals
        for index, entry in enumerate(entries):
            pointer = f"/{collection}/{index}"
            noun, faults = validated(model, entry, pointer)
            yield from faults if noun is None else (Stated(collection, noun, pointer),)
