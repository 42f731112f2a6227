"""A workload while it is being put together: one answer per field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from policyeng.models import DeclaredWorkload, JsonObject, lowered
from policyeng.named import NamedTuple
from policyeng.workloads.fields import Reader, Segments
from policyeng.workloads.lookup import Placement
from policyeng.workloads.resolved import ABSENT, ResolvedValue, joined, undecided

#: Kinds of work that the documents tell apart, in the order in which a workload lists them.
FEATURES = ("automl", "pipeline", "designer", "sweep", "distributed")
_NO = ResolvedValue(False)


class RunStep(NamedTuple):
    """What is known of one run.

    Attributes:
        step: the key of the pipeline's step; None for work that is no pipeline.
        features: an answer for each of `FEATURES` that ARM can tell; of the others nothing is known to be there.
        concurrent_trials: how many trials of a sweep may run at once; absent for anything else.
    """

    step: str | None
    target: ResolvedValue[str]
    compute_id: ResolvedValue[str]
    features: Mapping[str, ResolvedValue[bool]]
    concurrent_trials: ResolvedValue[int] = ABSENT


def as_one_run(
    target: ResolvedValue[str], compute_id: ResolvedValue[str], features: ResolvedValue[tuple[str, ...]]
) -> RunStep:
    """Work that is one run, by what is said of all of it."""
    if features.value is None:
        answers: dict[str, ResolvedValue[bool]] = dict.fromkeys(FEATURES, undecided(features.reason))
    else:
        answers = {name: ResolvedValue(name in features.value) for name in FEATURES}
    return RunStep(None, target, compute_id, answers)


def features_of(runs: Sequence[RunStep]) -> ResolvedValue[tuple[str, ...]]:
    """Return the features of all runs together; undecided as soon as one is."""
    answers = [(name, answer) for run in runs for name, answer in run.features.items()]
    reasons = {answer.reason for _, answer in answers} - {""}
    if reasons:
        return undecided(min(reasons))
    named = {name for name, answer in answers if answer.value}
    return ResolvedValue(tuple(name for name in FEATURES if name in named))


def documents_of(runs: Sequence[RunStep], additions: Sequence[DeclaredWorkload]) -> list[JsonObject]:
    """Return the runs as policies see them, with what is declared: `{step, target, reason, computeId, features, ...}`.

    A declared target is that of every run. A declared feature that no run has is one of all runs, because nobody says
    of which. `target` is null for `reason`, and so is a feature that cannot be decided.
    """
    found = {name for run in runs for name, answer in run.features.items() if answer.value}
    added = {str(feature) for one in additions for feature in one.features} - found
    targets = [one.target for one in additions]
    return [_document(run, joined(run.target, targets, "target"), added) for run in runs]


def _document(run: RunStep, target: ResolvedValue[str], added: set[str]) -> JsonObject:
    return {
        "step": run.step,
        "target": target.value,
        "reason": target.reason,
        "computeId": run.compute_id.value,
        "features": {name: name in added or run.features.get(name, _NO).value for name in FEATURES},
        "concurrentTrials": run.concurrent_trials.value,
    }


class Tags(NamedTuple):
    """The tags of a resource as written, and the reason for each that could not be read (`/environment`)."""

    written: ResolvedValue[JsonObject]
    gaps: Mapping[str, str] = MappingProxyType({})


#: Work that is none of what the documents' training table tells apart.
NO_FEATURES: ResolvedValue[tuple[str, ...]] = ResolvedValue(())


class WorkloadDraft(NamedTuple):
    """What ARM says about one piece of work; it is a single run where `runs` is empty."""

    source: Reader
    purpose: ResolvedValue[str]
    target: ResolvedValue[str]
    accelerator: ResolvedValue[str]
    tags: Tags
    features: ResolvedValue[tuple[str, ...]] = NO_FEATURES
    compute_id: ResolvedValue[str] = ABSENT
    memory_gib: ResolvedValue[float] = ABSENT
    runs: tuple[RunStep, ...] = ()


def compute_id(placement: Placement) -> ResolvedValue[str]:
    """Return the id of the compute as the snapshot spells it.

    Absent on targets that are no compute of the workspace.
    """
    if placement.compute:
        return ResolvedValue(placement.compute.id)
    return ResolvedValue(reason=placement.target.reason)


def tags_of(source: Reader, *places: Segments) -> Tags:
    """Return the tags at the first of `places`, filled up from the others; keys compare without case.

    What is no object holds no tags, so that it counts as no tag does.
    """
    written: JsonObject = {}
    gaps: dict[str, str] = {}
    for place in places:
        tags = source.at(*place)
        if tags.reason:
            return Tags(ResolvedValue(reason=tags.reason))
        taken = {lowered(key) for key in written}
        more = tags.value if isinstance(tags.value, dict) else {}
        written |= {key: value for key, value in more.items() if lowered(key) not in taken}
        gaps |= source.gaps_under(*place)
    return Tags(ResolvedValue(written), gaps)
