"""Jobs: training work, on the computes that the job and its steps name."""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from policyeng.facts import Facts
from policyeng.facts.ids import fold_id
from policyeng.facts.numbers import parse_whole_number
from policyeng.frozen import frozen
from policyeng.models import WORKSPACE_TYPE, DeclaredWorkload, Snapshot, lowered, to_bytes
from policyeng.named import NamedTuple
from policyeng.workloads.builder import (
    NO,
    RunStep,
    Workload,
    WorkloadDraft,
    as_one_run,
    compute_id,
    declared_workload,
    derived_workload,
    features_of,
    of_containers,
    of_instance_type,
    of_placement,
    of_size,
    tags_of,
)
from policyeng.workloads.lookup import (
    ABSENT,
    Placement,
    Reader,
    ResolvedValue,
    ResourceLookup,
    build_estate,
    find_workspace,
    get_agreed,
    get_first,
    undecided,
)

#: Job and step types that are features of the documents' training table. Designer leaves no trace in ARM.
KINDS = ("automl", "pipeline", "sweep")
_YES = ResolvedValue(True)

#: The trials of a sweep that states no limit. Source: learn.microsoft.com, "CLI (v2) sweep job YAML schema", `limits`.
DEFAULT_TRIALS = 1000


class JobPart(NamedTuple):
    """A job, or one step of a pipeline.

    Attributes:
        reference: the compute that it names, or else the pipeline's.
        earlier: where a job of API version 2021-03-01-preview states its compute and the number and size of its nodes.
    """

    properties: Reader
    reference: ResolvedValue[str]
    earlier: Reader | None

    @property
    def step(self) -> str | None:
        """The key of the step; None for a whole job."""
        return self.properties.base[-1] if self.properties.base != ("properties",) else None

    def instance_type(self) -> ResolvedValue[str]:
        """Return the instance type that it requests."""
        return instance_type(self.properties, self.earlier)


def job(estate: ResourceLookup, source: Reader) -> WorkloadDraft:
    """Return the work of a `workspaces/jobs`.

    A pipeline gathers the computes, accelerators and features of its steps.
    """
    parts = parts_of(source)
    workspace_id = find_workspace(source.id)
    placed = [(estate.place(part.reference, workspace_id), part) for part in parts.value or ()]
    target = get_agreed([placement.target for placement, _ in placed], "its steps run on").or_reason(parts.reason)
    accelerators = [of_placement(estate, placement, part.instance_type) for placement, part in placed]
    computes = get_agreed([compute_id(placement) for placement, _ in placed], "its steps run on")
    kind = source.text("properties", "jobType").or_reason("the jobType is absent")
    runs = tuple(_run(placement, part, kind) for placement, part in placed)
    if not runs:
        runs = (as_one_run(undecided(parts.reason), ABSENT, undecided(parts.reason)),)
    return WorkloadDraft(
        source=source,
        purpose=ResolvedValue("training", presumed=True),  # ARM does not state the purpose of a job
        target=target,
        accelerator=get_agreed(accelerators, "its steps use").or_reason(parts.reason),
        compute_id=computes if computes.value or not target.reason else undecided(target.reason),
        features=features_of(runs),
        tags=tags_of(source, ("properties", "tags"), ("tags",)),
        runs=runs,
    )


def parts_of(source: Reader) -> ResolvedValue[tuple[JobPart, ...]]:
    """Return what a job runs: its steps, each on its own compute or else the pipeline's, or the job itself.

    At least one.
    """
    properties = source.inside("properties").or_reason("the job has no properties")
    if properties.value is None:
        return undecided(properties.reason)
    job_itself = properties.value
    earlier = _find_earlier_compute(job_itself)
    default = get_first(job_itself.text("settings", "defaultCompute"), _find_reference(job_itself, earlier))
    steps = job_itself.each("jobs")
    if steps.reason:
        return undecided(steps.reason)
    if not steps.value:
        return ResolvedValue((JobPart(job_itself, default, earlier.value),))
    return ResolvedValue(tuple(_step(step, default) for step in steps.value))


def _step(properties: Reader, default: ResolvedValue[str]) -> JobPart:
    earlier = _find_earlier_compute(properties)
    return JobPart(properties, get_first(_find_reference(properties, earlier), default), earlier.value)


def _find_reference(properties: Reader, earlier: ResolvedValue[Reader]) -> ResolvedValue[str]:
    """Return the compute that a job or a step names."""
    if earlier.value is None:
        return get_first(properties.text("computeId"), undecided(earlier.reason) if earlier.reason else ABSENT)
    on_own_machine = ResolvedValue("local") if earlier.value.at("isLocal").value is True else ABSENT
    return get_first(properties.text("computeId"), earlier.value.text("target"), on_own_machine)


def _find_earlier_compute(properties: Reader) -> ResolvedValue[Reader]:
    """Return `JobPart.earlier` of a job or a step."""
    stated = properties.at("compute")
    if isinstance(stated.value, dict):
        return properties.inside("compute")
    return undecided(stated.reason) if stated.reason and properties.carried is None else ABSENT


def instance_type(properties: Reader, earlier: Reader | None) -> ResolvedValue[str]:
    """Return the instance type that a run requests: its own, or that of a sweep's trial."""
    return get_first(
        properties.text("resources", "instanceType"),
        properties.text("trial", "resources", "instanceType"),
        earlier.text("instanceType") if earlier else ABSENT,
    )


def _run(placement: Placement, part: JobPart, job_kind: ResolvedValue[str]) -> RunStep:
    step_kind = get_first(part.properties.text("jobType"), part.properties.text("type")) if part.step else ABSENT
    reason = job_kind.reason or step_kind.reason
    kinds = {lowered(kind.value) for kind in (job_kind, step_kind) if kind.value}
    features = {name: undecided(reason) if reason else _YES if name in kinds else NO for name in KINDS}
    return RunStep(
        step=part.step,
        target=placement.target,
        compute_id=compute_id(placement),
        features={**features, "distributed": _distributed(part.properties, part.earlier)},
        concurrent_trials=_concurrent_trials(part.properties) if features["sweep"].value else ABSENT,
    )


def _concurrent_trials(sweep: Reader) -> ResolvedValue[int]:
    """Return how many trials may run at once: all, unless there is a limit."""
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


def _distributed(run: Reader, earlier: Reader | None) -> ResolvedValue[bool]:
    """Return whether it has more than one node, or a distribution that is not known to use only one node."""
    nodes = get_first(
        run.number("resources", "instanceCount"),
        run.number("trial", "resources", "instanceCount"),
        earlier.number("instanceCount") if earlier else ABSENT,
    )
    distribution = get_first(run.at("distribution"), run.at("trial", "distribution"))
    if nodes.reason or distribution.reason:
        return undecided(nodes.reason or distribution.reason)
    return _YES if (nodes.value > 1 if nodes.value is not None else distribution.value) else NO


TARGETS = {"aci": "aci", "aks": "aks"}


def service(estate: ResourceLookup, source: Reader) -> WorkloadDraft:
    """Return the work of a `workspaces/services`; its user's tags are `kvTags`, below those of the ARM resource."""
    kind = source.text("properties", "computeType").or_reason("the computeType is absent")
    target = TARGETS.get(lowered(kind.value or ""))
    return WorkloadDraft(
        source=source,
        purpose=ResolvedValue("realtime-inference"),
        target=ResolvedValue(target)
        if target
        else undecided(kind.reason or f"the computeType `{kind.value}` is not a target of web services"),
        accelerator=of_containers(source, REQUIREMENTS),
        compute_id=_compute_id(estate, source),
        memory_gib=source.number(*REQUIREMENTS, "memoryInGB"),
        tags=tags_of(source, ("tags",), ("properties", "kvTags")),
    )


def _compute_id(estate: ResourceLookup, source: Reader) -> ResolvedValue[str]:
    """Return the compute that `computeName` names; Container Instances name none."""
    name = source.text("properties", "computeName")
    if name.value is None:
        return name
    placement = estate.place(name, find_workspace(source.id))
    if placement.compute:
        return ResolvedValue(placement.compute.id)
    return undecided(placement.target.reason or f"`{name.value}` is not a compute of the workspace")


REQUIREMENTS = ("properties", "containerResourceRequirements")
LIMITS = (*REQUIREMENTS, "containerResourceLimits")
REQUESTS = (*REQUIREMENTS, "containerResourceRequests")
#: The words of `endpointComputeType` for Kubernetes; the second is that of version 2021-03-01-preview.
ON_KUBERNETES = ("kubernetes", "k8s")
#: The targets that a deployment on Kubernetes can have.
KUBERNETES = ("kubernetes", "aks")


def online_deployment(estate: ResourceLookup, source: Reader) -> WorkloadDraft:
    """Return the work of a `workspaces/onlineEndpoints/deployments`: real-time inference."""
    kind = source.text("properties", "endpointComputeType").or_reason("the endpointComputeType is absent")
    placement = _online_placement(estate, source, kind)
    return WorkloadDraft(
        source=source,
        purpose=ResolvedValue("realtime-inference"),
        target=placement.target,
        accelerator=_online_accelerator(estate, source, kind, placement),
        compute_id=compute_id(placement),
        tags=tags_of(source, ("tags",)),
    )


def batch_deployment(estate: ResourceLookup, source: Reader) -> WorkloadDraft:
    """Return the work of a `workspaces/batchEndpoints/deployments`: batch inference.

    A pipeline component names its own.
    """
    properties = source.inside("properties").or_reason("the deployment has no properties")
    whole = properties.value
    if whole is None:
        placement = Placement(undecided(properties.reason))
    else:
        default = whole.text("deploymentConfiguration", "settings", "defaultCompute")
        placement = estate.place(get_first(whole.text("compute"), default), find_workspace(source.id))
    return WorkloadDraft(
        source=source,
        purpose=ResolvedValue("batch-inference"),
        target=placement.target,
        accelerator=of_placement(estate, placement, lambda: _batch_instance_type(whole)),
        compute_id=compute_id(placement),
        features=_component_features(source),
        tags=tags_of(source, ("tags",)),
    )


def _batch_instance_type(properties: Reader | None) -> ResolvedValue[str]:
    return instance_type(properties, _find_earlier_compute(properties).value) if properties else ABSENT


def _online_placement(estate: ResourceLookup, source: Reader, kind: ResolvedValue[str]) -> Placement:
    named = lowered(kind.value or "")
    if named == "managed":
        return Placement(ResolvedValue("managed-online"))
    compute = _endpoint_compute(estate, source)
    if named == "azuremlcompute":
        return Placement(ResolvedValue("compute-cluster"), compute.compute)
    if named not in ON_KUBERNETES:
        return Placement(undecided(kind.reason or f"the endpointComputeType `{kind.value}` is not a compute target"))
    if compute.target.value in KUBERNETES:
        return compute
    if compute.target.value is None:
        return Placement(undecided(compute.target.reason, KUBERNETES))
    return Placement(undecided(f"a Kubernetes deployment, but its endpoint's compute is `{compute.target.value}`"))


def _endpoint_compute(estate: ResourceLookup, source: Reader) -> Placement:
    """Return the compute that the endpoint of a deployment refers to.

    Its id is the deployment's without the last two parts.
    """
    endpoint_id = "/".join(fold_id(source.id).split("/")[:-2])
    endpoint = estate.find(endpoint_id)
    if endpoint is None:
        return Placement(undecided("the endpoint is not in the snapshot"))
    # `target` is the name of API version 2021-03-01-preview.
    named = get_first(endpoint.text("properties", "compute"), endpoint.text("properties", "target"))
    reference = named.or_reason("the endpoint names no compute")
    return estate.place(reference, find_workspace(source.id))


def _online_accelerator(
    estate: ResourceLookup, source: Reader, kind: ResolvedValue[str], placement: Placement
) -> ResolvedValue[str]:
    """Of a Kubernetes deployment what its containers request, else its instance type's; of others their size's."""
    size = source.text("properties", "instanceType")
    named = lowered(kind.value or "")
    if named == "managed" or (named == "azuremlcompute" and not size.absent):
        return of_size(estate, size, "the deployment names no instance type")
    if named == "azuremlcompute":
        return of_placement(estate, placement, lambda: size)
    if named not in ON_KUBERNETES:
        return undecided(placement.target.reason)
    requested = of_containers(source, LIMITS, REQUESTS)
    if requested.value != "none":
        return requested
    return of_instance_type(placement.compute, size)


def _component_features(source: Reader) -> ResolvedValue[tuple[str, ...]]:
    kind = source.text("properties", "deploymentConfiguration", "deploymentConfigurationType")
    if kind.reason:
        return undecided(kind.reason)
    return ResolvedValue(("pipeline",) if lowered(kind.value or "") == "pipelinecomponent" else ())


#: What makes a workload, by ARM type in lower case.
DERIVED_FROM: Mapping[str, Callable[[ResourceLookup, Reader], WorkloadDraft]] = {
    f"{WORKSPACE_TYPE}/jobs": job,
    f"{WORKSPACE_TYPE}/onlineendpoints/deployments": online_deployment,
    f"{WORKSPACE_TYPE}/batchendpoints/deployments": batch_deployment,
    f"{WORKSPACE_TYPE}/services": service,
}


class Derived(NamedTuple):
    """What comes of one resource and the declarations about it, or of declarations about none.

    Attributes:
        workloads: one of a resource; of declarations alone one each.
        queried: ids of the resources that were looked up for it, existing or not, as `folded_id` gives them.
    """

    workloads: tuple[Workload, ...]
    queried: frozenset[str]


@frozen
class Derivation:
    """The workloads of a snapshot by what they are derived from: the id of a resource as `folded_id` gives it.

    Declarations that name none are under the empty id.
    """

    estate: ResourceLookup
    additions: Mapping[str, Sequence[DeclaredWorkload]]
    derived: dict[str, Derived]

    def workloads(self) -> tuple[Workload, ...]:
        """Return all of them, sorted by id without case."""
        found = (workload for derived in self.derived.values() for workload in derived.workloads)
        return tuple(sorted(found, key=lambda workload: lowered(workload.reported_id)))

    def again(self, becomes: Mapping[str, Reader | None]) -> dict[str, Derived | None]:
        """Return what is derived once some resources change or disappear; None if nothing remains.

        Args:
            becomes: by id as `folded_id` gives it.
        """
        estate = ResourceLookup(ChainMap({**becomes}, self.estate.resources), self.estate.facts)
        due = {source for key in becomes for source in self._asking.get(key, ())}
        due |= {key for key, resource in becomes.items() if key in self.derived or _builder(resource)}
        return {source: _derived(estate, source, self.additions.get(source, ())) for source in sorted(due)}

    @cached_property
    def _asking(self) -> dict[str, set[str]]:
        """By an id that is looked up, existing or not, what is derived with it, or was."""
        found: dict[str, set[str]] = {}
        for source, derived in self.derived.items():
            for key in derived.queried:
                found.setdefault(key, set()).add(source)
        return found

    def copy(self) -> Derivation:
        """Return a copy that `change` may change."""
        return Derivation(
            ResourceLookup(dict(self.estate.resources), self.estate.facts), self.additions, dict(self.derived)
        )

    def change(self, becomes: Mapping[str, Reader | None], again: Mapping[str, Derived | None]) -> None:
        """Have resources be others, and derive from them what `again` gives."""
        self.estate.resources.update(becomes)
        for source, derived in again.items():
            if derived is None:
                self.derived.pop(source, None)
                continue
            self.derived[source] = derived
            for key in derived.queried:
                self._asking.setdefault(key, set()).add(source)


def derivation(snapshot: Snapshot, facts: Facts) -> Derivation:
    """Derive every workload of a snapshot; no input makes it raise."""
    estate = build_estate(snapshot, facts)
    additions: dict[str, list[DeclaredWorkload]] = defaultdict(list)
    for one in sorted(snapshot.workloads, key=to_bytes):
        additions[fold_id(one.source_id or "")].append(one)
    made = ((source, _derived(estate, source, additions.get(source, ()))) for source in _sources(estate, additions))
    return Derivation(estate, additions, {source: derived for source, derived in made if derived})


def derive(snapshot: Snapshot, facts: Facts) -> tuple[Workload, ...]:
    """Return the workloads of a snapshot, sorted by id without case; no input makes it raise.

    A declared workload joins the one derived from its `source_id`; without one it is separate.
    """
    return derivation(snapshot, facts).workloads()


def _sources(estate: ResourceLookup, additions: Iterable[str]) -> Iterator[str]:
    """Yield the resources that make workloads, type by type, and then what else is declared."""
    by_type = estate.of_types(DERIVED_FROM)
    found = [fold_id(source.id) for sources in by_type.values() for source in sources]
    yield from dict.fromkeys((*found, *additions))


def _derived(estate: ResourceLookup, source: str, additions: Sequence[DeclaredWorkload]) -> Derived | None:
    """Return what one source makes; None for nothing."""
    queried = set[str]()
    lookup = ResourceLookup(estate.resources, estate.facts, queried)
    resource = estate.resources.get(source)
    build = _builder(resource)
    if resource is not None and build is not None:
        workloads: tuple[Workload, ...] = (derived_workload(build(lookup, resource), additions),)
    else:
        workloads = tuple(declared_workload(one, lookup) for one in additions)
    return Derived(workloads, frozenset(queried)) if workloads else None


def _builder(resource: Reader | None) -> Callable[[ResourceLookup, Reader], WorkloadDraft] | None:
    named = resource.body.get("type") if resource is not None else None
    return DERIVED_FROM.get(lowered(named)) if isinstance(named, str) else None
