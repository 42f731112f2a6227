"""A policy that depends on the order in which members of an object come."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, policy


@policy(
    id="BROKEN-ORDER-1",
    title="A workspace is tagged with its owner",
    description="Broken on purpose: it looks at the first tag alone, and members of a JSON object have no order.",
    severity="low",
    judges=["Microsoft.MachineLearningServices/workspaces"],
    inspects=["/tags"],
    when_absent="fail",
    remediation="Tag it.",
    source="a policy that breaks law 2",
    since="0.1.0",
)
def first_tag(given: PolicyInput) -> Iterator[Denial]:
    """Deny a workspace whose first tag is not its owner."""
    tags = given.resource.get("tags")
    first = next(iter(tags), None) if isinstance(tags, dict) else None
    if first != "owner":
        yield Denial(msg="no owner is named", path="/tags", actual=first, expected="owner")
