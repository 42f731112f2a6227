"""A policy in Python, which the stored audits contain, too."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, Unknown, policy


@policy(
    id="G-TAG-001",
    title="A workspace names its owner",
    severity="low",
    judges=["Microsoft.MachineLearningServices/workspaces"],
    inspects=["/tags/owner"],
    when_absent="fail",
    remediation="Set the tag `owner`.",
    since="0.1.0",
)
def owned(input: PolicyInput) -> Iterator[Denial | Unknown]:  # noqa: A002  # as policies name it
    """Deny a workspace without an owner."""
    tags = input.resource.get("tags") or {}
    if not str(tags.get("owner", "")).strip():
        yield Denial(msg="no owner is named", path="/tags/owner", actual=tags.get("owner"), expected="a name")
