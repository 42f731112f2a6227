"""The vocabulary of a bundle: words of Rego, of Python and of shared functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyeng.bundle import Bundle, load_bundle
from policyeng.verify.generators.vocabulary import vocabulary_of
from tests.bundles import write

PYTHON = """
from policyeng import Denial, policy
from policyeng.facts import quotas
from policyeng.facts.computes import find_size


def _neighbor(given):
    return given.resource["basalt"] if find_size(given.resource, given.facts) else None


@policy(
    id="T-A-1",
    title="Every one is true",
    severity="low",
    judges=["Acme.Minerals/mines"],
    applies=lambda given: given.resource.get("granite") == [one for one in ("gneiss",)],
)
def a(given):
    if _neighbor(given) == quotas.quota_key("slate", "marl"):
        yield Denial(msg="this text is longer than any word that a document contains", actual=41)
"""


@pytest.mark.parametrize(
    ("policy", "table"),
    [
        ("AML-SKU-105", "vm_sizes"),
        ("AML-SKU-106", "vm_sizes"),
        ("AML-SKU-106", "vm_series"),
        ("AML-ISO-103", "isolated_sizes"),
        ("AML-ISO-103", "retired_sizes"),
        ("AML-ISO-101", "isolated_sizes"),
    ],
)
def test_a_policy_meets_the_tables_that_it_reads(bundle: Bundle, policy: str, table: str) -> None:
    """Also those that a shared function looks up in the catalogue."""
    words = vocabulary_of(bundle, []).words[policy]

    assert tuple(bundle.data["facts"][table]) in words.tables


def test_a_policy_that_looks_up_no_size_meets_none(bundle: Bundle) -> None:
    """Nothing is read into a word that only looks like a question."""
    assert vocabulary_of(bundle, []).words["AML-RBAC-103"].tables == ()


def test_the_words_of_python_are_found_in_the_policy_and_its_functions(tmp_path: Path) -> None:
    """In the functions next to the policy and in its `applies`; those of shared functions are borrowed."""
    bundle = load_bundle(write(tmp_path, {"area/a/a.py": PYTHON}))
    words = vocabulary_of(bundle, []).words["T-A-1"]

    assert {"basalt", "granite", "gneiss", "slate", "marl", 41} <= set(words.own)
    assert not any(isinstance(word, str) and word.startswith("this text") for word in words.own)
    assert {"vmSize", "computeType", "managedcluster"} <= set(words.borrowed)
    assert not {"basalt", "vm_sizes"} & set(words.borrowed)
