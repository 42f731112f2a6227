"""The runs of a piece of work: itself, or the steps of its pipeline, each with its own compute and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from policyeng.models import DeclaredWorkload, JsonObject
from policyeng.workloads.answers import ABSENT, Answer, joined, undecided

#: Kinds of work that the documents tell apart, in the order in which a workload lists them.
FEATURES = ("automl", "pipeline", "designer", "sweep", "distributed")
_NO = Answer(False)


class Run(NamedTuple):
    """What is known of one run.

    Attributes:
        step: the key of the pipeline's step; None for work that is no pipeline.
        features: an answer for each of `FEATURES` that ARM can tell; of the others nothing is known to be there.
        concurrent_trials: how many trials of a sweep may run at once; absent for anything else.
    """

    step: str | None
    target: Answer[str]
    compute_id: Answer[str]
    features: Mapping[str, Answer[bool]]
    concurrent_trials: Answer[int] = ABSENT


def as_one_run(target: Answer[str], compute_id: Answer[str], features: Answer[tuple[str, ...]]) -> Run:
    """Work that is one run, by what is said of all of it."""
    if features.value is None:
        answers: dict[str, Answer[bool]] = dict.fromkeys(FEATURES, undecided(features.reason))
    else:
        answers = {name: Answer(name in features.value) for name in FEATURES}
    return Run(None, target, compute_id, answers)


def features_of(runs: Sequence[Run]) -> Answer[tuple[str, ...]]:
    """The features of all runs together; undecided as soon as one is."""
    answers = [(name, answer) for run in runs for name, answer in run.features.items()]
    reasons = {answer.reason for _, answer in answers} - {""}
    if reasons:
        return undecided(min(reasons))
    named = {name for name, answer in answers if answer.value}
    return Answer(tuple(name for name in FEATURES if name in named))


def documents_of(runs: Sequence[Run], additions: Sequence[DeclaredWorkload]) -> list[JsonObject]:
    """The runs as policies see them, with what is declared: `{step, target, reason, computeId, features, ...}`.

    A declared target is that of every run. A declared feature that no run has is one of all runs, because nobody says
    of which. `target` is null for `reason`, and so is a feature that cannot be decided.
    """
    found = {name for run in runs for name, answer in run.features.items() if answer.value}
    added = {str(feature) for one in additions for feature in one.features} - found
    targets = [one.target for one in additions]
    return [_document(run, joined(run.target, targets, "target"), added) for run in runs]


def _document(run: Run, target: Answer[str], added: set[str]) -> JsonObject:
    return {
        "step": run.step,
        "target": target.value,
        "reason": target.reason,
        "computeId": run.compute_id.value,
        "features": {name: name in added or run.features.get(name, _NO).value for name in FEATURES},
        "concurrentTrials": run.concurrent_trials.value,
    }
