"""A snapshot as a place to look things up: resources by id, computes by whatever a job or deployment calls them."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping

from policyeng.facts import Facts
from policyeng.facts.computes import COMPUTE_TYPE
from policyeng.facts.ids import fold_id, workspace_of
from policyeng.frozen import field, frozen
from policyeng.models import Snapshot, lowered
from policyeng.named import NamedTuple
from policyeng.workloads.fields import Reader, reader
from policyeng.workloads.resolved import ResolvedValue, undecided

#: Names that stand for a target where a compute could be named.
RESERVED = ("serverless", "local")

#: The target of a compute, by its `computeType` in lower case.
TARGETS = {
    "amlcompute": "compute-cluster",
    "computeinstance": "compute-instance",
    "kubernetes": "kubernetes",
    "aks": "aks",
    "virtualmachine": "attached-vm",
    "databricks": "databricks",
    "datalakeanalytics": "data-lake-analytics",
    "hdinsight": "hdinsight",
    "synapsespark": "synapse-spark",
    "batch": "batch",
}
#: Wherever a reference to a compute can lead.
_PLACES = (*RESERVED, *TARGETS.values())


def find_workspace(arm_id: str) -> str | None:
    """Return the id of the workspace that an id lies in, spelled as there; None outside of a workspace."""
    folded = workspace_of(arm_id)
    return arm_id[: len(folded)] if folded else None


class Placement(NamedTuple):
    """Where work runs: the target and, where that is a compute of the snapshot, the compute."""

    target: ResolvedValue[str]
    compute: Reader | None = None


@frozen
class ResourceLookup:
    """The resources of a snapshot by id, None for one that went, with the facts to judge sizes by."""

    resources: MutableMapping[str, Reader | None]
    facts: Facts

    def find(self, arm_id: str) -> Reader | None:
        """Return the resource with this id, compared without case."""
        return self.resources.get(fold_id(arm_id))

    def of_types(self, arm_types: Iterable[str]) -> dict[str, list[Reader]]:
        """Return the resources of some types, given in lower case.

        In one walk, because few resources are of any of them.
        """
        found: dict[str, list[Reader]] = {arm_type: [] for arm_type in arm_types}
        for resource in self.resources.values():
            named = resource.body.get("type") if resource is not None else None
            if resource is not None and isinstance(named, str) and lowered(named) in found:
                found[lowered(named)].append(resource)
        return found

    def place(self, reference: ResolvedValue[str], workspace_id: str | None) -> Placement:
        """Return where a reference to a compute leads: an ARM id, `azureml:name`, or a name in the workspace.

        No reference and `serverless` are serverless compute, `local` is the submitter's machine. A pipeline expression
        and a name that the snapshot lacks are undecided.
        """
        if reference.value is None:
            return Placement(undecided(reference.reason) if reference.reason else ResolvedValue("serverless"))
        written = reference.value
        if "${{" in written:
            return Placement(undecided(f"the compute `{written}` is an expression", _PLACES))
        name = written[len("azureml:") :] if lowered(written).startswith("azureml:") else written
        arm_id = name if "/" in name else f"{workspace_id or ''}/computes/{name}"
        compute = self.find(arm_id)
        if compute and lowered(str(compute.body.get("type"))) == COMPUTE_TYPE:
            return Placement(_target(compute), compute)
        last = fold_id(arm_id).rpartition("/")[2]
        if last in RESERVED:
            return Placement(ResolvedValue(last))
        return Placement(undecided(f"the compute `{written}` is not in the snapshot", TARGETS.values()))


@frozen
class RecordingLookup(ResourceLookup):
    """An estate that remembers which ids were asked for, whether they are there or not."""

    asked: set[str] = field(default_factory=set)

    def find(self, arm_id: str) -> Reader | None:
        """Return the resource with this id, compared without case."""
        self.asked.add(fold_id(arm_id))
        return ResourceLookup.find(self, arm_id)


def build_estate(snapshot: Snapshot, facts: Facts) -> ResourceLookup:
    """Return the estate of a snapshot; of two resources with one id (which loading refuses) the last counts."""
    found: dict[str, Reader | None] = {}
    gaps = {fold_id(arm_id): pointers for arm_id, pointers in snapshot.unreadable.items()}
    said = {fold_id(arm_id): carried for arm_id, carried in snapshot.carried.items()}
    for body in snapshot.resources:
        arm_id = body.get("id")
        if isinstance(arm_id, str) and (key := fold_id(arm_id)):
            found[key] = reader(body, gaps.get(key, {}), said.get(key))
    return ResourceLookup(found, facts)


def _target(compute: Reader) -> ResolvedValue[str]:
    kind = compute.text("properties", "computeType").or_reason("its computeType is absent")
    target = TARGETS.get(lowered(kind.value or ""))
    if target:
        return ResolvedValue(target)
    why = kind.reason or f"the computeType `{kind.value}` is not a compute target"
    return undecided(f"compute `{compute.id}`: {why}")
