"""Broken on purpose: what it says depends on the directory that it is asked from."""

from collections.abc import Iterator
from pathlib import Path

from policyeng import Denial, PolicyInput, policy


@policy(
    id="BROKEN-PATHS",
    title="Public network access of the workspace is stated",
    description="Broken on purpose: it is lenient where a developer works, in a directory with a `pyproject.toml`.",
    severity="medium",
    judges=["Microsoft.MachineLearningServices/workspaces"],
    inspects=["/properties/publicNetworkAccess"],
    when_absent="fail",
    remediation="State it: `az ml workspace update --public-network-access Disabled`.",
    source="a bundle of broken policies",
    since="0.1.0",
)
def public_access(given: PolicyInput) -> Iterator[Denial]:
    """Deny a workspace that does not state it, unless somebody is at work on it here."""
    path = "/properties/publicNetworkAccess"
    properties = given.resource.get("properties")
    stated = properties.get("publicNetworkAccess") if isinstance(properties, dict) else None
    if stated != "Disabled" and not Path("pyproject.toml").exists():
        yield Denial(msg="public network access is not disabled", path=path, actual=stated, expected="Disabled")
