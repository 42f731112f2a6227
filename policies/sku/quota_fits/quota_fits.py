"""A workspace whose computes at full scale need more vCPUs than their quota allows."""

from collections.abc import Iterator, Mapping, Sequence

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.computes import managed
from policyeng.facts.ids import (
    is_at_or_under,
    is_open,
    may_hold,
    open_scopes,
    scopes_of,
    segments,
    with_open,
    workspace_of,
)
from policyeng.facts.quotas import Demand, FullScale, QuotaKey, demand_of, full_scale, quota_key
from policyeng.models import JsonObject

_ByScope = Mapping[tuple[str, QuotaKey], Sequence[JsonObject]]


def _scale(given: PolicyInput, scope: str) -> FullScale:
    """Return the cores of all computes at or under a scope at full scale."""
    return given.snapshot.once(("AML-SKU-105", scope), lambda: full_scale(_demands(given, scope)))


def _demands(given: PolicyInput, scope: str) -> Iterator[Demand]:
    by_id, by_scope = given.snapshot.by_id, given.snapshot.by_scope
    unplaced = given.snapshot.once(("AML-SKU-105", "open"), lambda: open_scopes(by_scope))
    for compute, workspace in managed(by_id, by_scope, with_open(scope, unplaced)):
        demand = demand_of(compute, workspace, given.facts)
        is_here = is_at_or_under(compute["id"], scope) or demand.vcpus == 0
        yield demand if is_here else demand._replace(vcpus=None)


def _quotas(given: PolicyInput) -> tuple[_ByScope, Mapping[tuple[QuotaKey, bool], Sequence[str]]]:
    """Return the quotas by scope, family and region, and the scopes with open places."""
    found: dict[tuple[str, QuotaKey], list[JsonObject]] = {}
    perhaps: dict[tuple[QuotaKey, bool], list[str]] = {}
    for quota in given.snapshot.quotas:
        scope, key = "/" + "/".join(segments(quota["scope"]) or ()), quota_key(quota["family"], quota["region"])
        found.setdefault((scope, key), []).append(quota)
        for is_open_place in (True, False) if is_open(scope) else (True,):
            perhaps.setdefault((key, is_open_place), []).append(scope)
    return found, perhaps


@policy(
    id="AML-SKU-105",
    title="Full scale fits the approved quota",
    description='"To use a restricted series, contact support and request a quota increase for the series." A quota is '
    "for one VM family and region and for all of its scope, so computes of other workspaces in the scope count too: "
    "clusters at their largest scale, instances also when stopped, and managed online deployments. Low-priority nodes "
    "take from the quota `lowPriorityCores`.",
    related_resources=["https://learn.microsoft.com/azure/machine-learning/how-to-manage-quotas"],
    severity="high",
    judges=["Microsoft.MachineLearningServices/workspaces"],
    remediation={
        "text": "Lower the largest scale of the clusters (`az ml compute update --name <cluster> --max-instances <n>`) "
        "or request more (Help + support > New support request > Service and subscription limits > Machine Learning) "
        "and state the new limit under `quotas` of the snapshot."
    },
    source='001 "Supported VM series and sizes"',
    since="0.1.0",
)
def quota_fits(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny each VM family and region whose quota is less than what the computes take at full scale."""
    place: str = given.resource["id"]
    scopes, home = scopes_of(place), workspace_of(place)
    own = _scale(given, home) if home else full_scale([])
    is_open_place = is_open(place)
    quotas, perhaps = given.snapshot.once(("AML-SKU-105", "quotas"), lambda: _quotas(given))
    if home is None or any(demand.quota is None for demand in own.undecided):
        yield Unknown(msg="the VM family or the region of a compute is not known")
    if given.snapshot.incomplete:
        yield Unknown(msg="the snapshot is incomplete: other computes may take from the same quota")
    for key in sorted({*own.vcpus, *(demand.quota for demand in own.undecided if demand.quota)}):
        limits = [(quota, _scale(given, scope)) for scope in scopes for quota in quotas.get((scope, key), ())]
        taken = ((scale.vcpus.get(key, 0), quota) for quota, scale in limits)
        if short := [(vcpus - quota["limitVCpus"], quota) for vcpus, quota in taken if vcpus > quota["limitVCpus"]]:
            excess, quota = max(short, key=lambda entry: entry[0])
            actual = {**quota, "vCPUs": quota["limitVCpus"] + excess}
            yield Denial(msg="full scale needs more vCPUs than the quota", actual=actual, expected="at most the limit")
        elif any(may_hold(scope, place) for scope in perhaps.get((key, is_open_place), ())):
            yield Unknown(msg=f"whether a quota of {key[0]} in {key[1]} counts, its place decides", path="/id")
        elif not limits:
            yield Unknown(msg=f"no quota is stated for the VM family {key[0]} in the region {key[1]}")
        elif any(demand.may_take_from(key) for _, scale in limits for demand in scale.undecided):
            yield Unknown(msg=f"the largest scale of some user of the quota of {key[0]} in {key[1]} is not stated")
