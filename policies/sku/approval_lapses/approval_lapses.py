"""An approval of a restricted series that is about to lapse while computes rely on it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.approvals import counts, lapse_of, list_lapses, needs_approval
from policyeng.facts.computes import find_size, managed
from policyeng.facts.ids import open_scopes, with_open
from policyeng.facts.words import fold, trim
from policyeng.models import JsonObject, lowered

_TEXT, _NEEDED = {"type": "string", "pattern": r"\S"}, ["category", "restricted", "source"]
_KINDS = {"type": "array", "items": {"type": "string", "enum": ["cluster", "instance"]}}
_ROW = {"category": _TEXT, "restricted": {"type": "boolean"}, "source": _TEXT, "supported_by": _KINDS}
_ROWS = {"type": "object", "required": _NEEDED, "properties": _ROW, "additionalProperties": False}
_User = tuple[JsonObject, JsonObject | None]  # a compute and its workspace


def _by_series(given: PolicyInput, scope: str) -> Mapping[str, Sequence[_User]]:
    """Return the computes at or under a scope that need an approval, by series in lower case."""
    found: dict[str, list[_User]] = {}
    unplaced = given.snapshot.once(("AML-SKU-106", "open"), lambda: open_scopes(given.snapshot.by_scope))
    for compute, workspace in managed(given.snapshot.by_id, given.snapshot.by_scope, with_open(scope, unplaced)):
        size = find_size(compute, given.facts)
        if size is not None and needs_approval(size.series, given.facts, given.parameters):
            found.setdefault(lowered(size.series), []).append((compute, workspace))
    return found


def _relying(given: PolicyInput) -> Iterator[tuple[_User, bool]]:
    """Return the computes that the approval counts for at as-of, or may count for, and whether that is certain."""
    approval = given.resource
    if fold(approval["kind"]) != "vmseries" or any(list_lapses(approval, given.as_of)):
        return
    users = given.snapshot.once(("AML-SKU-106", approval["scope"]), lambda: _by_series(given, approval["scope"]))
    for user in users.get(lowered(trim(approval["series"])), ()):
        if (relies := counts(approval, *user, given.as_of)) is not False:
            yield user, relies is True


def _left(given: PolicyInput, moment: datetime) -> list[tuple[str, bool]]:
    """Return the computes that no approval covers once this one lapses, and whether that is certain."""
    of_series = given.snapshot.by_series[lowered(trim(given.resource["series"]))]
    heirs = [heir for at in of_series if not any(list_lapses(heir := given.snapshot.approvals[at], moment))]
    bound = [(user, relies, [counts(heir, *user, moment) for heir in heirs]) for user, relies in _relying(given)]
    return [(user[0]["id"], relies and None not in takes) for user, relies, takes in bound if True not in takes]


@policy(
    id="AML-SKU-106",
    title="No approval is about to lapse under running compute",
    description='"Some VM series are restricted. To use a restricted series, contact support and request a quota '
    'increase for the series." An approval is in use while AML-SKU-101 accepts it for a cluster, an instance (also a '
    "stopped one) or a managed deployment. It may lapse where another approval takes over at that moment.",
    related_resources=["https://learn.microsoft.com/azure/machine-learning/how-to-manage-quotas"],
    severity="low",
    judges=["approval"],
    remediation="Renew the approval with who granted it and state the new `expiresAt` in `approvals` of the snapshot, "
    "or move the computes to a series without restriction (`az ml compute create --size <size> ...`) before then.",
    source='001 "Supported VM series and sizes"',
    parameters={
        "approval_notice_days": {"type": "integer", "minimum": 0, "default": 30, "description": "days before the end"},
        "extra_series": {
            "type": "object",
            "additionalProperties": _ROWS,
            "default": {},
            "description": "further series",
        },
        "vendor_series": {
            "type": "boolean",
            "default": True,
            "description": "whether the series that the vendor lists today (`facts/offered_series`) count",
        },
    },
    monotone_in={"parameter:approval_notice_days": "higher"},
    since="0.1.0",
    applies=lambda given: any(True for _ in _relying(given)),
)
def approval_lapses(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny an end within the notice that leaves a compute without an approval."""
    lapse, days = lapse_of(given.resource), given.parameters["approval_notice_days"]
    left = _left(given, lapse) if lapse and (lapse - given.as_of) / timedelta(days=1) <= days else []
    if surely := [compute for compute, is_sure in left if is_sure]:
        actual = {"expiresAt": given.resource["expiresAt"], "computes": len(surely), "first": surely[0]}
        expected = "an end after the notice, or an approval that takes over"
        yield Denial(msg="the approval is about to lapse", path="/expiresAt", actual=actual, expected=expected)
    elif left:
        yield Unknown(msg="the approval is about to lapse; where a compute lies is not stated", path="/expiresAt")
