"""What no `cases.yaml` can test of the policies on access, cost and operations, such as an incomplete snapshot."""

from __future__ import annotations

from datetime import UTC, datetime

from policyeng import evaluate
from policyeng.bundle import Bundle
from policyeng.models import Finding, JsonObject, Snapshot

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
WORKSPACE: JsonObject = {
    "id": f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/ws",
    "type": "Microsoft.MachineLearningServices/workspaces",
    "properties": {},
}


def finding(bundle: Bundle, policy: str, **stated: object) -> Finding:
    """The only finding of one policy on a snapshot."""
    alone = bundle.only([one for one in bundle.policies if one.id == policy])
    (found,) = evaluate(alone, Snapshot.model_validate(stated), as_of=AS_OF).findings
    return found


def test_an_incomplete_snapshot_does_not_prove_that_there_is_no_budget(bundle: Bundle) -> None:
    """What the collector could not read may be a budget; what it read still counts."""
    budget = {
        "id": f"{GROUP}/providers/Microsoft.Consumption/budgets/b",
        "type": "Microsoft.Consumption/budgets",
        "properties": {"notifications": {"n": {"enabled": True}}},
    }

    def outcome(*resources: JsonObject, incomplete: tuple[str, ...]) -> str:
        return finding(bundle, "AML-COST-103", resources=resources, incomplete=incomplete).outcome.value

    assert outcome(WORKSPACE, incomplete=()) == "fail"
    assert outcome(WORKSPACE, incomplete=("budgets: forbidden",)) == "unknown"
    assert outcome(WORKSPACE, budget, incomplete=("roles: forbidden",)) == "pass"


def test_the_budgets_at_hand_are_named_with_what_they_lack(bundle: Bundle) -> None:
    """Budgets of other scopes are left out."""
    budgets = [
        {"id": f"{scope}/providers/Microsoft.Consumption/budgets/b", "type": "Microsoft.Consumption/budgets"}
        for scope in (GROUP, f"{GROUP}-2", "/providers/Microsoft.Billing/billingAccounts/1")
    ]

    found = finding(bundle, "AML-COST-103", resources=[WORKSPACE, *budgets])

    assert found.denials[0].actual == [
        {
            "budget": budgets[2]["id"],
            "lacks": ["an enabled notification", "a scope that surely covers it"],
        },
        {"budget": budgets[0]["id"], "lacks": ["an enabled notification"]},
    ]


def test_a_denial_names_the_smallest_reading_of_the_newest_moment(bundle: Bundle) -> None:
    """Two samples of one moment are two readings; the older ones are not named."""
    instance = {
        "id": f"{WORKSPACE['id']}/computes/ci",
        "type": "Microsoft.MachineLearningServices/workspaces/computes",
        "properties": {"computeType": "ComputeInstance"},
    }
    metrics = [
        {"resourceId": instance["id"], "name": "diskFreeBytes", "unit": "bytes", "to": to, "minimum": minimum}
        for to, minimum in (("2026-05-31T00:00:00Z", 7), ("2026-05-31T00:00:00Z", 9), ("2026-05-30T00:00:00Z", 1))
    ]

    found = finding(bundle, "AML-OPS-101", resources=[instance], metrics=metrics)

    assert [denial.actual for denial in found.denials] == [{"freeBytes": 7, "measured": "2026-05-31T00:00:00Z"}]
