"""What the policies that are on by default find out about a workspace and its computes alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from policyeng import evaluate, load_bundle
from policyeng.bundle.cases import baselines_of
from policyeng.models import JsonObject, Outcome
from policyeng.sources import read_inputs

BUNDLE = load_bundle()
BASELINES = baselines_of(BUNDLE).resources
AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
#: What they look up besides the workspace, and a lone workspace does not have.
SURROUNDINGS = {
    *(f"AML-LOG-{number:03}" for number in (1, 5, 6, 7, 9, 10)),
    *(f"AML-GOV-{number:03}" for number in (3, 6, 7, 8)),
    "AML-NET-010",
}


def outcomes(*stems: str, **stated: object) -> dict[Outcome, set[str]]:
    """The policies about logs, governance, recovery and dependencies by the outcome for the workspace."""
    resources: list[JsonObject] = [BASELINES[stem] for stem in stems]
    document = json.dumps({"snapshotVersion": 1, "resources": resources, **stated}).encode()
    found: dict[Outcome, set[str]] = {}
    for finding in evaluate(BUNDLE, read_inputs(["-"], stdin=document).snapshot, as_of=AS_OF).findings:
        if finding.resource == BASELINES["workspace"]["id"]:
            found.setdefault(finding.outcome, set()).add(finding.policy)
    return found


def test_a_lone_workspace_fails_nothing_that_was_not_required() -> None:
    """What surrounds it is unknown, and only that; nothing is stated about twins or mandated sinks."""
    found = outcomes("workspace", "compute_cluster", "compute_instance", quotas=[])
    about = {policy for policies in found.values() for policy in policies}

    assert found[Outcome.UNKNOWN] - {"AML-SKU-105"} == SURROUNDINGS
    assert found[Outcome.FAIL] == {"AML-COST-103"}
    assert not {
        policy for policy in about if policy.startswith(("AML-DR-", "AML-LOG-002", "AML-LOG-003", "AML-LOG-004"))
    }


def test_what_was_read_fails() -> None:
    """The same workspace fails where the lists were read and have nothing."""
    root = "/subscriptions/11111111-1111-1111-1111-111111111111"
    kinds = ("Insights/diagnosticSettings", "Insights/metricAlerts", "Authorization/locks", "Security/pricings")
    covers = [f"Microsoft.{kind} at {root}" for kind in kinds]
    found = outcomes("workspace", covers=covers)

    assert found[Outcome.FAIL] >= SURROUNDINGS - {"AML-GOV-006", "AML-GOV-007", "AML-GOV-008", "AML-NET-010"}
