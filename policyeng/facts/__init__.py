"""What policies know without being told: the VM catalogue, the algebra of permissions, and Azure ids as values."""

from policyeng.facts.catalogue import Facts, Retirement, Role, Source, VmSeries, VmSize
from policyeng.facts.ids import (
    covers,
    is_at_or_under,
    management_group_of,
    resource_group_of,
    scopes_of,
    segments,
    subscription_of,
    workspace_of,
)
from policyeng.facts.permissions import (
    COMPUTE_MANAGEMENT_ACTIONS,
    action_matches,
    covered,
    grants,
    manages_compute,
)

__all__ = [
    "COMPUTE_MANAGEMENT_ACTIONS",
    "Facts",
    "Retirement",
    "Role",
    "Source",
    "VmSeries",
    "VmSize",
    "action_matches",
    "covered",
    "covers",
    "grants",
    "is_at_or_under",
    "management_group_of",
    "manages_compute",
    "resource_group_of",
    "scopes_of",
    "segments",
    "subscription_of",
    "workspace_of",
]
