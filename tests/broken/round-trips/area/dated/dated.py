"""A policy that says what JSON cannot carry."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, policy
from policyeng.facts.words import inside


@policy(
    id="BROKEN-ROUND-TRIPS-1",
    title="Public network access of the workspace is disabled",
    description="Broken on purpose: what it shows is a moment, not the text of one; in a report it becomes text, and "
    "the report that is read back is not the evaluation that was written.",
    severity="high",
    judges=["Microsoft.MachineLearningServices/workspaces"],
    inspects=["/properties/publicNetworkAccess"],
    when_absent="fail",
    remediation="Disable it.",
    source="a policy that breaks law 7",
    since="0.1.0",
)
def dated(given: PolicyInput) -> Iterator[Denial]:
    """Deny an open workspace and say since when that is known."""
    access = inside(given.resource, "properties", "publicNetworkAccess")
    if access != "Disabled":
        yield Denial(
            msg="public network access is not disabled",
            path="/properties/publicNetworkAccess",
            actual={"access": access, "seen": given.as_of},
            expected="Disabled",
        )
