"""Random observations of a snapshot: quotas, metrics and principals from cases, moved and changed.

A case states related observations as its policy needs them. So they are drawn together, moved to the resources of
the snapshot, and then changed one by one. The models accept every result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import TypeAlias

from policyeng.bundle.cases import DEFAULT_AS_OF
from policyeng.facts import Facts
from policyeng.facts.computes import own_size
from policyeng.facts.words import get_inside
from policyeng.models import JsonObject
from policyeng.verify.generators.json_mutations import Json, copied, draw_boolean

#: The required members, by kind.
KINDS = {
    "quotas": ("scope", "region", "family", "limitVCpus"),
    "metrics": ("resourceId", "name", "unit"),
    "principals": ("id",),
}
#: The entries of one kind in one case.
Entries: TypeAlias = Sequence[JsonObject]
_TIMES = ("from", "to")
_SECONDS = (0.0, 1.0, -1.0, 0.000001, -0.000001)
_DAYS = (0, 0, 0, 1, -1, 7, -7, 14, -14, 30, -30)


@dataclass(frozen=True, slots=True)
class Sight:
    """The requirements for observations.

    Attributes:
        known: the entries of each case, by kind.
        subjects: the ids of the resources that the observations are about.
        numbers: the numbers that the policies compare with.
        as_of: the evaluation clock; the entries of cases refer to the clock of cases.
    """

    known: dict[str, list[Entries]]
    subjects: Sequence[str]
    numbers: Sequence[float]
    as_of: datetime


def draw_observations(random: Random, document: JsonObject, sight: Sight, facts: Facts) -> JsonObject:
    """Return quotas, metrics and principals for a document, from up to four cases, or in addition to its own."""
    made: JsonObject = {}
    for kind in KINDS:
        sets = [entries for entries in sight.known.get(kind, ()) if entries]
        drawn: list[JsonObject] = [entry for entry in document.get(kind, ()) if draw_boolean(random, 0.7)]
        for _ in range(random.randrange(5) if sets else 0):
            entries = [{**entry} for entry in random.choice(sets)]
            _move(random, entries, _list_references(kind, document, sight, facts))
            drawn += [_change_entry(random, kind, entry, sight) for entry in entries if draw_boolean(random, 0.9)]
        made[kind] = drawn
    return made


def _list_references(kind: str, document: JsonObject, sight: Sight, facts: Facts) -> dict[str, Sequence[str]]:
    """Return the values for members that refer to resources of the snapshot, by member."""
    resources: list[JsonObject] = document["resources"]
    if kind == "metrics":
        return {"resourceId": sight.subjects or [str(one["id"]) for one in resources]}
    if kind == "principals":
        holders = [get_inside(one, "properties", "principalId") for one in resources]
        return {"id": [holder for holder in holders if isinstance(holder, str) and holder]}
    sizes = [own.size for one in resources if (own := own_size(one)) is not None and isinstance(own.size, str)]
    return {"family": [known.family for size in sizes if (known := facts.size(size)) is not None]}


def _move(random: Random, entries: list[JsonObject], homes: dict[str, Sequence[str]]) -> None:
    """Move entries to resources of the snapshot; those about one resource stay together."""
    for member, values in homes.items():
        news = {entry[member]: random.choice(values) for entry in entries} if values else {}
        if draw_boolean(random, 0.2):
            news = {}
        for entry in entries:
            entry[member] = news.get(entry[member], entry[member])


def _change_entry(random: Random, kind: str, entry: JsonObject, sight: Sight) -> JsonObject:
    """Return an entry at the requested clock, with up to two of its members changed."""
    moved = sight.as_of - DEFAULT_AS_OF
    for name in _TIMES:
        if isinstance(entry.get(name), str):
            entry[name] = _shift(entry[name], moved)
    while draw_boolean(random, 0.4):
        name = random.choice(sorted(entry))
        if name not in KINDS[kind] and draw_boolean(random, 0.2):
            del entry[name]
            continue
        entry[name] = _draw_near(random, name, entry[name], sight)
    return entry


def _draw_near(random: Random, name: str, value: Json, sight: Sight) -> Json:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        near = random.choice((value + 1, max(0, value - 1), 0, value, *sight.numbers))
        return max(0, int(near)) if name == "limitVCpus" else near
    if not isinstance(value, str):
        return copied(value)
    if name in _TIMES:
        return _shift(value, timedelta(days=random.choice(_DAYS), seconds=random.choice(_SECONDS)))
    return random.choice((value, value.upper(), value.lower(), value.title(), f"{value} ", f"{value}2"))


def _shift(text: str, by: timedelta) -> str:
    """Return a moment later or earlier, unchanged at the end of the calendar."""
    try:
        return (datetime.fromisoformat(text) + by).isoformat()
    except OverflowError:
        return text
