"""A policy that divides by what it did not expect."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, policy


@policy(
    id="BROKEN-TOTAL-1",
    title="A cluster keeps at most a tenth of its nodes when it is idle",
    description="Broken on purpose: it divides by the largest number of nodes, which may be 0, and takes it to be a "
    "number, which nobody promises.",
    severity="low",
    judges=[
        {
            "type": "Microsoft.MachineLearningServices/workspaces/computes",
            "where": {"/properties/computeType": ["AmlCompute"]},
        }
    ],
    inspects=["/properties/properties/scaleSettings"],
    when_absent="pass",
    remediation="Lower `minNodeCount`.",
    source="a policy that breaks law 4",
    since="0.1.0",
)
def share_of_nodes(given: PolicyInput) -> Iterator[Denial]:
    """Deny a cluster that keeps more."""
    scale = given.resource.get("properties", {}).get("properties", {}).get("scaleSettings", {})
    share = scale.get("minNodeCount", 0) / scale.get("maxNodeCount", 1)
    if share > 0.1:
        path = "/properties/properties/scaleSettings/minNodeCount"
        yield Denial(msg="many nodes are kept", path=path, actual=share, expected="at most 0.1")
