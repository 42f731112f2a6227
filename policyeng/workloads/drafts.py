"""A workload while it is being put together: one answer per field."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from policyeng.models import JsonObject, lowered
from policyeng.workloads.answers import ABSENT, Answer
from policyeng.workloads.estate import Placement
from policyeng.workloads.reading import Reader, Segments
from policyeng.workloads.runs import Run


class Tags(NamedTuple):
    """The tags of a resource as written, and the reason for each that could not be read (`/environment`)."""

    written: Answer[JsonObject]
    gaps: Mapping[str, str] = MappingProxyType({})


#: Work that is none of what the documents' training table tells apart.
NO_FEATURES: Answer[tuple[str, ...]] = Answer(())


class Draft(NamedTuple):
    """What ARM says about one piece of work; it is a single run where `runs` is empty."""

    source: Reader
    purpose: Answer[str]
    target: Answer[str]
    accelerator: Answer[str]
    tags: Tags
    features: Answer[tuple[str, ...]] = NO_FEATURES
    compute_id: Answer[str] = ABSENT
    memory_gib: Answer[float] = ABSENT
    runs: tuple[Run, ...] = ()


def compute_id(placement: Placement) -> Answer[str]:
    """The id of the compute as the snapshot spells it; absent on targets that are no compute of the workspace."""
    if placement.compute:
        return Answer(placement.compute.id)
    return Answer(reason=placement.target.reason)


def tags_of(source: Reader, *places: Segments) -> Tags:
    """The tags at the first of `places`, filled up from the others; keys compare without case.

    What is no object holds no tags, so that it counts as no tag does.
    """
    written: JsonObject = {}
    gaps: dict[str, str] = {}
    for place in places:
        tags = source.at(*place)
        if tags.reason:
            return Tags(Answer(reason=tags.reason))
        taken = {lowered(key) for key in written}
        more = tags.value if isinstance(tags.value, dict) else {}
        written |= {key: value for key, value in more.items() if lowered(key) not in taken}
        gaps |= source.gaps_under(*place)
    return Tags(Answer(written), gaps)
