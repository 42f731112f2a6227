"""Candidate values for a place: real ones, the most likely first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from policyeng.evaluation.pointers import value_at
from policyeng.facts import Facts
from policyeng.facts.catalogue import VmSize
from policyeng.facts.siblings import can_replace
from policyeng.models import Denial, JsonObject, lowered
from policyeng.parsing.json_pointer import value_at as found_at

Plain = str | int | float | bool

#: A word of a sentence that can be a value: it has a capital, a digit, a hyphen or an underscore.
_WORD = re.compile(r"(?<![a-z])(?=[a-z]*[A-Z0-9_-])[A-Za-z][\w-]*\w")
#: Ids of people and things, and timestamps, which are not settings.
_NAMING = re.compile(r"(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|\d{4}-\d\d-\d\d")
#: Longer texts are descriptions.
_LONGEST = 64


def expected_values(denial: Denial, known: Iterable[object]) -> Iterator[Plain]:
    """Yield the values that a denial expects: the entries of a list, and the known words of a sentence."""
    expected = denial.expected
    many = expected.values() if isinstance(expected, dict) else expected if isinstance(expected, list) else [expected]
    words = {lowered(word) for word in known if isinstance(word, str)}
    for value in many:
        if isinstance(value, str):
            alone = not any(letter.isspace() for letter in value)
            yield from [value] if alone else [word for word in _WORD.findall(value) if lowered(word) in words]
        elif isinstance(value, bool | int | float):
            yield value


def list_values(resources: Iterable[JsonObject], kind: str, pointer: str) -> Iterator[Plain]:
    """Yield the values at a place in the resources of a type."""
    for resource in resources:
        if lowered(str(resource.get("type"))) == lowered(kind):
            value = value_at(resource, pointer)
            if isinstance(value, str | bool | int | float):
                yield value


def replacements(
    size: VmSize, values: Iterable[Plain], named: Iterable[VmSize], facts: Facts, as_of: datetime
) -> list[Plain]:
    """Return VM sizes that can replace one: those of other resources, then named ones that the service offers.

    Sizes of the same series go first, then those with about as many vCPUs.
    """
    known = [facts.size(value) for value in values if isinstance(value, str)]
    offered = [other for other in named if facts.series(other.series) or facts.offered_series(other.series)]
    groups = ([other for other in known if other is not None], offered)
    ordered = [
        other
        for group in groups
        for other in sorted(group, key=lambda one: (one.series != size.series, abs(one.vcpus - size.vcpus)))
    ]
    return [other.name for other in ordered if can_replace(facts, size, other, as_of)]


def numbers_near(denial: Denial, current: object, known: Iterable[object]) -> Iterator[Plain]:
    """Yield the numbers in a denial, the thresholds of its policy, and their neighbors."""
    if isinstance(current, bool) or not isinstance(current, int | float):
        return
    stated = [*_numbers(denial.expected), *_numbers(denial.actual), *_numbers(list(known))]
    for step in (0, -1, 1):
        yield from (number + step for number in stated if number + step >= 0)


def _numbers(value: object) -> list[int | float]:
    if isinstance(value, dict):
        return [number for inner in value.values() for number in _numbers(inner)]
    if isinstance(value, list):
        return [number for inner in value for number in _numbers(inner)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


def real(values: Iterable[Plain], current: object, by_id: Mapping[str, object]) -> list[Plain]:
    """Return each value once, without the current one, ids of people, and ids of resources outside the snapshot."""
    kept: dict[str, Plain] = {}
    for value in values:
        if type(value) is type(current) and value == current:
            continue
        if isinstance(value, str) and not _is_real(value, by_id):
            continue
        kept.setdefault(lowered(repr(value)), value)
    return list(kept.values())


def _is_real(text: str, by_id: Mapping[str, object]) -> bool:
    if text.startswith("/"):
        return lowered(text) in by_id or lowered(text.rpartition("/subnets/")[0]) in by_id
    return 0 < len(text.strip()) <= _LONGEST and "@" not in text and not _NAMING.match(text)


def inherited(pointer: str, workspace: JsonObject | None) -> Sequence[Plain]:
    """Return the workspace's tag of the same name; tags state decisions of people, so no other value is tried."""
    value = found_at(workspace, pointer) if workspace else None
    return [value] if isinstance(value, str) and value.strip() else []
