"""Workspaces whose computes would not fit the quota in the region of their twin."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.computes import kind_of
from policyeng.facts.ids import fold_id, is_at_or_under
from policyeng.facts.quotas import FullScale, QuotaKey, demand_of, full_scale, quota_key
from policyeng.facts.words import fold, squeeze, stage, tag
from policyeng.models import WORKSPACE_TYPE, JsonObject

COMPUTE_TYPE = f"{WORKSPACE_TYPE}/computes"


def _applies(given: PolicyInput) -> bool:
    home = given.resource
    if _is_project(home) or stage(home, None).name != "production":
        return False
    certain, perhaps = _twins(given, home)
    return bool(certain or perhaps)


@policy(
    id="AML-DR-004",
    title="Quota would carry the fail-over",
    description="A twin helps only where its region has quota for the computes of the workspace; in a failure of a "
    "region, everybody asks for more. Clusters count at their largest scale and an instance as one node, for each VM "
    "family.",
    related_resources=["https://learn.microsoft.com/azure/machine-learning/how-to-manage-quotas"],
    severity="low",
    judges=["Microsoft.MachineLearningServices/workspaces"],
    remediation="Request quota in the region of the twin (Help + support > New support request > Service and "
    "subscription limits > Machine Learning) and state the new limit under `quotas` of the snapshot.",
    source="DR-04",
    parameters={
        "pair_tag": {
            "type": "string",
            "pattern": r"\S",
            "default": "dr-group",
            "description": "the tag that twins share",
        }
    },
    since="0.2.0",
    applies=_applies,
)
def twin_quota(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny a workspace of production whose computes no twin has quota for."""
    home = given.resource
    certain, perhaps = _twins(given, home)
    if given.snapshot.incomplete:
        yield Unknown(msg="the snapshot is incomplete: more computes or twins may exist", path="/id")
        return
    scale = _scale(given, home)
    short = [list(_short(given, twin, scale)) for twin in certain]
    doubts = [list(_doubts(given, twin, scale)) for twin, less in zip(certain, short, strict=True) if not less]
    if [] in doubts:
        return
    yield from dict.fromkeys(chain.from_iterable(doubts))
    if perhaps:
        yield Unknown(msg="the tag or the region of what may be a twin cannot be read", path="/id")
    elif not doubts:
        yield Denial(
            msg="the computes need more vCPUs than the quota of the twin's region",
            path="/id",
            actual={
                "short": [
                    {"family": family, "region": twin["location"], "vCPUs": vcpus, "limitVCpus": limit}
                    for twin, lacking in zip(certain, short, strict=True)
                    for family, vcpus, limit in lacking
                ],
                "because": stage(home, None).reason,
            },
            expected="at most the limit",
        )


def _is_project(workspace: JsonObject) -> bool:
    return fold(workspace.get("kind")) == "project"


def _twins(given: PolicyInput, home: JsonObject) -> tuple[Sequence[JsonObject], Sequence[JsonObject]]:
    """Return the twins of the workspace, and the workspaces that may be twins."""
    name = given.parameters["pair_tag"]
    key = tag(home, name)
    if not isinstance(key, str):
        return (), ()
    grouped = given.snapshot.once(("AML-DR-004", name), lambda: _group(name, given))
    others = [one for one in grouped[fold(key)] if fold_id(one["id"]) != fold_id(home["id"])]
    here = squeeze(home.get("location"))
    certain = [one for one in others if here and squeeze(one.get("location")) not in (None, here)]
    perhaps = [one for one in others if not here or squeeze(one.get("location")) is None]
    return certain, [*perhaps, *grouped.get(None, ())]


def _group(name: str, given: PolicyInput) -> Mapping[str | None, Sequence[JsonObject]]:
    """Return the workspaces with the tag by its value for comparing; None for a value that is not text."""
    found: dict[str | None, list[JsonObject]] = {}
    for workspace in given.snapshot.by_type[WORKSPACE_TYPE]:
        value = tag(workspace, name)
        if value is not None and not _is_project(workspace):
            found.setdefault(fold(value), []).append(workspace)
    return found


def _scale(given: PolicyInput, home: JsonObject) -> FullScale:
    """Return the vCPUs of the clusters and instances of the workspace at full scale."""
    ids = given.snapshot.by_scope.get(fold_id(home["id"]), {}).get(COMPUTE_TYPE, ())
    computes = (given.snapshot.by_id[arm_id] for arm_id in ids)
    return full_scale(
        demand_of(compute, home, given.facts)
        for compute in computes
        if kind_of(compute) in ("amlcompute", "computeinstance")
    )


def _limits(given: PolicyInput, twin: JsonObject, family: str) -> Sequence[int]:
    """Return the quotas of a family that are stated for the region and a scope of a twin."""
    quotas = given.snapshot.once(("AML-DR-004", "quotas"), lambda: _quotas(given))
    key = quota_key(family, str(twin["location"]))
    return [limit for scope, limit in quotas.get(key, ()) if is_at_or_under(twin["id"], scope)]


def _quotas(given: PolicyInput) -> Mapping[QuotaKey, Sequence[tuple[str, int]]]:
    found: dict[QuotaKey, list[tuple[str, int]]] = {}
    for quota in given.snapshot.quotas:
        key = quota_key(quota["family"], quota["region"])
        found.setdefault(key, []).append((quota["scope"], quota["limitVCpus"]))
    return found


def _vcpus(scale: FullScale) -> Mapping[str, int]:
    """Return the vCPUs by family, of all regions together."""
    found: dict[str, int] = {}
    for (family, _), vcpus in sorted(scale.vcpus.items()):
        found[family] = found.get(family, 0) + vcpus
    return found


def _short(given: PolicyInput, twin: JsonObject, scale: FullScale) -> Iterator[tuple[str, int, int]]:
    """Yield the families whose quota is less than what the computes take, the vCPUs and the quota."""
    for family, vcpus in _vcpus(scale).items():
        limits = _limits(given, twin, family)
        if limits and vcpus > min(limits):
            yield family, vcpus, min(limits)


def _doubts(given: PolicyInput, twin: JsonObject, scale: FullScale) -> Iterator[Unknown]:
    """Yield why it cannot be decided whether a quota is enough."""
    for family in _vcpus(scale):
        if not _limits(given, twin, family):
            yield Unknown(msg=f"no quota of {family} is stated for the region of a twin", path="/id")
    if scale.undecided:
        yield Unknown(msg="the VM family or the largest scale of a compute is not known", path="/id")
