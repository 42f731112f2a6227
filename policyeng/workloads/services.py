"""Version-1 web services: real-time inference on Container Instances or an AKS cluster."""

from __future__ import annotations

from policyeng.models import lowered
from policyeng.workloads.accelerators import of_containers
from policyeng.workloads.answers import Answer, undecided
from policyeng.workloads.drafts import Draft, tags_of
from policyeng.workloads.estate import Estate, home_of
from policyeng.workloads.reading import Reader

REQUIREMENTS = ("properties", "containerResourceRequirements")
TARGETS = {"aci": "aci", "aks": "aks"}


def service(estate: Estate, source: Reader) -> Draft:
    """The work of a `workspaces/services`; its user's tags are `kvTags`, below those of the ARM resource."""
    kind = source.text("properties", "computeType").or_reason("the computeType is absent")
    target = TARGETS.get(lowered(kind.value or ""))
    return Draft(
        source=source,
        purpose=Answer("realtime-inference"),
        target=Answer(target)
        if target
        else undecided(kind.reason or f"the computeType `{kind.value}` is not a target of web services"),
        accelerator=of_containers(source, REQUIREMENTS),
        compute_id=_compute_id(estate, source),
        memory_gib=source.number(*REQUIREMENTS, "memoryInGB"),
        tags=tags_of(source, ("tags",), ("properties", "kvTags")),
    )


def _compute_id(estate: Estate, source: Reader) -> Answer[str]:
    """The compute that `computeName` names; Container Instances name none."""
    name = source.text("properties", "computeName")
    if name.value is None:
        return name
    placement = estate.place(name, home_of(source.id))
    if placement.compute:
        return Answer(placement.compute.id)
    return undecided(placement.target.reason or f"`{name.value}` is not a compute of the workspace")
