"""What is observed of an estate, at random: quotas, metrics and principals as cases state them, moved and changed.

A case states them together, as its policy needs them: so they are drawn together, moved to what the estate holds, and
then changed one by one. Whatever comes out is what the models take.
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
from policyeng.facts.words import inside
from policyeng.models import JsonObject
from policyeng.verify.generators.json_mutations import Json, copied, happens

#: Per kind, what the model cannot do without.
KINDS = {
    "quotas": ("scope", "region", "family", "limitVCpus"),
    "metrics": ("resourceId", "name", "unit"),
    "principals": ("id",),
}
#: What one case states of one kind.
Entries: TypeAlias = Sequence[JsonObject]
_TIMES = ("from", "to")
_SECONDS = (0.0, 1.0, -1.0, 0.000001, -0.000001)
_DAYS = (0, 0, 0, 1, -1, 7, -7, 14, -14, 30, -30)


@dataclass(frozen=True, slots=True)
class Sight:
    """What observations are wanted.

    Attributes:
        known: by kind, what each case states.
        subjects: ids of the resources that they shall be of.
        numbers: numbers that the policies compare with.
        as_of: the clock that they are judged with; what cases state is at the clock of cases.
    """

    known: dict[str, list[Entries]]
    subjects: Sequence[str]
    numbers: Sequence[float]
    as_of: datetime


def observed(random: Random, document: JsonObject, sight: Sight, facts: Facts) -> JsonObject:
    """Quotas, metrics and principals for a document, those of up to four cases; what it has may stay beside them."""
    made: JsonObject = {}
    for kind in KINDS:
        sets = [entries for entries in sight.known.get(kind, ()) if entries]
        drawn: list[JsonObject] = [entry for entry in document.get(kind, ()) if happens(random, 0.7)]
        for _ in range(random.randrange(5) if sets else 0):
            entries = [{**entry} for entry in random.choice(sets)]
            _move(random, entries, _homes(kind, document, sight, facts))
            drawn += [_changed(random, kind, entry, sight) for entry in entries if happens(random, 0.9)]
        made[kind] = drawn
    return made


def _homes(kind: str, document: JsonObject, sight: Sight, facts: Facts) -> dict[str, Sequence[str]]:
    """By member, what of the estate an entry can be about."""
    resources: list[JsonObject] = document["resources"]
    if kind == "metrics":
        return {"resourceId": sight.subjects or [str(one["id"]) for one in resources]}
    if kind == "principals":
        holders = [inside(one, "properties", "principalId") for one in resources]
        return {"id": [holder for holder in holders if isinstance(holder, str) and holder]}
    sizes = [own.size for one in resources if (own := own_size(one)) is not None and isinstance(own.size, str)]
    return {"family": [known.family for size in sizes if (known := facts.size(size)) is not None]}


def _move(random: Random, entries: list[JsonObject], homes: dict[str, Sequence[str]]) -> None:
    """Let entries be about what the estate holds; those that are about one thing stay together."""
    for member, values in homes.items():
        news = {entry[member]: random.choice(values) for entry in entries} if values else {}
        if happens(random, 0.2):
            news = {}
        for entry in entries:
            entry[member] = news.get(entry[member], entry[member])


def _changed(random: Random, kind: str, entry: JsonObject, sight: Sight) -> JsonObject:
    """An entry at the clock that is asked for, with up to two of its members changed."""
    moved = sight.as_of - DEFAULT_AS_OF
    for name in _TIMES:
        if isinstance(entry.get(name), str):
            entry[name] = _shifted(entry[name], moved)
    while happens(random, 0.4):
        name = random.choice(sorted(entry))
        if name not in KINDS[kind] and happens(random, 0.2):
            del entry[name]
            continue
        entry[name] = _near(random, name, entry[name], sight)
    return entry


def _near(random: Random, name: str, value: Json, sight: Sight) -> Json:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        near = random.choice((value + 1, max(0, value - 1), 0, value, *sight.numbers))
        return max(0, int(near)) if name == "limitVCpus" else near
    if not isinstance(value, str):
        return copied(value)
    if name in _TIMES:
        return _shifted(value, timedelta(days=random.choice(_DAYS), seconds=random.choice(_SECONDS)))
    return random.choice((value, value.upper(), value.lower(), value.title(), f"{value} ", f"{value}2"))


def _shifted(text: str, by: timedelta) -> str:
    """A moment later or earlier; as it is where the calendar ends."""
    try:
        return (datetime.fromisoformat(text) + by).isoformat()
    except OverflowError:
        return text
