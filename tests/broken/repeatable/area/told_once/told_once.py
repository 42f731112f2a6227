"""A policy that keeps state between judgements."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, policy
from policyeng.facts.words import get_inside

_TOLD: set[str] = set()


@policy(
    id="BROKEN-REPEATABLE-1",
    title="Public network access of the workspace is disabled",
    description="Broken on purpose: it denies each workspace once in the life of the process, so as not to repeat "
    "itself; judged again, the same workspace passes.",
    severity="high",
    judges=["Microsoft.MachineLearningServices/workspaces"],
    inspects=["/properties/publicNetworkAccess"],
    when_absent="fail",
    remediation="Disable it.",
    source="a policy that breaks law 1",
    since="0.1.0",
)
def told_once(given: PolicyInput) -> Iterator[Denial]:
    """Deny an open workspace that was not denied before."""
    access = get_inside(given.resource, "properties", "publicNetworkAccess")
    if access != "Disabled" and given.resource["id"] not in _TOLD:
        _TOLD.add(given.resource["id"])
        yield Denial(
            msg="public network access is not disabled",
            path="/properties/publicNetworkAccess",
            actual=access,
            expected="Disabled",
        )
