"""Work on an isolated size that Azure is about to withdraw, or has withdrawn."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.computes import NodeSize, compute_regulated, kind_of, node_sizes
from policyeng.facts.retirements import retiring_nodes
from policyeng.facts.words import Regulated

_ML = "Microsoft.MachineLearningServices/workspaces"
_RETIRED, _RETIRING = "the isolated size is retired", "the isolated size is about to be retired"
_COMPUTE_TYPES = ["AmlCompute", "ComputeInstance", "VirtualMachine", "AKS"]
_REGULATED = ["regulated", "restricted", "confidential"]
_WORDS = {"type": "array", "items": {"type": "string", "pattern": r"\S"}, "default": _REGULATED}


def _standing(given: PolicyInput) -> Regulated:
    """Whether the nodes count, and why: pools of AKS when they back a regulated workspace, others without a reason."""
    if kind_of(given.resource) not in ("aks", "managedcluster"):
        return Regulated(True, "")
    snapshot, words = given.snapshot, given.parameters["regulated_classifications"]
    return compute_regulated(given.resource, given.workspace, snapshot.by_id, snapshot.by_host, words)


def _isolated(given: PolicyInput) -> list[NodeSize]:
    """Return the nodes of isolated sizes."""
    nodes = node_sizes(given.resource, given.snapshot.by_id) or []
    return [node for node in nodes if isinstance(node.size, str) and given.facts.is_isolated(node.size)]


@policy(
    id="AML-ISO-103",
    title="An isolated size in use is still offered",
    description='Of "the current isolated VM offerings" the vendor has since retired some and announced the end of '
    "others. Pools of AKS count when they back a regulated workspace. Sizes that are not isolated do not count.",
    related_resources=["https://learn.microsoft.com/azure/virtual-machines/sizes/retirement/retired-sizes-list"],
    severity="high",
    judges=[
        {"type": f"{_ML}/computes", "where": {"/properties/computeType": _COMPUTE_TYPES}},
        f"{_ML}/onlineEndpoints/deployments",
        "Microsoft.ContainerService/managedClusters",
    ],
    remediation="Move to an isolated size that stays, such as Standard_M128ms, before the date: recreate the compute "
    "(`az ml compute create --size Standard_M128ms ...`) and delete the old one.",
    source='001 "Compute isolation"; azure-retired-list',
    parameters={
        "regulated_classifications": {**_WORDS, "description": "values of `data-classification` that make it so"},
        "retirement_notice_days": {"type": "integer", "minimum": 0, "default": 180, "description": "days of notice"},
    },
    monotone_in={"parameter:retirement_notice_days": "higher"},
    refines=["AML-CMP-014"],
    since="0.1.0",
    applies=lambda given: bool(_isolated(given)) and _standing(given).decided is not False,
)
def offered_size(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny every isolated size that is retired, or retires within the notice."""
    standing = _standing(given)
    if standing.decided is None:
        yield Unknown(msg=standing.reason, path="workspace:/properties/hbiWorkspace")
        return
    because = {"because": standing.reason} if standing.reason else {}
    notice = given.parameters["retirement_notice_days"]
    for node in retiring_nodes(_isolated(given), given.facts, notice, given.as_of):
        message = _RETIRED if node.retirement.has_come(given.as_of) else _RETIRING
        actual = {**node.shown, **because}
        yield Denial(msg=message, path=node.path, actual=actual, expected="an isolated size that is still offered")
