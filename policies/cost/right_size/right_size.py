"""Computes whose next smaller size would do."""

from collections.abc import Iterator, Mapping, Sequence

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.computes import NodeSize, node_sizes
from policyeng.facts.siblings import is_retired, smaller_siblings
from policyeng.facts.usage import UTILIZATIONS, samples_of, usages_of
from policyeng.facts.words import regulated
from policyeng.models import JsonObject, lowered

_PERCENT = {"type": "number", "minimum": 0, "maximum": 100, "default": 40}
_DAYS = {"type": "number", "minimum": 0, "maximum": 3650, "default": 14}
_REGULATED = ["regulated", "restricted", "confidential"]
_TAGS = {"type": "array", "items": {"type": "string", "pattern": r"\S"}, "default": _REGULATED}
_COMPUTES = {"/properties/computeType": ["AmlCompute", "ComputeInstance", "AKS", "VirtualMachine"]}


def _samples(given: PolicyInput) -> Mapping[str, Sequence[JsonObject]]:
    return samples_of(given.resource, given.snapshot.metrics, given.snapshot.by_measured, given.as_of)


@policy(
    id="AML-COST-104",
    title="Compute is as large as its use",
    description='"Regularly assess and adjust your resource sizes to match actual demand." A compute is checked by '
    "what the snapshot's metrics state of its CPU, memory and, where it has any, GPUs. Their samples must cover "
    "`rightsizing_days` without a gap up to the end of the last one, whenever that was; what ends after the moment of "
    "evaluation does not count. A size that is retired is named only where the series offers no other. A regulated "
    "compute on an isolated size is only sent to another isolated one.",
    related_resources=["https://learn.microsoft.com/azure/advisor/advisor-cost-recommendations"],
    severity="low",
    judges=[{"type": "Microsoft.MachineLearningServices/workspaces/computes", "where": _COMPUTES}],
    remediation="Recreate the compute on the smaller size that the denial names (`az ml compute create --size <size> "
    "...`) and delete the old one; resize an attached machine with `az vm resize --ids <id> --size <size>`.",
    source='002 "Pricing Models and Cost Optimization Strategies"',
    parameters={
        "rightsizing_threshold": {**_PERCENT, "description": "the percentage below which every p95 calls for less"},
        "rightsizing_days": {**_DAYS, "description": "how many days the samples have to cover"},
        "regulated_classifications": {**_TAGS, "description": "values of `data-classification` that make it regulated"},
    },
    monotone_in={"parameter:rightsizing_threshold": "higher", "parameter:rightsizing_days": "lower"},
    since="0.1.0",
    applies=lambda given: any(lowered(name) in _samples(given) for name in UTILIZATIONS),
)
def right_size(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny a size when everything that is measured stays under the threshold and a smaller one is offered."""
    node = [NodeSize("/properties/properties", None), *(node_sizes(given.resource, given.snapshot.by_id) or [])][-1]
    size = given.facts.size(node.size) if isinstance(node.size, str) else None
    if size is None:
        yield Unknown(msg="the size is not stated, or not in the catalogue", path=node.path)
        return
    usages = usages_of(_samples(given), size, given.parameters["rightsizing_days"])
    isolated = given.facts.is_isolated(size.name)
    standing = regulated(given.resource, given.workspace, given.parameters["regulated_classifications"])
    because = {"because": standing.reason} if isolated and standing.decided else {}
    siblings = [other.name for other in smaller_siblings(given.facts, size.name, given.as_of)]
    smaller = [name for name in siblings if not because or given.facts.is_isolated(name)]
    threshold = given.parameters["rightsizing_threshold"]
    if not smaller or any(use.p95 is not None and use.p95 >= threshold for use in usages.values()):
        return
    unknowns = [Unknown(msg=f"{name}: {use.reason}", path=node.path) for name, use in usages.items() if use.reason]
    if isolated and standing.decided is None:
        unknowns.append(Unknown(msg=standing.reason, path="workspace:/properties/hbiWorkspace"))
    yield from unknowns
    if not unknowns:
        actual = {"size": size.name, **{name: use.p95 for name, use in usages.items()}, **because}
        retired = is_retired(given.facts, smaller[0], given.as_of)
        expected = f"{smaller[0]}, or as small a size of another series: it is retired" if retired else smaller[0]
        yield Denial(msg="a smaller size would do", path=node.path, actual=actual, expected=expected)
