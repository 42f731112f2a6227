"""Remarks: what a snapshot states and no policy reads is reported."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle
from policyeng.evaluation.prepared_snapshot import estate_of
from policyeng.facts import Facts
from policyeng.models import Snapshot

HOME = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
COMPUTE = f"{HOME}/computes/c"


def remarks_of(facts: Facts, **stated: Any) -> list[str]:
    """The warnings about a snapshot."""
    found = estate_of(Snapshot.model_validate(stated), facts).problems
    assert {problem.level for problem in found} <= {"warning"}
    return [f"{problem.place}: {problem.message}" for problem in found]


def compute(kind: object, **outer: object) -> dict[str, Any]:
    """A compute of a kind."""
    return {"id": COMPUTE, "type": "Microsoft.MachineLearningServices/Workspaces/computes", "properties": kind, **outer}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"computeType": "AMLCOMPUTE"}, []),
        ({"computeType": "Batch"}, []),
        ({"computeType": "AmlComputeX"}, ["its `computeType` is not a known kind of compute"]),
        ({"computeType": 7}, ["its `computeType` is not a known kind of compute"]),
        ({}, ["its `computeType` is missing"]),
        ("text", ["its `computeType` is missing"]),
    ],
)
def test_a_compute_of_no_known_kind_is_named(bundle: Bundle, properties: object, expected: list[str]) -> None:
    """Policies for one kind of compute leave it out, which would look like a pass."""
    found = remarks_of(bundle.facts, resources=[compute(properties)])

    assert [text.removeprefix(f"{COMPUTE}: ").partition(",")[0] for text in found] == expected


def test_a_kind_that_cannot_be_read_is_unknown_already(bundle: Bundle) -> None:
    """The policies that require it report it."""
    unreadable = {COMPUTE.lower(): {"/properties": "an expression"}}

    assert remarks_of(bundle.facts, resources=[compute({})], unreadable=unreadable) == []


@pytest.mark.parametrize(
    ("approval", "expected"),
    [
        ({"kind": "VMSERIES", "series": "ncsv3"}, ""),
        ({"kind": "vmSeries", "series": "NCasT4_v3"}, ""),
        ({"kind": "exportOfModels", "series": ""}, ""),
        ({"kind": "MODEL", "model": "azureml:churn:1"}, ""),
        ({"kind": "model"}, "an approval of the kind `model` without `model` has no effect"),
        ({"kind": "modell", "model": "m"}, "no policy reads the kind `modell`; did you mean `model`"),
        ({"kind": "vmSerie", "series": "NCsv3"}, "no policy reads the kind `vmSerie`; did you mean `vmSeries`"),
        ({"kind": "vmSeries", "series": "NC6s_v3"}, "`NC6s_v3` is not a VM series of the catalog"),
        ({"kind": "vmSeries", "series": "NCsv33"}, "so the approval has no effect; did you mean `NCsv3`"),
    ],
)
def test_approvals_that_approve_nothing_are_named(bundle: Bundle, approval: dict[str, str], expected: str) -> None:
    """A kind that is nearly ours, and a series that no size belongs to."""
    given = {"id": "A-1", "scope": "/subscriptions/s", "status": "granted", **approval}
    found = remarks_of(bundle.facts, approvals=[given])

    assert len(found) == bool(expected)
    assert expected in "".join(found)
    assert remarks_of(Facts({}), approvals=[{**given, "kind": "vmSeries"}]) == []


def test_metrics_that_are_nearly_ours_are_named_once(bundle: Bundle) -> None:
    """Others may be read by policies of others."""
    metrics = [
        {"resourceId": COMPUTE, "name": name, "unit": "bytes"}
        for name in ("diskFreeByte", "diskFreeByte", "diskFreeBytes", "queueLength")
    ]

    assert remarks_of(bundle.facts, metrics=metrics) == [
        "metrics: no policy reads the name `diskFreeByte`; did you mean `diskFreeBytes`"
    ]


def test_the_order_of_a_snapshot_is_not_that_of_its_remarks(bundle: Bundle) -> None:
    """A remark does not depend on what came first, and a pointer that only begins alike hides nothing."""
    computes = [{**compute({}), "id": f"{HOME}/computes/{name}"} for name in ("b", "a")]
    unreadable = {f"{HOME}/computes/a".lower(): {"/properties/compute": "an expression"}}
    found = remarks_of(bundle.facts, resources=computes, unreadable=unreadable)

    assert len(found) == 2
    assert found == remarks_of(bundle.facts, resources=computes[::-1], unreadable=unreadable)


def test_remarks_are_problems_of_the_evaluation(bundle: Bundle) -> None:
    """Warnings: they change no exit."""
    snapshot = Snapshot(resources=({"id": HOME, "type": "Microsoft.MachineLearningServices/workspaces"}, compute({})))

    evaluation = evaluate(bundle, snapshot, as_of=datetime(2026, 6, 1, tzinfo=UTC))

    assert [problem.place for problem in evaluation.problems] == [COMPUTE]
    assert evaluation.exit_code == 1
