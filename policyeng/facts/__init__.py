"""What policies know without being told: the VM catalogue, the algebra of permissions, and Azure ids as values."""

from policyeng.facts.catalogue import Facts, Retirement, Role, Source, VmSeries, VmSize
from policyeng.facts.ids import (
    covers,
    is_at_or_under,
    resource_group_of,
    scopes_of,
    segments,
    subscription_of,
    workspace_of,
)
from policyeng.facts.permissions import action_matches, covered, granted

__all__ = [
    "Facts",
    "Retirement",
    "Role",
    "Source",
    "VmSeries",
    "VmSize",
    "action_matches",
    "covered",
    "covers",
    "granted",
    "is_at_or_under",
    "resource_group_of",
    "scopes_of",
    "segments",
    "subscription_of",
    "workspace_of",
]
