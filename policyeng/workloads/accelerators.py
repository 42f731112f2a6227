"""Which accelerator work runs with: from the VM size of its nodes, or from what its containers ask for."""

from __future__ import annotations

from policyeng.models import lowered
from policyeng.workloads.fields import Reader, Segments
from policyeng.workloads.lookup import Placement, ResourceLookup
from policyeng.workloads.resolved import ABSENT, ResolvedValue, get_agreed, undecided

#: The instance type that every Kubernetes compute has; without a definition of its own it has no GPU. Source:
#: learn.microsoft.com, "Create and manage instance types" (Azure Machine Learning on Kubernetes).
DEFAULT_INSTANCE_TYPE = "defaultinstancetype"

#: Where each target's compute states the size of its nodes.
SIZE_PATHS: dict[str, Segments] = {
    "compute-cluster": ("properties", "properties", "vmSize"),
    "compute-instance": ("properties", "properties", "vmSize"),
    "aks": ("properties", "properties", "agentVmSize"),
    "attached-vm": ("properties", "properties", "virtualMachineSize"),
}

#: The services whose machines have no FPGA, whatever their size. On an FPGA, only models are deployed. Source:
#: https://learn.microsoft.com/azure/machine-learning/v1/how-to-deploy-fpga-web-service.
WITHOUT_FPGAS = frozenset({"databricks", "data-lake-analytics", "hdinsight", "synapse-spark"})
_WITHOUT_FPGA = ("none", "gpu")


def of_size(estate: ResourceLookup, size: ResolvedValue[str], absent: str) -> ResolvedValue[str]:
    """`gpu`, `fpga` or `none` of a VM size; undecided where it is absent or not in the catalogue.

    None is presumed: a declared workload adds an accelerator that the catalogue does not give the size.
    """
    name = size.or_reason(absent)
    if name.value is None:
        return undecided(name.reason)
    known = estate.facts.size(name.value)
    if known is None:
        return undecided(f"the size `{name.value}` is not in the catalogue")
    return ResolvedValue(known.accelerator, presumed=known.accelerator == "none")


def of_placement(estate: ResourceLookup, placement: Placement, instance_type: ResolvedValue[str]) -> ResolvedValue[str]:
    """Return the accelerator of a job or batch deployment: its compute's, or on serverless its own instance type's."""
    target, compute = placement.target, placement.compute
    if target.value is None:
        return undecided(target.reason)
    if target.value == "serverless":
        if instance_type.value is None:
            return undecided(instance_type.reason or "serverless work names no instance type", _WITHOUT_FPGA)
        return of_size(estate, instance_type, "")
    if target.value == "kubernetes":
        return of_instance_type(compute, instance_type)
    if compute is None or target.value not in SIZE_PATHS:
        offered = _WITHOUT_FPGA if target.value in WITHOUT_FPGAS else ()
        return undecided(f"nothing states the size of a `{target.value}` target", offered)
    size = compute.text(*SIZE_PATHS[target.value])
    if size.absent and target.value == "attached-vm":
        size = _machine_size(estate, compute)
    return of_size(estate, size, f"the compute `{compute.id}` states no size")


def of_instance_type(compute: Reader | None, instance_type: ResolvedValue[str]) -> ResolvedValue[str]:
    """Return the accelerator of an instance type that a Kubernetes compute defines; the undefined default has none."""
    if instance_type.reason:
        return undecided(instance_type.reason)
    name = instance_type
    if compute and name.absent:
        name = compute.text("properties", "properties", "defaultInstanceType")
    wanted = lowered(name.value or DEFAULT_INSTANCE_TYPE)
    defined = compute.inside("properties", "properties", "instanceTypes", wanted) if compute else ABSENT
    if name.reason or defined.reason:
        return undecided(name.reason or defined.reason)
    if defined.value:
        return of_containers(defined.value, ("resources", "limits"), ("resources", "requests"))
    if wanted == DEFAULT_INSTANCE_TYPE:
        return ResolvedValue("none", presumed=True)
    return undecided(f"the instance type `{name.value}` is not defined in the snapshot")


def of_containers(asked: Reader, *places: Segments) -> ResolvedValue[str]:
    """Return the accelerator that containers ask for at any of `places`; none where no amount is above 0.

    Where no amount is stated at all, none is presumed.
    """
    amounts = [
        (kind, asked.number(*place, key)) for place in places for key, kind in _accelerator_keys(asked, place).items()
    ]
    reasons = sorted(amount.reason for _, amount in amounts if amount.reason)
    if reasons:
        return undecided(reasons[0])
    wanted = sorted({kind for kind, amount in amounts if (amount.value or 0) > 0})
    if not wanted:
        return ResolvedValue("none", presumed=all(amount.absent for _, amount in amounts))
    return get_agreed([ResolvedValue(kind) for kind in wanted], "the containers ask for")


def _accelerator_keys(asked: Reader, place: Segments) -> dict[str, str]:
    """Return the keys that can ask for an accelerator: ARM's own `gpu` and `fpga`, and Kubernetes' `<vendor>/gpu`."""
    written = asked.inside(*place).value
    keys = {*(written.body if written else ()), *asked.lost_keys(*place)}
    names = {key: lowered(key).rpartition("/")[2] for key in sorted(keys)}
    vendors = {key: "gpu" for key, name in names.items() if "/" in key and (name == "gpu" or name.startswith("mig-"))}
    return {"gpu": "gpu", "fpga": "fpga"} | vendors


def _machine_size(estate: ResourceLookup, compute: Reader) -> ResolvedValue[str]:
    machine_id = compute.text("properties", "resourceId")
    machine = estate.find(machine_id.value) if machine_id.value else None
    if machine is None:
        return undecided(machine_id.reason or f"the virtual machine of `{compute.id}` is not in the snapshot")
    return machine.text("properties", "hardwareProfile", "vmSize")
