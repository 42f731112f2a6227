"""From a snapshot to its workloads: one per job, deployment and version-1 service, and one per lone declaration."""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from policyeng.facts import Facts
from policyeng.facts.ids import fold_id
from policyeng.frozen import frozen
from policyeng.models import WORKSPACE_TYPE, DeclaredWorkload, Snapshot, lowered, to_bytes
from policyeng.named import NamedTuple
from policyeng.workloads.accelerators import of_containers, of_instance_type, of_placement, of_size
from policyeng.workloads.builder import WorkloadDraft, compute_id, tags_of
from policyeng.workloads.declared import Workload, declared_workload, derived_workload
from policyeng.workloads.fields import Reader
from policyeng.workloads.jobs import instance_type, job
from policyeng.workloads.lookup import Placement, RecordingLookup, ResourceLookup, build_estate, find_workspace
from policyeng.workloads.resolved import ABSENT, ResolvedValue, get_first, undecided

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
    asked = instance_type(whole) if whole else ABSENT
    return WorkloadDraft(
        source=source,
        purpose=ResolvedValue("batch-inference"),
        target=placement.target,
        accelerator=of_placement(estate, placement, asked),
        compute_id=compute_id(placement),
        features=_component_features(source),
        tags=tags_of(source, ("tags",)),
    )


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
    """Return where the endpoint of a deployment says that it runs.

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
    """Of a Kubernetes deployment what its containers ask for, else its instance type's; of others their size's."""
    size = source.text("properties", "instanceType")
    named = lowered(kind.value or "")
    if named == "managed" or (named == "azuremlcompute" and not size.absent):
        return of_size(estate, size, "the deployment names no instance type")
    if named == "azuremlcompute":
        return of_placement(estate, placement, size)
    if named not in ON_KUBERNETES:
        return undecided(placement.target.reason)
    asked = of_containers(source, LIMITS, REQUESTS)
    if asked.value != "none":
        return asked
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
        asked: ids of the resources that were looked up for it, there or not, as `folded_id` gives them.
    """

    workloads: tuple[Workload, ...]
    asked: frozenset[str]


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
        due |= {key for key, held in becomes.items() if key in self.derived or _builder(held)}
        return {source: _derived(estate, source, self.additions.get(source, ())) for source in sorted(due)}

    @cached_property
    def _asking(self) -> dict[str, set[str]]:
        """By an id that is looked up, there or not, what is derived with it, or was."""
        found: dict[str, set[str]] = {}
        for source, derived in self.derived.items():
            for key in derived.asked:
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
            for key in derived.asked:
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

    A declared workload joins the one derived from its `source_id`, and stands alone where there is none.
    """
    return derivation(snapshot, facts).workloads()


def _sources(estate: ResourceLookup, additions: Iterable[str]) -> Iterator[str]:
    """Yield the resources that make workloads, type by type, and then what else is declared."""
    by_type = estate.of_types(DERIVED_FROM)
    found = [fold_id(source.id) for sources in by_type.values() for source in sources]
    yield from dict.fromkeys((*found, *additions))


def _derived(estate: ResourceLookup, source: str, additions: Sequence[DeclaredWorkload]) -> Derived | None:
    """Return what one source makes; None for nothing."""
    asking = RecordingLookup(estate.resources, estate.facts)
    held = estate.resources.get(source)
    build = _builder(held)
    if held is not None and build is not None:
        workloads: tuple[Workload, ...] = (derived_workload(build(asking, held), additions),)
    else:
        workloads = tuple(declared_workload(one, asking) for one in additions)
    return Derived(workloads, frozenset(asking.asked)) if workloads else None


def _builder(held: Reader | None) -> Callable[[ResourceLookup, Reader], WorkloadDraft] | None:
    named = held.body.get("type") if held is not None else None
    return DERIVED_FROM.get(lowered(named)) if isinstance(named, str) else None
