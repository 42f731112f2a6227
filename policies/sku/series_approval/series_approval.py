"""The twin of `series_approval.rego`, which is in force; the suite proves that they agree."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.approvals import OPEN, lacking, may_count, needs_approval
from policyeng.facts.computes import find_size, own_size
from policyeng.models import lowered

_MESSAGE = "the series needs an approval that is in force here"
_RETIRED = "the size is retired, so its series can no longer be requested"
_EXPECTED = "an approval of the series: granted, in force, at or above the workspace, for the region"


def _applies(given: PolicyInput) -> bool:
    return own_size(given.resource) is not None


@policy(applies=_applies)
def series_approval(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny a restricted series without a granted approval that is in force here."""
    own, size = own_size(given.resource), find_size(given.resource, given.facts)
    path = own.path if own else ""
    if size is None:
        yield Unknown(msg="the size is not in the catalogue, so its series is not known", path=path)
        return
    series = size.series
    if not needs_approval(series, given.facts, given.parameters):
        return
    of_series = [given.snapshot.approvals[position] for position in given.snapshot.by_series.get(lowered(series), ())]
    asked = (given.resource, given.workspace, given.as_of)
    near = [{"id": approval["id"], "lacks": list(lacking(approval, *asked))} for approval in of_series]
    if not all(approval["lacks"] for approval in near):
        return
    lost = {lack for approval in near if may_count(approval["lacks"]) for lack in approval["lacks"]}
    yield from (OPEN[lack] for lack in lost)
    if lost:
        return
    retirement = given.facts.retirement(size.name)
    if retirement is None or not retirement.has_come(given.as_of):
        actual = {"series": series, "approvals": near}
        yield Denial(msg=_MESSAGE, path=path, actual=actual, expected=_EXPECTED)
        return
    retired = {"size": own.size if own else None, "series": series, "retired on": retirement.date.isoformat()}
    successor = f"a size of the series {retirement.move_to}" if retirement.move_to else "a size that is still offered"
    yield Denial(msg=_RETIRED, path=path, actual={**retired, "approvals": near}, expected={"move to": successor})
