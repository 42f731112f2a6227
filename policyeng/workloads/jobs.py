"""Jobs: training work, on the computes that the job and its steps name."""

from __future__ import annotations

from policyeng.facts.numbers import parse_whole_number
from policyeng.models import lowered
from policyeng.named import NamedTuple
from policyeng.workloads.accelerators import of_placement
from policyeng.workloads.builder import RunStep, WorkloadDraft, as_one_run, compute_id, features_of, tags_of
from policyeng.workloads.fields import Reader
from policyeng.workloads.lookup import Placement, ResourceLookup, find_workspace
from policyeng.workloads.resolved import ABSENT, ResolvedValue, get_agreed, get_first, undecided

#: Job and step types that are features of the documents' training table. Designer leaves no trace in ARM.
KINDS = ("automl", "pipeline", "sweep")

#: The trials of a sweep that states no limit. Source: learn.microsoft.com, "CLI (v2) sweep job YAML schema", `limits`.
DEFAULT_TRIALS = 1000


class JobPart(NamedTuple):
    """A job, or one step of a pipeline, and what it says of its compute."""

    properties: Reader
    reference: ResolvedValue[str]

    @property
    def step(self) -> str | None:
        """The key of the step; None for a whole job."""
        return self.properties.base[-1] if self.properties.base != ("properties",) else None


def job(estate: ResourceLookup, source: Reader) -> WorkloadDraft:
    """Return the work of a `workspaces/jobs`.

    A pipeline gathers the computes, accelerators and features of its steps.
    """
    parts = parts_of(source)
    workspace_id = find_workspace(source.id)
    placed = [(estate.place(part.reference, workspace_id), part) for part in parts.value or ()]
    target = get_agreed([placement.target for placement, _ in placed], "its steps run on").or_reason(parts.reason)
    accelerators = [of_placement(estate, placement, instance_type(part.properties)) for placement, part in placed]
    computes = get_agreed([compute_id(placement) for placement, _ in placed], "its steps run on")
    kind = source.text("properties", "jobType").or_reason("the jobType is absent")
    runs = tuple(_run(placement, part, kind) for placement, part in placed)
    lost = as_one_run(undecided(parts.reason), ABSENT, undecided(parts.reason))
    return WorkloadDraft(
        source=source,
        purpose=ResolvedValue("training", presumed=True),  # ARM does not say what a job is for
        target=target,
        accelerator=get_agreed(accelerators, "its steps use").or_reason(parts.reason),
        compute_id=computes if computes.value or not target.reason else undecided(target.reason),
        features=features_of(runs or (lost,)),
        tags=tags_of(source, ("properties", "tags"), ("tags",)),
        runs=runs or (lost,),
    )


def parts_of(source: Reader) -> ResolvedValue[tuple[JobPart, ...]]:
    """Return what a job runs: its steps, each on its own compute or else the pipeline's, or the job itself.

    At least one.
    """
    properties = source.inside("properties").or_reason("the job has no properties")
    if properties.value is None:
        return undecided(properties.reason)
    job_itself = properties.value
    default = get_first(job_itself.text("settings", "defaultCompute"), compute_of(job_itself))
    steps = job_itself.each("jobs")
    if steps.reason:
        return undecided(steps.reason)
    if not steps.value:
        return ResolvedValue((JobPart(job_itself, default),))
    return ResolvedValue(tuple(JobPart(step, get_first(compute_of(step), default)) for step in steps.value))


def compute_of(properties: Reader) -> ResolvedValue[str]:
    """Return the compute that a job or a step names."""
    earlier = _find_earlier_compute(properties)
    if earlier.value is None:
        return get_first(properties.text("computeId"), undecided(earlier.reason) if earlier.reason else ABSENT)
    on_own_machine = ResolvedValue("local") if earlier.value.at("isLocal").value is True else ABSENT
    return get_first(properties.text("computeId"), earlier.value.text("target"), on_own_machine)


def _find_earlier_compute(properties: Reader) -> ResolvedValue[Reader]:
    """Return where a job of API version 2021-03-01-preview states its compute and the number and size of its nodes."""
    stated = properties.at("compute")
    if isinstance(stated.value, dict):
        return properties.inside("compute")
    return undecided(stated.reason) if stated.reason and properties.carried is None else ABSENT


def instance_type(properties: Reader) -> ResolvedValue[str]:
    """Return the instance type that a run asks for: its own, or that of a sweep's trial."""
    earlier = _find_earlier_compute(properties).value
    return get_first(
        properties.text("resources", "instanceType"),
        properties.text("trial", "resources", "instanceType"),
        earlier.text("instanceType") if earlier else ABSENT,
    )


def _run(placement: Placement, part: JobPart, job_kind: ResolvedValue[str]) -> RunStep:
    step_kind = get_first(part.properties.text("jobType"), part.properties.text("type")) if part.step else ABSENT
    reason = job_kind.reason or step_kind.reason
    kinds = {lowered(kind.value) for kind in (job_kind, step_kind) if kind.value}
    features = {name: undecided(reason) if reason else ResolvedValue(name in kinds) for name in KINDS}
    return RunStep(
        step=part.step,
        target=placement.target,
        compute_id=compute_id(placement),
        features={**features, "distributed": _distributed(part.properties)},
        concurrent_trials=_concurrent_trials(part.properties) if features["sweep"].value else ABSENT,
    )


def _concurrent_trials(sweep: Reader) -> ResolvedValue[int]:
    """Return how many trials may run at once: as many as there are, unless a limit says otherwise."""
    stated = get_first(
        sweep.number("limits", "maxConcurrentTrials"),
        sweep.number("maxConcurrentTrials") if sweep.carried is None else ABSENT,  # of version 2021-03-01-preview
        sweep.number("limits", "maxTotalTrials"),
        sweep.number("maxTotalTrials") if sweep.carried is None else ABSENT,
    )
    if stated.absent:
        return ResolvedValue(DEFAULT_TRIALS)
    if stated.value is None:
        return undecided(stated.reason)
    trials = parse_whole_number(stated.value)
    return undecided("the limit of trials is no count") if trials is None else ResolvedValue(trials)


def _distributed(run: Reader) -> ResolvedValue[bool]:
    """More than one node, or a distribution that is not said to stay on one node (several processes share it)."""
    earlier = _find_earlier_compute(run).value
    nodes = get_first(
        run.number("resources", "instanceCount"),
        run.number("trial", "resources", "instanceCount"),
        earlier.number("instanceCount") if earlier else ABSENT,
    )
    distribution = get_first(run.at("distribution"), run.at("trial", "distribution"))
    if nodes.reason or distribution.reason:
        return undecided(nodes.reason or distribution.reason)
    return ResolvedValue(nodes.value > 1 if nodes.value is not None else bool(distribution.value))
