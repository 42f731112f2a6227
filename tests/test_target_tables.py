"""The documents' table of training targets, cell by cell: the outcomes of the built-in policies for each.

`python -m tests.test_target_tables` prints the table with the outcomes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import get_args

import pytest

from policyeng import evaluate
from policyeng.bundle import load_bundle
from policyeng.bundle.policy_selection import with_profile
from policyeng.models import JsonObject, Snapshot
from policyeng.models.documents import Target

ML = "Microsoft.MachineLearningServices/workspaces"
WS = f"/subscriptions/s/resourceGroups/rg/providers/{ML}/ws"

#: The columns: feature of a workload, and the policy that evaluates it.
COLUMNS = {"automl": "AML-TRN-101", "pipeline": "AML-TRN-102", "designer": "AML-TRN-103"}

#: 001, "Training compute targets", as published: automated ML, pipelines, designer.
DOCUMENT = {
    "Local computer": ("Yes", "", ""),
    "Azure Machine Learning compute cluster": ("Yes", "Yes", "Yes"),
    "Azure Machine Learning compute instance": ("Yes (through SDK)", "Yes", ""),
    "Remote VM": ("Yes", "Yes", ""),
    "Azure Databricks": ("Yes (SDK local mode only)", "Yes", ""),
    "Azure Data Lake Analytics": ("", "Yes", ""),
    "Azure HDInsight": ("", "Yes", ""),
    "Azure Batch": ("", "Yes", ""),
}
OUTCOMES = {"Yes": "pass", "Yes (through SDK)": "pass", "Yes (SDK local mode only)": "unknown", "": "fail"}

#: The rows in the words of a workload, and what such a compute is in Azure; a local computer is none.
ROWS = {
    "Local computer": ("local", None),
    "Azure Machine Learning compute cluster": ("compute-cluster", "AmlCompute"),
    "Azure Machine Learning compute instance": ("compute-instance", "ComputeInstance"),
    "Remote VM": ("attached-vm", "VirtualMachine"),
    "Azure Databricks": ("databricks", "Databricks"),
    "Azure Data Lake Analytics": ("data-lake-analytics", "DataLakeAnalytics"),
    "Azure HDInsight": ("hdinsight", "HDInsight"),
    "Azure Batch": ("batch", "Batch"),
}
#: Further targets that Azure has; serverless compute is what a job runs on that names none.
UNLISTED = {"serverless": None, "kubernetes": "Kubernetes", "aks": "AKS", "synapse-spark": "SynapseSpark"}

COMPUTES = {**dict(ROWS.values()), **UNLISTED}
CELLS = [
    (row, column, OUTCOMES[cell])
    for row, cells in DOCUMENT.items()
    for column, cell in zip(COLUMNS, cells, strict=True)
]


def computes() -> Iterable[JsonObject]:
    """One compute of each kind, named like the target."""
    for target, kind in COMPUTES.items():
        if kind:
            yield {"id": f"{WS}/computes/{target}", "type": f"{ML}/computes", "properties": {"computeType": kind}}


def job(target: str, feature: str) -> JsonObject:
    """A job of Azure with a feature, on a target; designer leaves no trace in it."""
    kind = {"automl": "AutoML", "pipeline": "Pipeline", "designer": "Command"}[feature]
    named = target if target == "local" or COMPUTES[target] is None else f"{WS}/computes/{target}"
    properties: JsonObject = {"jobType": kind, "computeId": named}
    if feature == "pipeline":
        steps = {"prepare": {"type": "command"}, "train": {"type": "command", "computeId": named}}
        properties = {"jobType": kind, "settings": {"default_compute": named}, "jobs": steps}
    return {"id": f"{WS}/jobs/{target}-{feature}", "type": f"{ML}/jobs", "properties": properties}


def declared(target: str, feature: str) -> JsonObject:
    """A workload by itself."""
    return {"id": f"{target}-{feature}", "purpose": "training", "target": target, "features": [feature]}


def trace_of_designer(target: str) -> JsonObject:
    """The declaration of a job that designer made."""
    return {"id": f"{target}-facts", "sourceId": f"{WS}/jobs/{target}-designer", "features": ["designer"]}


@cache
def outcomes(
    extra: tuple[tuple[str, bool], ...] = (), profile: str | None = "documents"
) -> Mapping[tuple[str, str], str]:
    """Return the outcomes of the built-in bundle by policy and resource; `extra` is `extra_targets`."""
    pairs = [(target, feature) for target in get_args(Target) for feature in COLUMNS]
    snapshot = Snapshot.model_validate(
        {
            "resources": (
                {"id": WS, "type": ML, "properties": {}},
                *computes(),
                *(job(target, feature) for target, feature in pairs if target in COMPUTES),
            ),
            "workloads": [
                *(declared(target, feature) for target, feature in pairs),
                *(trace_of_designer(target) for target in COMPUTES),
            ],
        }
    )
    given = {policy: {"extra_targets": dict(extra)} for policy in COLUMNS.values()}
    parameters = with_profile(load_bundle(), profile, given)
    moment = datetime(2026, 6, 1, tzinfo=UTC)
    findings = evaluate(load_bundle(), snapshot, as_of=moment, parameters=parameters).findings
    return {(finding.policy, finding.resource): finding.outcome.value for finding in findings}


def test_the_table_is_whole() -> None:
    """Eight targets by three columns, and no target of the vocabulary is forgotten."""
    assert len(CELLS) == 24
    others = {"aci", "managed-online", "functions", "iot-edge"}
    assert set(get_args(Target)) == COMPUTES.keys() | others


@pytest.mark.parametrize(("row", "feature", "expected"), CELLS)
@pytest.mark.parametrize("extra", [None, True, False])
def test_a_cell_of_the_document(row: str, feature: str, expected: str, extra: bool | None) -> None:
    """A job of Azure and a declared workload have the outcome of the cell; the parameter decides only the rest."""
    target, _ = ROWS[row]
    if extra is not None and expected == "unknown":
        expected = "pass" if extra else "fail"
    found = outcomes(() if extra is None else ((target, extra),))

    assert found[COLUMNS[feature], f"{WS}/jobs/{target}-{feature}"] == expected
    assert found[COLUMNS[feature], f"{target}-{feature}"] == expected


@pytest.mark.parametrize("feature", COLUMNS)
@pytest.mark.parametrize("target", sorted(set(get_args(Target)) - {target for target, _ in ROWS.values()}))
def test_a_target_that_the_documents_do_not_list(target: str, feature: str) -> None:
    """It is unknown until the parameter decides it, one way or the other."""
    evaluated = [f"{target}-{feature}", *([f"{WS}/jobs/{target}-{feature}"] if target in COMPUTES else [])]
    for extra, expected in (((), "unknown"), (((target, True),), "pass"), (((target, False),), "fail")):
        assert {outcomes(extra)[COLUMNS[feature], name] for name in evaluated} == {expected}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("serverless", ("pass", "pass", "pass")),
        ("compute-instance", ("pass", "pass", "pass")),
        ("kubernetes", ("fail", "pass", "pass")),
        ("synapse-spark", ("unknown", "pass", "fail")),
        ("compute-cluster", ("pass", "pass", "pass")),
        ("local", ("pass", "fail", "fail")),
        ("aks", ("unknown", "unknown", "unknown")),
    ],
)
def test_the_list_of_today_counts_by_default(target: str, expected: tuple[str, ...]) -> None:
    """The vendor's page of 2026-03-31, "Training compute targets", precedes the documents' table."""
    found = tuple(outcomes(profile=None)[policy, f"{target}-{feature}"] for feature, policy in COLUMNS.items())

    assert found == expected


@pytest.mark.parametrize("feature", COLUMNS)
def test_work_without_the_feature_is_not_evaluated(feature: str) -> None:
    """A policy of one column finds nothing in work that has another feature."""
    evaluated = {name for policy, name in outcomes() if policy == COLUMNS[feature]}

    assert evaluated == {name for name in evaluated if name.endswith(f"-{feature}")}


def print_table() -> None:
    """The document's table with the outcomes of a job of Azure and of a declared workload."""
    found = outcomes()
    lines = [("training target", *COLUMNS), ("---",) * 4]
    for row, cells in DOCUMENT.items():
        target, _ = ROWS[row]
        outcome_cells = [
            f"{cell or '-'}: {found[policy, f'{WS}/jobs/{target}-{feature}']}, {found[policy, f'{target}-{feature}']}"
            for cell, (feature, policy) in zip(cells, COLUMNS.items(), strict=True)
        ]
        lines.append((row, *outcome_cells))
    for line in lines:
        sys.stdout.write(f"| {' | '.join(line)} |\n")


if __name__ == "__main__":
    print_table()
