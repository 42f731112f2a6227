"""Policies of others: which rules decide, what they are called, and what is refused instead of dropped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.external_policies import exception_name
from policyeng.bundle.policy_selection import selected
from policyeng.errors import BundleError, UsageError
from policyeng.models import Severity
from tests.bundles import deny_when, rego, write
from tests.command import policyeng

COLLECTIONS = Path(__file__).parent / "collections"
RULES = """package team.images
deny contains "a" if input.a
deny_latest_tag contains {"msg": "b"} if input.b
violation contains "c" if input.c
warn contains "d" if input.d
warning contains "no rule of ours" if true
deny_(x) := x
f(deny) := deny
"""


def bundle_of(folder: Path, *sources: str) -> Bundle:
    """A bundle of modules in one folder."""
    return load_bundle(write(folder, {f"m{number}.rego": source for number, source in enumerate(sources)}))


def test_every_deciding_rule_is_a_policy(tmp_path: Path) -> None:
    """`deny`, `violation` and `warn`, also with a suffix, are policies by package and name; `warn` fails no run."""
    policies = {policy.id: policy for policy in bundle_of(tmp_path, RULES).policies}

    assert {identity: policy.header.severity for identity, policy in policies.items()} == {
        "team.images.deny": Severity.HIGH,
        "team.images.deny_latest_tag": Severity.HIGH,
        "team.images.violation": Severity.HIGH,
        "team.images.warn": Severity.INFO,
    }
    assert {policy.input_form for policy in policies.values()} == {"document"}
    assert policies["team.images.deny"].rules == (("deny", "data.team.images.deny"),)
    assert policies["team.images.deny"].header.title == "team.images: deny"


def test_packages_whose_names_have_dots_are_apart(tmp_path: Path) -> None:
    """A package is called as Rego writes it, and evaluated."""
    modules = (
        'package hooks["test.target"]\ndeny contains "of one name" if input.a\n',
        'package hooks.test.target\ndeny contains "of two" if data.hooks["test.target"].deny\n',
    )
    bundle = bundle_of(tmp_path / "policy", *modules)
    assert {policy.id for policy in bundle.policies} == {'hooks["test.target"].deny', "hooks.test.target.deny"}

    document = tmp_path / "document.json"
    document.write_text('{"a": true}', encoding="utf-8")
    ran = policyeng("check", str(document), "--policy", str(tmp_path / "policy"), "--format", "json")
    found = {finding["policy"]: finding["denials"][0]["msg"] for finding in json.loads(ran.stdout)["findings"]}
    assert found == {'hooks["test.target"].deny': "of one name", "hooks.test.target.deny": "of two"}


def test_metadata_above_a_rule_wins_over_metadata_above_the_package() -> None:
    """Title, description, links and severity come from METADATA; ids of others under `custom` are left alone."""
    policies = {policy.id: policy.header for policy in load_bundle(COLLECTIONS / "annotated/policy").policies}

    idle, ssh = policies["azure.compute.deny_idle"], policies["azure.compute.deny_ssh"]
    assert (idle.title, idle.severity) == ("Clusters scale down to nothing", Severity.CRITICAL)
    assert idle.related_resources[0].ref.startswith("https://learn.microsoft.com/")
    assert (ssh.title, ssh.severity) == ("The compute rules of the platform", Severity.LOW)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("package a\ndeny if input.x", "`deny` returns only true"),
        ("package a\nimport rego.v1\ndeny := true if input.x", "`deny` returns only true"),
        ("package a\ndeny { input.x }", "`deny` returns only true"),
        ("package a\nimport future.keywords\ndeny[msg] if { msg := input.x }", "more than its name in its head"),
        ("package a\nwarn[k] = v { v := input[k] }", "more than its name in its head"),
        ("package a\ndeny.x contains msg if msg := input.x", "more than its name in its head"),
        ("package a\ndeny contains msg if msg := input.snapshot.scope", "carries no policy header"),
        ("package a\ndeny(d) := msg if msg := d.x", "`deny` is a function"),
        ("package a\nviolation contains input.review.name if input.kind", "`input.review`, .* `input.kind`"),
    ],
)
def test_a_rule_that_gives_no_messages_is_refused_by_name(tmp_path: Path, source: str, message: str) -> None:
    """Conftest takes such rules for passed; nothing here passes silently."""
    with pytest.raises(BundleError, match=message) as refusal:
        bundle_of(tmp_path, source, "package b\ndeny contains 1 if false")
    assert "m0.rego" in str(refusal.value)


def test_a_library_that_reads_what_conftest_fills_is_refused(tmp_path: Path) -> None:
    """Which policies use it is open, so none of them is evaluated."""
    library = "package l\nname := data.conftest.file.name"
    with pytest.raises(BundleError, match="only Conftest fills"):
        bundle_of(tmp_path, "package a\nimport data.l\ndeny contains l.name if input.x", library)


def test_a_directory_without_policies_is_an_error(tmp_path: Path) -> None:
    """A library alone decides nothing; neither do tests."""
    write(tmp_path, {"l.rego": "package l\nf(x) := x", "tests/a.rego": "package a\ndeny contains 1 if true"})
    write(tmp_path, {"a_test.rego": "package a\ndeny contains 1 if true"})
    with pytest.raises(BundleError, match="no policy was found"):
        load_bundle(tmp_path)


def test_one_rule_over_several_modules_and_directories_is_one_policy(tmp_path: Path) -> None:
    """Rego joins the modules of a package, so the set of messages is one."""
    write(tmp_path, {"one/a.rego": "package main\ndeny contains 1 if false"})
    write(tmp_path, {"two/b.rego": "package main\ndeny contains 2 if false"})
    assert [policy.id for policy in load_bundle(tmp_path / "one", tmp_path / "two").policies] == ["main.deny"]


def test_policies_of_ours_and_of_others_can_be_in_one_bundle(tmp_path: Path) -> None:
    """Ours are lent what they use; a library of theirs under the name `lib` stays theirs, and lends itself alone."""
    mine = {"area/x/x.rego": rego("x", deny_when("false"))}
    theirs = {"k8s/a.rego": "package k8s\nimport data.lib.words\ndeny contains words.one if input.x"}
    both = load_bundle(write(tmp_path / "both", {**mine, **theirs, "util/l.rego": "package lib.words\none := 1"}))
    alone = load_bundle(write(tmp_path / "alone", theirs))

    assert [(policy.id, policy.input_form) for policy in both.policies] == [
        ("T-A-1", "policy"),
        ("k8s.deny", "document"),
    ]
    assert [path for path, _ in both.modules if path.startswith("lib/")] == []
    assert [path for path, _ in alone.modules] == ["k8s/a.rego"]


def test_selectors_take_ids_packages_and_folders() -> None:
    """A policy of others is chosen as one of ours is."""
    bundle = load_bundle(COLLECTIONS / "konstraint/policy")

    for selector in ("ocp.bestpractices.replicas", "ocp.bestpractices.replicas.violation", "replicas"):
        assert [policy.name for policy in selected(bundle, [selector]).policies] == [
            "ocp.bestpractices.replicas.violation"
        ]
    assert len(selected(bundle, ["bestpractices"]).policies) == 2
    with pytest.raises(UsageError, match="did you mean"):
        selected(bundle, ["ocp.bestpractices.replica"])


def test_input_is_a_review_where_a_package_looks_at_nothing_else(tmp_path: Path) -> None:
    """A package that can do both, or only reads documents, gets the document."""
    bundle = bundle_of(
        tmp_path,
        "package a\nviolation[msg] { msg := object.get(input, 'x', input.review.name) }".replace("'", '"'),
        "package b\nviolation[msg] { msg := input.kind }",
        "package c\ndeny[msg] { msg := input.review.name }",
        "package d\nviolation[msg] { msg := input.parameters.x }",
    )
    assert [policy.input_form for policy in bundle.policies] == ["review", "document", "document", "review"]


def test_input_is_what_the_libraries_of_a_package_look_at(tmp_path: Path) -> None:
    """Where it looks at none itself; a library that can do both is given the document."""
    bundle = bundle_of(
        tmp_path,
        "package a\nimport data.lib.one\nviolation contains m if m := one.object.x",
        "package b\nimport data.lib.both\nviolation contains m if m := both.object.x",
        "package lib.one\nobject := input.review.object",
        "package lib.both\nobject := input.review.object\nkind := input.kind",
    )
    assert [policy.input_form for policy in bundle.policies] == ["review", "document"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('violation contains m if m := object.get(input, ["review", "object"], {}).x', "`input` as a whole"),
        ("import input as i\nviolation contains m if m := object.keys(i)[_]", "`input` as a whole"),
        ("import input as i\nviolation contains m if m := i.review.x", ""),
        ("violation contains m if { m := input.x; object.keys(input) }", ""),
        ("deny contains m if m := input[_]", ""),
        (
            "deny contains m if { m := input.x; data.inventory.cluster[m] }",
            "`data.inventory.cluster`, which Gatekeeper",
        ),
        ("import data.inventory as inv\ndeny contains m if { m := input.x; inv[m] }", "`data.inventory`, which"),
        ("import data.l\ndeny contains m if { m := input.x; l.known[m] }", "`data.inventory.a`, which"),
        ("deny contains m if { m := input.x; data.inventory_of_ours[m] }", ""),
    ],
)
def test_what_cannot_be_decided_is_unknown(tmp_path: Path, source: str, message: str) -> None:
    """Whose input is meant is open, or the cluster's objects are missing: never a pass."""
    bundle = bundle_of(tmp_path, f"package a\n{source}", "package l\nknown := data.inventory.a")
    (policy,) = bundle.policies
    assert message in policy.undecided
    assert bool(message) == bool(policy.undecided)


@pytest.mark.parametrize(
    ("rule", "name"),
    [("deny", ""), ("warn_a_b", "a_b"), ("violation_x", "x"), ("deny_warn_x", "warn_x")],
)
def test_exceptions_name_rules_without_their_prefix(rule: str, name: str) -> None:
    """The name that an `exception` rule gives."""
    assert exception_name(rule) == name
