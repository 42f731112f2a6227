"""Build workloads from resources and from what is declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from policyeng.facts.ids import name_of
from policyeng.models import DeclaredWorkload, JsonObject, lowered
from policyeng.named import NamedTuple
from policyeng.workloads.lookup import (
    ABSENT,
    Placement,
    Reader,
    ResolvedValue,
    ResourceLookup,
    Segments,
    find_workspace,
    get_agreed,
    joined,
    undecided,
)

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


def of_placement(
    estate: ResourceLookup, placement: Placement, find_instance_type: Callable[[], ResolvedValue[str]]
) -> ResolvedValue[str]:
    """Return the accelerator of a job or batch deployment: its compute's, or on serverless its own instance type's."""
    target, compute = placement.target, placement.compute
    if target.value is None:
        return undecided(target.reason)
    if target.value == "serverless":
        instance_type = find_instance_type()
        if instance_type.value is None:
            return undecided(instance_type.reason or "serverless work names no instance type", _WITHOUT_FPGA)
        return of_size(estate, instance_type, "")
    if target.value == "kubernetes":
        return of_instance_type(compute, find_instance_type())
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


def of_containers(reader: Reader, *places: Segments) -> ResolvedValue[str]:
    """Return the accelerator that containers request at any of `places`; none where no amount is above 0.

    Where no amount is stated at all, none is presumed.
    """
    amounts = [
        (kind, reader.number(*place, key)) for place in places for key, kind in _accelerator_keys(reader, place).items()
    ]
    reasons = sorted(amount.reason for _, amount in amounts if amount.reason)
    if reasons:
        return undecided(reasons[0])
    wanted = sorted({kind for kind, amount in amounts if (amount.value or 0) > 0})
    if not wanted:
        return ResolvedValue("none", presumed=all(amount.absent for _, amount in amounts))
    return get_agreed([ResolvedValue(kind) for kind in wanted], "the containers ask for")


def _accelerator_keys(reader: Reader, place: Segments) -> dict[str, str]:
    """Return the keys that can request an accelerator: ARM's own `gpu` and `fpga`, and Kubernetes' `<vendor>/gpu`."""
    written = reader.inside(*place).value
    keys = {*(written.body if written else ()), *reader.lost_keys(*place)}
    names = {key: lowered(key).rpartition("/")[2] for key in sorted(keys) if "/" in key}
    vendors = {key: "gpu" for key, name in names.items() if name == "gpu" or name.startswith("mig-")}
    return {"gpu": "gpu", "fpga": "fpga"} | vendors


def _machine_size(estate: ResourceLookup, compute: Reader) -> ResolvedValue[str]:
    machine_id = compute.text("properties", "resourceId")
    machine = estate.find(machine_id.value) if machine_id.value else None
    if machine is None:
        return undecided(machine_id.reason or f"the virtual machine of `{compute.id}` is not in the snapshot")
    return machine.text("properties", "hardwareProfile", "vmSize")


#: Kinds of work that the documents distinguish, in the order in which a workload lists them.
FEATURES = ("automl", "pipeline", "designer", "sweep", "distributed")
NO = ResolvedValue(False)


class RunStep(NamedTuple):
    """What is known of one run.

    Attributes:
        step: the key of the pipeline's step; None for work that is not a pipeline.
        features: an answer for each of `FEATURES` that ARM states; the others are not known to be present.
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
    """Return the single run of work that is not divided, from the values for all of it."""
    if features.value is None:
        fields: dict[str, ResolvedValue[bool]] = dict.fromkeys(FEATURES, undecided(features.reason))
    else:
        fields = {name: ResolvedValue(name in features.value) for name in FEATURES}
    return RunStep(None, target, compute_id, fields)


def features_of(runs: Sequence[RunStep]) -> ResolvedValue[tuple[str, ...]]:
    """Return the features of all runs together; undecided as soon as one is."""
    fields = [(name, answer) for run in runs for name, answer in run.features.items()]
    reasons = {answer.reason for _, answer in fields} - {""}
    if reasons:
        return undecided(min(reasons))
    named = {name for name, answer in fields if answer.value}
    return ResolvedValue(tuple(name for name in FEATURES if name in named))


def documents_of(runs: Sequence[RunStep], additions: Sequence[DeclaredWorkload]) -> list[JsonObject]:
    """Return the runs as policies see them, with what is declared: `{step, target, reason, computeId, features, ...}`.

    A declared target is that of every run. A declared feature that no run has is one of all runs, because it is not
    stated of which. `target` is null for `reason`, and so is a feature that cannot be decided.
    """
    added = {str(feature) for one in additions for feature in one.features}
    if added:
        added -= {name for run in runs for name, answer in run.features.items() if answer.value}
    targets = [one.target for one in additions]
    return [_document(run, joined(run.target, targets, "target"), added) for run in runs]


def _document(run: RunStep, target: ResolvedValue[str], added: set[str]) -> JsonObject:
    return {
        "step": run.step,
        "target": target.value,
        "reason": target.reason,
        "computeId": run.compute_id.value,
        "features": {name: name in added or run.features.get(name, NO).value for name in FEATURES},
        "concurrentTrials": run.concurrent_trials.value,
    }


class Tags(NamedTuple):
    """The tags of a resource as written, and the reason for each that could not be read (`/environment`)."""

    written: ResolvedValue[JsonObject]
    gaps: Mapping[str, str] = MappingProxyType({})


#: Work of none of the kinds in the documents' training table.
NO_FEATURES: ResolvedValue[tuple[str, ...]] = ResolvedValue(())


class WorkloadDraft(NamedTuple):
    """The values from ARM about one piece of work; it is a single run if `runs` is empty."""

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

    A value that is not an object has no tags.
    """
    written: JsonObject = {}
    gaps: dict[str, str] = {}
    for place in places:
        tags = source.at(*place)
        if tags.reason:
            return Tags(ResolvedValue(reason=tags.reason))
        if isinstance(tags.value, dict):
            taken = {lowered(key) for key in written}
            written |= {key: value for key, value in tags.value.items() if not taken or lowered(key) not in taken}
        gaps |= source.gaps_under(*place)
    return Tags(ResolvedValue(written), gaps)


class Workload(NamedTuple):
    """A workload: what runs where, in the form that policies evaluate.

    Attributes:
        document: the workload as a JSON object; a field that cannot be decided is null.
        reported_id: the ARM id of the resource it derives from, or the declared id.
        unreadable: reason by JSON Pointer into `document`, for each field that cannot be decided.
        possible: the only values that such a field may turn out to have, where that is known.
    """

    document: JsonObject
    reported_id: str
    unreadable: dict[str, str]
    possible: dict[str, frozenset[object]]


def derived_workload(draft: WorkloadDraft, additions: Sequence[DeclaredWorkload]) -> Workload:
    """Return the workload of an ARM resource, with what is declared about it.

    A declared fact counts if ARM does not state it; if both state it and differ, the field is undecided. Features add
    up.
    Declared tags do not: a declaration must not loosen what the tags of a resource and its workspace decide.
    """
    source, arm_id = draft.source, draft.source.id
    workspace_id = find_workspace(arm_id)
    fields: dict[str, ResolvedValue[object]] = {
        "/purpose": draft.purpose,
        "/target": draft.target,
        "/features": _features(draft.features, additions),
        "/accelerator": draft.accelerator,
        "/memoryGiB": draft.memory_gib,
        "/computeId": draft.compute_id,
        **_list_stated_only(additions),
        "/workspaceId": ResolvedValue(workspace_id).or_reason("the id is in no workspace"),
    }
    if additions:
        fields["/purpose"] = joined(draft.purpose, [one.purpose for one in additions], "purpose")
        fields["/target"] = joined(draft.target, [one.target for one in additions], "target")
        fields["/accelerator"] = joined(draft.accelerator, [one.accelerator for one in additions], "accelerator")
    runs = draft.runs or (as_one_run(draft.target, draft.compute_id, draft.features),)
    return _workload(
        {
            "id": arm_id,
            "sourceType": source.body.get("type"),
            "workspaceId": workspace_id,
            "name": name_of(arm_id),
            "sourceId": arm_id,
            "runs": documents_of(runs, additions),
        },
        fields,
        draft.tags,
    )


def declared_workload(one: DeclaredWorkload, estate: ResourceLookup) -> Workload:
    """Return a declared workload without a resource; values that it does not state are undecided, never assumed."""
    source = estate.find(one.source_id) if one.source_id else None
    lost = bool(one.source_id) and source is None
    silent = "the declared workload does not state it"
    where = f"its source `{one.source_id}` is not in the snapshot" if lost else ""
    why = f"{silent} and {where}" if lost else silent
    workspace_id = one.workspace_id or find_workspace(one.source_id or "")
    fields: dict[str, ResolvedValue[object]] = {
        "/purpose": ResolvedValue(one.purpose).or_reason(why),
        "/target": ResolvedValue(one.target).or_reason(why),
        "/features": _features(NO_FEATURES, [one]),
        "/accelerator": ResolvedValue(one.accelerator).or_reason(why),
        "/memoryGiB": ABSENT,
        "/computeId": ResolvedValue(reason=where),
        "/workspaceId": ResolvedValue(workspace_id).or_reason("the declared workload names no workspace"),
        "/sourceId": ResolvedValue(one.source_id if source else None, where),
        **_list_stated_only([one]),
    }
    fixed = {
        "id": one.id,
        "sourceType": source.body.get("type") if source else None,
        "name": one.id,
        "runs": documents_of(
            [as_one_run(ResolvedValue(one.target).or_reason(why), ABSENT, ResolvedValue(one.features))], []
        ),
    }
    return _workload(fixed, fields, Tags(ResolvedValue(dict(one.tags))))


def _list_stated_only(additions: Sequence[DeclaredWorkload]) -> dict[str, ResolvedValue[object]]:
    """Return the fields that ARM has no word for."""
    if not additions:
        return {"/cadence": ABSENT, "/model/sizeGiB": ABSENT, "/model/memoryGiB": ABSENT}
    models = [one.model for one in additions if one.model]
    return {
        "/cadence": joined(ABSENT, [one.cadence for one in additions], "cadence"),
        "/model/sizeGiB": joined(ABSENT, [model.size_gib for model in models], "model size"),
        "/model/memoryGiB": joined(ABSENT, [model.memory_gib for model in models], "model memory"),
    }


def _features(known: ResolvedValue[tuple[str, ...]], additions: Sequence[DeclaredWorkload]) -> ResolvedValue[object]:
    if known.value is None:
        return undecided(known.reason)
    named = {*known.value, *(feature for one in additions for feature in one.features)}
    return ResolvedValue([feature for feature in FEATURES if feature in named])


def _workload(fixed: JsonObject, fields: dict[str, ResolvedValue[object]], tags: Tags) -> Workload:
    document: JsonObject = {"type": "workload", **fixed, "model": {}, "tags": tags.written.value}
    unreadable, possible = dict[str, str](), dict[str, frozenset[object]]()
    for pointer, (value, reason, _, among) in fields.items():
        parent, _, key = pointer[1:].rpartition("/")
        (document[parent] if parent else document)[key] = value
        if reason:
            unreadable[pointer] = reason
        if among:
            possible[pointer] = among
    if tags.written.reason:
        unreadable["/tags"] = tags.written.reason
    unreadable |= {f"/tags{pointer}": reason for pointer, reason in tags.gaps.items()}
    return Workload(document, str(fixed["id"]), dict(sorted(unreadable.items())), possible)
