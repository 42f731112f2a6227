"""The twin of `series_approval.rego`, which is in force; the suite proves that they agree."""

from collections.abc import Iterator
from datetime import datetime

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts import is_at_or_under, segments, workspace_of
from policyeng.facts.computes import own_size
from policyeng.facts.words import folded, inside
from policyeng.models import JsonObject, lowered

_MESSAGE = "the series needs an approval that is in force here"
_EXPECTED = "an approval of the series: granted, in force, at or above the workspace, for the region"


def _series(given: PolicyInput) -> str | None:
    """The series of the size, as the catalogue spells it; None when the catalogue does not know the size."""
    own = own_size(given.resource)
    size = given.facts.size(own.size) if own and isinstance(own.size, str) else None
    return size.series if size else None


def _needs_approval(given: PolicyInput, series: str) -> bool:
    row = given.facts.series(series)
    extra = given.parameters["extra_series"]
    added = any(lowered(name) == lowered(series) and more["restricted"] is True for name, more in extra.items())
    return added or (row is not None and row.restriction == "approval")


def _applies(given: PolicyInput) -> bool:
    return own_size(given.resource) is not None


def _moment(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) and folded(text) else None


def _region(place: object) -> str:
    return (folded(place) or "").replace(" ", "")


def _lacks(approval: JsonObject, given: PolicyInput) -> Iterator[str]:
    """Why an approval does not count; nothing when it does."""
    granted, expires = _moment(approval.get("grantedAt")), _moment(approval.get("expiresAt"))
    workspace = workspace_of(given.resource["id"])
    if folded(approval.get("status")) != "granted":
        yield "not granted"
    if granted is not None and granted > given.as_of:
        yield "not yet in force"
    if expires is not None and expires <= given.as_of:
        yield "expired"
    wide_enough = len(segments(approval["scope"]) or ()) in (2, 4, 8)
    if not (workspace and wide_enough and is_at_or_under(workspace, approval["scope"])):
        yield "another scope"
    here = folded(given.resource.get("location")) or folded(inside(given.workspace, "location"))
    if folded(approval.get("region")) and _region(approval["region"]) != _region(here):
        yield "another region"


@policy(applies=_applies)
def series_approval(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny a restricted series without a granted approval that is in force here."""
    own, series = own_size(given.resource), _series(given)
    path = own.path if own else ""
    if series is None:
        yield Unknown(msg="the size is not in the catalogue, so its series is not known", path=path)
        return
    if not _needs_approval(given, series):
        return
    of_series = [given.snapshot.approvals[position] for position in given.snapshot.by_series.get(lowered(series), ())]
    near = [{"id": approval["id"], "lacks": list(_lacks(approval, given))} for approval in of_series]
    if all(approval["lacks"] for approval in near):
        actual = {"series": series, "approvals": near}
        yield Denial(msg=_MESSAGE, path=path, actual=actual, expected=_EXPECTED)
