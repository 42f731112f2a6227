"""A compute names a cluster of its own subscription; ids are compared letter by letter."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, policy
from policyeng.facts.words import get_inside


@policy(
    id="BROKEN-INSENSITIVE-002",
    title="A compute runs on a resource of its own subscription",
    description="Broken: the ids are compared as they are written, and Azure writes one id in several ways.",
    severity="medium",
    judges=["Microsoft.MachineLearningServices/workspaces/computes"],
    inspects=["/id", "/properties/resourceId"],
    when_absent={"/id": "not_judged", "/properties/resourceId": "pass"},
    remediation="Attach a resource of the same subscription.",
)
def named_host(given: PolicyInput) -> Iterator[Denial]:
    """Deny a host whose id begins otherwise than that of the compute."""
    host, own = get_inside(given.resource, "properties", "resourceId"), given.resource["id"]
    if isinstance(host, str) and host.split("/")[:3] != own.split("/")[:3]:
        yield Denial(msg="the host is in another subscription", path="/properties/resourceId", actual=host)
