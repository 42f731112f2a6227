"""Nodes of a VM size that Azure is about to withdraw, or has withdrawn."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.computes import cluster_of, node_sizes
from policyeng.facts.retirements import retiring_nodes

_ML = "Microsoft.MachineLearningServices/workspaces"
_COMPUTE_TYPES = ["AmlCompute", "ComputeInstance", "VirtualMachine", "AKS", "Kubernetes"]
_RETIRED, _RETIRING = "the VM size is retired", "the VM size is about to be retired"


def _applies(given: PolicyInput) -> bool:
    """Return whether the nodes are evaluated here: those of a managed cluster in the snapshot are evaluated there."""
    nodes = node_sizes(given.resource, given.snapshot.by_id)
    return nodes is not None and (bool(nodes) or cluster_of(given.resource, given.snapshot.by_id) is None)


@policy(
    id="AML-CMP-014",
    title="No VM series in use is retired or about to be",
    description="On the day that Azure retires a VM series its machines are stopped, and what runs on them ends. The "
    "size of every node counts. AML-SKU-103 reports sizes that the catalogue does not know.",
    related_resources=["https://learn.microsoft.com/azure/virtual-machines/sizes/retirement/retired-sizes-list"],
    severity="high",
    judges=[
        {"type": f"{_ML}/computes", "where": {"/properties/computeType": _COMPUTE_TYPES}},
        f"{_ML}/onlineEndpoints/deployments",
        "Microsoft.ContainerService/managedClusters",
    ],
    remediation="Move to a current series before the date: recreate the compute (`az ml compute create --size ...`), "
    "and delete the old one.",
    source="CMP-14; azure-retired-list",
    parameters={
        "retirement_notice_days": {"type": "integer", "minimum": 0, "default": 180, "description": "days of notice"},
    },
    monotone_in={"parameter:retirement_notice_days": "higher"},
    since="0.2.0",
    applies=_applies,
)
def current_series(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny every size that is retired, or retires within the notice."""
    nodes = node_sizes(given.resource, given.snapshot.by_id) or []
    if not nodes:
        yield Unknown(msg="what states the size is not in the snapshot", path="/properties/resourceId")
    for node in nodes:
        if not isinstance(node.size, str) or not node.size.strip():
            yield Unknown(msg="the VM size is missing or not text", path=node.path)
    for node in retiring_nodes(nodes, given.facts, given.parameters["retirement_notice_days"], given.as_of):
        message = _RETIRED if node.retirement.has_come(given.as_of) else _RETIRING
        yield Denial(msg=message, path=node.path, actual=node.shown, expected="a size of a current series")
