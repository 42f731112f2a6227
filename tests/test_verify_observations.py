"""Random quotas, metrics and principals: those of cases, of what the estate contains, and such as the models allow."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

from policyeng.bundle import load_bundle
from policyeng.bundle.cases import DEFAULT_AS_OF
from policyeng.models import JsonObject, Snapshot
from policyeng.verify.generators.vocabulary import Entries, Sight, draw_observations

FACTS = load_bundle().facts
CLUSTER = {
    "id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w/computes/c",
    "type": "Microsoft.MachineLearningServices/workspaces/computes",
    "properties": {"computeType": "AmlCompute", "properties": {"vmSize": "Standard_NC6"}},
}
ASSIGNMENT = {"id": "/a", "type": "Microsoft.Authorization/roleAssignments", "properties": {"principalId": "holder"}}
KNOWN: dict[str, list[Entries]] = {
    "metrics": [
        [
            {"resourceId": "/x", "name": name, "unit": "percent", "from": "2026-05-18T00:00:00Z", "p95": 39.9}
            for name in ("cpu", "memory")
        ]
    ],
    "quotas": [[{"scope": "/subscriptions/s", "region": "eastus", "family": "f", "limitVCpus": 8}]],
    "principals": [[{"id": "nobody", "type": "User", "deleted": True}]],
}


def drawn(seed: int, as_of: datetime = DEFAULT_AS_OF) -> JsonObject:
    """Observations of an estate of one cluster and one assignment."""
    sight = Sight(KNOWN, [str(CLUSTER["id"])], [40.0], as_of)
    random = Random(seed)  # noqa: S311  # nothing here is secret
    return draw_observations(random, {"resources": [CLUSTER, ASSIGNMENT]}, sight, FACTS)


def test_the_same_draw_gives_the_same() -> None:
    """Nothing depends on anything but the generator."""
    assert [drawn(seed) for seed in range(20)] == [drawn(seed) for seed in range(20)]


def test_the_models_take_whatever_comes_out() -> None:
    """At any clock; a member that is needed is never left out."""
    for seed in range(300):
        clock = datetime(1, 1, 2, tzinfo=UTC) if seed % 7 == 0 else DEFAULT_AS_OF
        Snapshot.model_validate(drawn(seed, clock))


def test_they_are_of_what_the_estate_contains() -> None:
    """Together they meet the cluster with both of its metrics, its family of sizes, and the principals of roles."""
    every = [drawn(seed) for seed in range(100)]

    assert any(
        {(one["resourceId"], one["name"]) for one in each["metrics"]}
        >= {(CLUSTER["id"], "cpu"), (CLUSTER["id"], "memory")}
        for each in every
    )
    assert "standardNCFamily" in {one["family"] for each in every for one in each["quotas"]}
    assert "holder" in {one["id"] for each in every for one in each["principals"]}
    assert {39.9, 40.0} <= {one.get("p95") for each in every for one in each["metrics"]}


def test_moments_keep_their_distance_from_the_clock() -> None:
    """A time fourteen days before the clock of a case is drawn fourteen days before another one."""
    later = DEFAULT_AS_OF + timedelta(days=1000)
    begins = {one["from"] for seed in range(50) for one in drawn(seed, later)["metrics"] if "from" in one}

    assert (later - timedelta(days=14)).isoformat() in begins
