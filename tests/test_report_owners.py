"""Whose a resource is."""

from __future__ import annotations

import pytest

from policyeng.bundle import load_bundle
from policyeng.models import DeclaredWorkload, Snapshot
from policyeng.report.context import kinds_of, owners_of
from tests.report_samples import CLUSTER, WORKSPACE

SNAPSHOT = Snapshot(
    resources=(
        {"id": WORKSPACE, "type": "w", "tags": {"Owner": " ml-platform ", "team": "platform"}},
        {"id": f"{WORKSPACE}/onlineEndpoints/e", "type": "e", "tags": {"owner": "scoring"}},
        {"id": CLUSTER, "type": "c", "tags": {"owner": ""}},
        {"id": f"{WORKSPACE}/jobs/j", "type": "j", "tags": "none"},
    ),
    workloads=(
        DeclaredWorkload(id="nightly", workspace_id=WORKSPACE),
        DeclaredWorkload(id="Mine", workspace_id=WORKSPACE, tags={"OWNER": "me"}),
    ),
)


@pytest.mark.parametrize(
    ("resource", "owner"),
    [
        (WORKSPACE.upper(), "ml-platform"),
        (CLUSTER, "ml-platform"),
        (f"{WORKSPACE}/jobs/j", "ml-platform"),
        (f"{WORKSPACE}/onlineEndpoints/e", "scoring"),
        (f"{WORKSPACE}/onlineEndpoints/e/deployments/blue", "scoring"),
        ("nightly", "ml-platform"),
        ("mine", "me"),
        (f"{WORKSPACE}-2", ""),
        ("/subscriptions/s", ""),
    ],
)
def test_a_resource_belongs_to_its_tag_s_owner_or_to_that_of_what_contains_it(resource: str, owner: str) -> None:
    """By segments of its id, in any letter case."""
    assert owners_of(SNAPSHOT).get(resource, "") == owner


def test_any_tag_can_name_the_owner() -> None:
    """Organisations call it what they like."""
    owners = owners_of(SNAPSHOT, "Team")

    assert owners == {WORKSPACE.lower(): "platform", "nightly": "platform", "mine": "platform"}
    assert owners[CLUSTER] == "platform"


def test_policies_know_their_area_and_controls() -> None:
    """From the folder, and from the frameworks and the header."""
    kinds = kinds_of(load_bundle())

    assert kinds["AML-NET-001"].area == "network"
    assert "mcsb-v1:NS-2" in kinds["AML-NET-001"].controls
