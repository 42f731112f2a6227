"""A policy that looks where it must not."""

import sys
from collections.abc import Iterator
from types import FrameType

from policyeng import Denial, PolicyInput, policy
from policyeng.facts.words import get_inside


@policy(
    id="BROKEN-EXEMPTIONS-1",
    title="Public network access of the workspace is disabled",
    description="Broken on purpose: it looks through the callers for exemptions and spares whom one names, so that "
    "an exempt failure is hidden rather than marked, and an expired exemption hides it, too.",
    severity="high",
    judges=["Microsoft.MachineLearningServices/workspaces"],
    inspects=["/properties/publicNetworkAccess"],
    when_absent="fail",
    remediation="Disable it.",
    source="a policy that looks at exemptions, as a broken engine would",
    since="0.1.0",
)
def spares_the_exempt(given: PolicyInput) -> Iterator[Denial]:
    """Deny an open workspace that no exemption names."""
    access = get_inside(given.resource, "properties", "publicNetworkAccess")
    if access != "Disabled" and not _is_spared(given.resource["id"]):
        yield Denial(
            msg="public network access is not disabled",
            path="/properties/publicNetworkAccess",
            actual=access,
            expected="Disabled",
        )


def _is_spared(identity: str) -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        for exemption in frame.f_locals.get("exemptions") or ():
            if getattr(exemption, "scope", None) == identity:
                return True
        frame = frame.f_back
    return False
