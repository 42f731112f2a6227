"""What each of the sixteen targets is good for, policy by policy, by default and in the documents, and the lists."""

from __future__ import annotations

from typing import get_args

import pytest

from policyeng.bundle import Policy, load_bundle
from policyeng.bundle.parameters import parameters_of
from policyeng.errors import UsageError
from policyeng.models.documents import Target
from tests.test_inference_tables import declared, outcome

#: By column, the policy and the declared work that it evaluates.
COLUMNS: dict[str, tuple[str, dict[str, str]]] = {
    "101": ("AML-INF-101", {"accelerator": "gpu"}),
    "101-doc": ("AML-INF-101", {"accelerator": "gpu"}),
    "102": ("AML-INF-102", {"purpose": "batch-inference", "accelerator": "gpu"}),
    "103": ("AML-INF-103", {}),
    "112-dev": ("AML-INF-112", {"stage": "dev"}),
    "112-prod": ("AML-INF-112", {"stage": "production"}),
    "113": ("AML-INF-113", {"purpose": "batch-inference"}),
    "115-dev": ("AML-INF-115", {"stage": "dev"}),
    "115-prod": ("AML-INF-115", {"stage": "production"}),
    "116": ("AML-INF-116", {"cadence": "continuous"}),
    "117": ("AML-INF-117", {"purpose": "training"}),
}
TABLE = """
target               101   101-doc  102   103   112-dev  112-prod  113   115-dev  115-prod  116         117
local                fail  fail     fail  pass  pass     fail      fail  pass     pass      not_judged  pass
compute-instance     fail  fail     fail  pass  pass     fail      fail  pass     pass      not_judged  pass
compute-cluster      fail  fail     pass  fail  fail     fail      pass  pass     pass      not_judged  pass
serverless           fail  fail     fail  pass  fail     fail      pass  pass     pass      not_judged  pass
kubernetes           pass  fail     fail  pass  pass     pass      fail  pass     pass      not_judged  pass
aks                  pass  pass     fail  pass  pass     pass      fail  pass     pass      not_judged  unknown
aci                  fail  fail     fail  pass  pass     fail      fail  pass     pass      not_judged  fail
managed-online       pass  fail     fail  pass  pass     pass      fail  pass     pass      not_judged  pass
attached-vm          fail  fail     fail  pass  fail     fail      fail  pass     pass      not_judged  pass
databricks           fail  fail     fail  pass  fail     fail      fail  pass     pass      not_judged  pass
data-lake-analytics  fail  fail     fail  pass  fail     fail      fail  pass     pass      not_judged  pass
hdinsight            fail  fail     fail  pass  fail     fail      fail  pass     pass      not_judged  pass
batch                fail  fail     fail  pass  fail     fail      fail  pass     pass      not_judged  pass
synapse-spark        fail  fail     fail  pass  fail     fail      fail  pass     pass      not_judged  pass
functions            fail  fail     fail  pass  fail     fail      fail  pass     fail      fail        fail
iot-edge             fail  fail     fail  pass  fail     fail      fail  pass     fail      not_judged  fail
"""
HEAD, *ROWS = (line.split() for line in TABLE.strip().splitlines())
LISTS = [
    (policy, name)
    for policy in load_bundle().policies
    if policy.id.startswith("AML-INF-")
    for name in policy.header.parameters
    if name.endswith("_targets")
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[0]))
def test_target(row: list[str]) -> None:
    """A declared workload on a target has the outcome of the table in every column."""
    target, *expected = row

    found = [
        outcome(policy, declared(target, **more), "documents" if column.endswith("-doc") else None)
        for column, (policy, more) in COLUMNS.items()
    ]

    assert dict(zip(COLUMNS, found, strict=True)) == dict(zip(HEAD[1:], expected, strict=True))


def test_every_target_has_a_row() -> None:
    """The table has the targets of the model, in its order of columns."""
    assert HEAD[1:] == list(COLUMNS)
    assert sorted(row[0] for row in ROWS) == sorted(get_args(Target))


def test_the_lists_of_targets() -> None:
    """These are all the lists, by policy and name, with their defaults."""
    assert {(policy.id, name): policy.header.defaults[name] for policy, name in LISTS} == {
        ("AML-INF-101", "gpu_realtime_targets"): ["aks", "managed-online", "kubernetes"],
        ("AML-INF-102", "gpu_batch_targets"): ["compute-cluster"],
        ("AML-INF-112", "realtime_targets"): ["aks", "kubernetes", "managed-online"],
        ("AML-INF-112", "development_realtime_targets"): ["aci", "local", "compute-instance"],
        ("AML-INF-113", "batch_targets"): ["compute-cluster", "serverless"],
    }


@pytest.mark.parametrize(("policy", "name"), LISTS, ids=lambda part: str(getattr(part, "id", part)))
def test_a_list_takes_targets_only(policy: Policy, name: str) -> None:
    """Every target may be listed, and a misspelt one is refused before anything is evaluated."""
    bundle = load_bundle().only([policy])
    every = list(get_args(Target))

    assert parameters_of(bundle, {policy.id: {name: every}})[0][name] == every
    with pytest.raises(UsageError, match="akz"):
        parameters_of(bundle, {policy.id: {name: ["akz"]}})
