"""The requirements for an approval of a VM series. `policies/lib/approvals.rego` is the same in Rego."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from policyeng.facts.catalogue import Facts
from policyeng.facts.computes import region_of
from policyeng.facts.ids import is_at_or_under, may_hold, segments, workspace_of
from policyeng.facts.times import moment as moment_of
from policyeng.facts.words import fold, squeeze
from policyeng.models import JsonObject, Unknown, lowered

_UNSCOPED = "a stated place of the workspace"
_UNPLACED = "a stated region of the nodes"
#: Requirements that an approval may miss because the value is not stated, and the unknown for each.
OPEN: Mapping[str, Unknown] = {
    _UNSCOPED: Unknown(msg="an approval is for a scope, and where the workspace lies is not stated", path="/id"),
    _UNPLACED: Unknown(
        msg="an approval names a region, and that of the nodes is not stated", path="/properties/computeLocation"
    ),
}


def needs_approval(series: str, facts: Facts, parameters: JsonObject) -> bool:
    """Return whether a table of the catalogue or a policy's parameter `extra_series` restricts a series.

    The vendor's table of today counts where the parameter `vendor_series` is true.
    """
    rows = [facts.series(series), facts.offered_series(series) if parameters["vendor_series"] is True else None]
    added = (row for name, row in parameters["extra_series"].items() if lowered(name) == lowered(series))
    return any(row.restriction == "approval" for row in rows if row) or any(row["restricted"] is True for row in added)


def lapse_of(approval: JsonObject) -> datetime | None:
    """Return the moment from which an approval is no longer active; None for one that does not lapse."""
    return moment_of(approval.get("expiresAt"))


def list_lapses(approval: JsonObject, moment: datetime) -> Iterator[str]:
    """Yield why an approval counts for nothing at a moment, in a fixed order; nothing if it is active."""
    granted, expires = moment_of(approval.get("grantedAt")), lapse_of(approval)
    if fold(approval.get("status")) != "granted":
        yield "not granted"
    if granted is not None and granted > moment:
        yield "not yet in force"
    if expires is not None and expires <= moment:
        yield "expired"


def lacking(approval: JsonObject, resource: JsonObject, workspace: JsonObject | None, as_of: datetime) -> Iterator[str]:
    """Yield why an approval does not count for a resource at a moment, in a fixed order; nothing when it does.

    The workspace of the resource, None when the snapshot lacks it, gives the region where nothing else does.
    An approval that lacks nothing but what is `OPEN` may count.
    """
    yield from list_lapses(approval, as_of)
    home = workspace_of(resource["id"])
    is_wide_enough = len(segments(approval["scope"]) or ()) in (2, 4, 8)
    if home and is_wide_enough and may_hold(approval["scope"], home):
        yield _UNSCOPED
    elif not (home and is_wide_enough and is_at_or_under(home, approval["scope"])):
        yield "another scope"
    if fold(approval.get("region")):
        place = region_of(resource, workspace)
        if place is None:
            yield _UNPLACED
        elif squeeze(approval["region"]) != place:
            yield "another region"


def counts(approval: JsonObject, resource: JsonObject, workspace: JsonObject | None, as_of: datetime) -> bool | None:
    """Return whether an approval counts for a resource at a moment; None if a value that decides it is not stated."""
    lacks = list(lacking(approval, resource, workspace, as_of))
    return None if may_count(lacks) else not lacks


def may_count(lacks: Sequence[str]) -> bool:
    """Return whether an approval lacks something, and all of it is `OPEN`."""
    return bool(lacks) and all(lack in OPEN for lack in lacks)
