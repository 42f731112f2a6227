"""Online and batch deployments: inference, on the compute that the deployment or its endpoint names."""

from __future__ import annotations

from policyeng.facts.ids import folded_id
from policyeng.models import lowered
from policyeng.workloads.accelerators import of_containers, of_instance_type, of_placement, of_size
from policyeng.workloads.answers import ABSENT, Answer, first, undecided
from policyeng.workloads.drafts import Draft, compute_id, tags_of
from policyeng.workloads.estate import Estate, Placement, home_of
from policyeng.workloads.jobs import instance_type
from policyeng.workloads.reading import Reader

REQUIREMENTS = ("properties", "containerResourceRequirements")
LIMITS = (*REQUIREMENTS, "containerResourceLimits")
REQUESTS = (*REQUIREMENTS, "containerResourceRequests")
#: The words of `endpointComputeType` for Kubernetes; the second is that of version 2021-03-01-preview.
ON_KUBERNETES = ("kubernetes", "k8s")
#: The targets that a deployment on Kubernetes can have.
KUBERNETES = ("kubernetes", "aks")


def online_deployment(estate: Estate, source: Reader) -> Draft:
    """The work of a `workspaces/onlineEndpoints/deployments`: real-time inference."""
    kind = source.text("properties", "endpointComputeType").or_reason("the endpointComputeType is absent")
    placement = _online_placement(estate, source, kind)
    return Draft(
        source=source,
        purpose=Answer("realtime-inference"),
        target=placement.target,
        accelerator=_online_accelerator(estate, source, kind, placement),
        compute_id=compute_id(placement),
        tags=tags_of(source, ("tags",)),
    )


def batch_deployment(estate: Estate, source: Reader) -> Draft:
    """The work of a `workspaces/batchEndpoints/deployments`: batch inference; a pipeline component names its own."""
    properties = source.inside("properties").or_reason("the deployment has no properties")
    whole = properties.value
    if whole is None:
        placement = Placement(undecided(properties.reason))
    else:
        default = whole.text("deploymentConfiguration", "settings", "defaultCompute")
        placement = estate.place(first(whole.text("compute"), default), home_of(source.id))
    asked = instance_type(whole) if whole else ABSENT
    return Draft(
        source=source,
        purpose=Answer("batch-inference"),
        target=placement.target,
        accelerator=of_placement(estate, placement, asked),
        compute_id=compute_id(placement),
        features=_component_features(source),
        tags=tags_of(source, ("tags",)),
    )


def _online_placement(estate: Estate, source: Reader, kind: Answer[str]) -> Placement:
    named = lowered(kind.value or "")
    if named == "managed":
        return Placement(Answer("managed-online"))
    compute = _endpoint_compute(estate, source)
    if named == "azuremlcompute":
        return Placement(Answer("compute-cluster"), compute.compute)
    if named not in ON_KUBERNETES:
        return Placement(undecided(kind.reason or f"the endpointComputeType `{kind.value}` is not a compute target"))
    if compute.target.value in KUBERNETES:
        return compute
    if compute.target.value is None:
        return Placement(undecided(compute.target.reason, KUBERNETES))
    return Placement(undecided(f"a Kubernetes deployment, but its endpoint's compute is `{compute.target.value}`"))


def _endpoint_compute(estate: Estate, source: Reader) -> Placement:
    """Where the endpoint of a deployment says that it runs; its id is the deployment's without the last two parts."""
    endpoint_id = "/".join(folded_id(source.id).split("/")[:-2])
    endpoint = estate.find(endpoint_id)
    if endpoint is None:
        return Placement(undecided("the endpoint is not in the snapshot"))
    # `target` is the name of API version 2021-03-01-preview.
    named = first(endpoint.text("properties", "compute"), endpoint.text("properties", "target"))
    reference = named.or_reason("the endpoint names no compute")
    return estate.place(reference, home_of(source.id))


def _online_accelerator(estate: Estate, source: Reader, kind: Answer[str], placement: Placement) -> Answer[str]:
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


def _component_features(source: Reader) -> Answer[tuple[str, ...]]:
    kind = source.text("properties", "deploymentConfiguration", "deploymentConfigurationType")
    if kind.reason:
        return undecided(kind.reason)
    return Answer(("pipeline",) if lowered(kind.value or "") == "pipelinecomponent" else ())
