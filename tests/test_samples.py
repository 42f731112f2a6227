"""The samples show what they are named for; the landing zone satisfies every policy that is on by default."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle
from policyeng.models import JsonObject, Outcome
from policyeng.sources import read_inputs

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
SAMPLE = Path(__file__).parents[1] / "samples" / "workspaces" / "landing-zone.json"
LOCKS = "Microsoft.Authorization/locks"


@pytest.fixture
def landing_zone() -> JsonObject:
    """The sample as a document that may be changed."""
    document: JsonObject = json.loads(SAMPLE.read_bytes())
    return document


def outcomes(bundle: Bundle, document: JsonObject) -> dict[tuple[str, str], str]:
    """The findings of a snapshot, which is read without a complaint."""
    inputs = read_inputs(["-"], stdin=json.dumps(document).encode())
    assert inputs.problems == ()
    evaluation = evaluate(bundle, inputs.snapshot, as_of=AS_OF)
    return {(one.policy, one.resource): one.outcome.value for one in evaluation.findings}


def test_the_landing_zone_fails_nothing_and_leaves_nothing_unknown(bundle: Bundle, landing_zone: JsonObject) -> None:
    """A closed hub with projects, and all that policies look for next to it."""
    found = outcomes(bundle, landing_zone)

    assert {key: outcome for key, outcome in found.items() if outcome != Outcome.PASS.value} == {}
    areas = Counter(policy.split("-")[1] for policy, _ in found)
    assert {"NET", "ENC", "DAT", "IDN", "CMP", "END", "REG", "JOB", "LOG", "GOV"} <= areas.keys()
    assert len({policy for policy, _ in found}) > 80


def test_the_landing_zone_is_a_hub_with_two_projects(landing_zone: JsonObject) -> None:
    """With a registry, endpoints, private endpoints, settings, locks, alerts and evidence."""
    kinds = Counter(one["type"].rpartition("/")[2] for one in landing_zone["resources"])
    workspaces = [one for one in landing_zone["resources"] if one["type"].endswith("/workspaces")]

    assert sorted(one["kind"] for one in workspaces) == ["Hub", "Project", "Project"]
    assert (kinds["metricAlerts"], kinds["privateDnsZoneGroups"], kinds["diagnosticSettings"]) == (5, 5, 5)
    assert landing_zone["evidence"]
    assert landing_zone["covers"] == sorted(landing_zone["covers"])


@pytest.mark.parametrize(("is_covered", "outcome"), [(True, "fail"), (False, "unknown")])
def test_covered_and_missing_resources_fail(
    bundle: Bundle, landing_zone: JsonObject, is_covered: bool, outcome: str
) -> None:
    """Without the lock, and without the statement that locks were read."""
    landing_zone["resources"] = [one for one in landing_zone["resources"] if one["type"] != LOCKS]
    if not is_covered:
        landing_zone["covers"] = [entry for entry in landing_zone["covers"] if not entry.startswith(LOCKS)]
    found = outcomes(bundle, landing_zone)

    assert {value for (policy, _), value in found.items() if policy == "AML-GOV-003"} == {outcome}
