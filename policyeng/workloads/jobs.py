"""Jobs: training work, on the computes that the job and its steps name."""

from __future__ import annotations

from dataclasses import dataclass

from policyeng.models import lowered
from policyeng.workloads.accelerators import of_placement
from policyeng.workloads.answers import Answer, agreed, first, undecided
from policyeng.workloads.drafts import Draft, compute_id, tags_of
from policyeng.workloads.estate import Estate, home_of
from policyeng.workloads.reading import Reader

#: Job and step types that are features of the documents' training table. Designer leaves no trace in ARM.
FEATURES = ("automl", "pipeline", "sweep")


@dataclass(frozen=True, slots=True)
class Run:
    """A job, or one step of a pipeline, and what it says of its compute."""

    properties: Reader
    reference: Answer[str]


def job(estate: Estate, source: Reader) -> Draft:
    """The work of a `workspaces/jobs`; a pipeline gathers the computes, accelerators and features of its steps."""
    runs = runs_of(source)
    workspace_id = home_of(source.id)
    placed = [(estate.place(run.reference, workspace_id), run) for run in runs.value or ()]
    target = agreed([placement.target for placement, _ in placed], "its steps run on").or_reason(runs.reason)
    accelerators = [of_placement(estate, placement, instance_type(run.properties)) for placement, run in placed]
    computes = agreed([compute_id(placement) for placement, _ in placed], "its steps run on")
    return Draft(
        source=source,
        purpose=Answer("training", presumed=True),  # ARM does not say what a job is for
        target=target,
        accelerator=agreed(accelerators, "its steps use").or_reason(runs.reason),
        compute_id=computes if computes.value or not target.reason else undecided(target.reason),
        features=_features(source, runs),
        tags=tags_of(source, ("properties", "tags"), ("tags",)),
    )


def runs_of(source: Reader) -> Answer[tuple[Run, ...]]:
    """What a job runs: its steps, each on its own compute or else the pipeline's, or the job itself."""
    properties = source.inside("properties").or_reason("the job has no properties")
    if properties.value is None:
        return undecided(properties.reason)
    whole = properties.value
    default = first(whole.text("settings", "defaultCompute"), whole.text("computeId"))
    steps = whole.each("jobs")
    if steps.reason:
        return undecided(steps.reason)
    if not steps.value:
        return Answer((Run(whole, default),))
    return Answer(tuple(Run(step, first(step.text("computeId"), default)) for step in steps.value))


def instance_type(properties: Reader) -> Answer[str]:
    """The instance type that a run asks for: its own, or that of a sweep's trial."""
    return first(properties.text("resources", "instanceType"), properties.text("trial", "resources", "instanceType"))


def _features(source: Reader, runs: Answer[tuple[Run, ...]]) -> Answer[tuple[str, ...]]:
    kind = source.text("properties", "jobType").or_reason("the jobType is absent")
    steps = [run.properties for run in runs.value or () if run.properties.base != ("properties",)]
    kinds = [kind, *(first(step.text("jobType"), step.text("type")) for step in steps)]
    spreads = [_distributed(run.properties) for run in runs.value or ()]
    reasons = {runs.reason, *(kind.reason for kind in kinds), *(spread.reason for spread in spreads)} - {""}
    if reasons:
        return undecided(min(reasons))
    named = {lowered(kind.value) for kind in kinds if kind.value}
    spread = ("distributed",) if any(answer.value for answer in spreads) else ()
    return Answer((*(feature for feature in FEATURES if feature in named), *spread))


def _distributed(run: Reader) -> Answer[bool]:
    """More than one node, or a distribution that is not said to stay on one node (several processes share it)."""
    nodes = first(run.number("resources", "instanceCount"), run.number("trial", "resources", "instanceCount"))
    distribution = first(run.at("distribution"), run.at("trial", "distribution"))
    if nodes.reason or distribution.reason:
        return undecided(nodes.reason or distribution.reason)
    return Answer(nodes.value > 1 if nodes.value is not None else bool(distribution.value))
