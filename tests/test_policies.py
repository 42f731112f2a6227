"""The catalogue as a whole: ids, titles, folders, sources, cases, and the case runner."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, Policy, load_bundle
from policyeng.bundle.cases import DEFAULT_AS_OF, baselines_of, estate, read_cases
from policyeng.bundle.scaffold import AREAS
from policyeng.models import JsonObject
from policyeng.testing.observed_reads import observe
from policyeng.testing.runner import run_cases
from tests.bundles import deny_when, rego, write
from tests.effort import sweep

POLICIES = load_bundle().policies
#: Policies that read tags of other kinds.
UNTAGGED = ("AML-OPS-102",)
#: Policies that demand tags or the flag, whatever these state.
TAG_ONLY = {"AML-COST-101", "AML-CMP-013", "AML-DR-001", "AML-ENC-002", "AML-GOV-001", "AML-REG-002"}
#: Policies that only some of their denials owe to a flag, a tag or a default.
PARTLY = {"AML-COST-104", "AML-INF-112", "AML-ISO-103"}
EACH = pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.id)


def test_there_are_ten_cases_a_policy() -> None:
    """On average; `make rego` finds out that the cases pass, and state what is absent."""
    files = [file for policy in POLICIES if (file := read_cases(policy))]

    assert sum(len(list(file.named())) for file in files) >= 10 * len(POLICIES)


@EACH
def test_id_folder_and_package_are_one_name(policy: Policy) -> None:
    """`AML-<AREA>-<number>` in the folder of its area, package and file named like the folder."""
    area, name = policy.file.split("/")[:2]

    assert re.fullmatch(rf"AML-{AREAS[area]}-\d{{3}}", policy.id)
    assert policy.name == name
    assert all(path.startswith(f"data.{area}.{name}.") for _, path in policy.rules)


@EACH
def test_the_header_is_complete(policy: Policy) -> None:
    """Every field that a reader needs is there, and the title states the compliant situation."""
    header = policy.header

    assert header.description
    assert (header.inspects, header.consults, header.insensitive_to, header.clock) == ((), (), (), "")
    assert header.remediation
    assert header.source
    assert re.match(r"(\d{3} |[A-Z]+-\d\d)", header.source), header.source
    assert not re.match(r"(Ensure|Check|Must|Should)\b", header.title)
    assert not header.title.endswith(".")


@EACH
def test_parameters_are_described_and_refuse_what_is_misspelt(policy: Policy) -> None:
    """No text is taken as it comes, no number without a bound, and no object with members that are not read."""
    for name, schema in policy.header.parameters.items():
        assert schema.get("description"), name
        assert list(_loose(schema)) == [], name


def _loose(schema: JsonObject) -> Iterator[JsonObject]:
    """The parts of a JSON Schema that take any text, any number or any member."""
    bounds = {"string": {"enum", "pattern"}, "integer": {"minimum"}, "number": {"minimum"}}
    bounds |= {"object": {"additionalProperties"}, "array": {"items"}, "boolean": {"type"}, "null": {"type"}}
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    if not all(bounds[kind] & schema.keys() for kind in kinds):
        yield schema
    inner = [schema.get("items"), schema.get("additionalProperties"), *schema.get("properties", {}).values()]
    for part in inner:
        if isinstance(part, dict):
            yield from _loose(part)


@EACH
def test_there_are_passing_and_failing_cases(policy: Policy) -> None:
    """At least one pass and two fails, each fail with the path that is denied."""
    file = read_cases(policy)

    assert file is not None
    assert len(file.pass_) >= 1
    assert len(file.fail) >= 2


@pytest.mark.parametrize("policy", sweep(POLICIES, 8, lambda policy: policy.id))
def test_what_regulated_work_or_a_stage_decides_explains_itself(bundle: Bundle, policy: Policy) -> None:
    """Every denial of a fail case states in `because` which flag or tag, or which default, made the policy concern it.

    A denial of a tag or a flag itself needs no such reason, and those of `PARTLY` need it where it decides.
    """
    read = {pointer.lower() for pointer in observe(bundle, policy).pointers}
    if policy.id in UNTAGGED or not any(pointer.endswith(("/tags", "/hbiworkspace")) for pointer in read):
        return
    baselines, file, alone = baselines_of(bundle), read_cases(policy), bundle.only([policy])
    explained = False
    assert file is not None
    for name, case in ((name, case) for outcome, name, case in file.named() if outcome == "fail"):
        evaluation = evaluate(
            alone,
            estate(baselines, case, name),
            as_of=case.as_of or DEFAULT_AS_OF,
            parameters={policy.id: case.parameters},
        )
        denials = [denial for finding in evaluation.findings for denial in finding.denials if not _is_own(denial.path)]
        because = [
            isinstance(denial.actual, dict) and isinstance(denial.actual.get("because"), str) for denial in denials
        ]
        assert policy.id in PARTLY or all(because), name
        explained = explained or any(because)
    assert explained or policy.id in TAG_ONLY


def _is_own(path: str) -> bool:
    """Whether a denial is of a tag or of the flag."""
    return "/tags" in path or path.endswith("/hbiWorkspace")


def test_titles_and_messages_are_unique(bundle: Bundle) -> None:
    """Two policies never carry one title."""
    assert [
        title for title, count in Counter(policy.header.title for policy in bundle.policies).items() if count > 1
    ] == []


def test_a_failing_case_is_found(tmp_path: Path) -> None:
    """The runner can fail: a wrong outcome, a wrong path, a wrong absence."""
    more = "inspects: [/properties/n]\nwhen_absent: fail"
    cases = """
baseline: workspace
pass:
  wrong outcome: {patch: {properties: {n: 2}}}
fail:
  wrong path: {patch: {properties: {n: 2}}, path: /elsewhere}
  right: {patch: {properties: {n: 2}}, path: /properties/x}
not_judged:
  evaluated after all: {patch: {properties: {n: 1}}}
"""
    policy = rego("a", deny_when("input.resource.properties.n > 1"), more=more)
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": policy, "area/a/cases.yaml": cases}))

    found = {run.name: bool(run.reason) for run in run_cases(bundle)}

    assert found == {
        "wrong outcome": True,
        "wrong path": True,
        "right": False,
        "evaluated after all": True,
        "absent /properties/n": True,
    }
    assert bundle.policies[0].cases == tmp_path / "area/a/cases.yaml"


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ("baseline: workspac\npass: {x: {}}", "did you mean `workspace`"),
        ("baseline: workspace\npas: {x: {}}", "unknown key"),
        ("baseline: workspace\nfail: {x: {}}", "names no `path`"),
        ("pass: {x: {}}", "has no `baseline`"),
        ("baseline: workspace\npass: {x: {with: {nobody: {}}}}", "no baseline is called `nobody`"),
        ("baseline: workspace\npass: {x: {approvals: [{id: A}]}}", "approvals"),
        ("[1]", "not a mapping"),
    ],
)
def test_cases_that_are_not_well_formed_are_refused(tmp_path: Path, cases: str, message: str) -> None:
    """A misspelt key or baseline is never an empty test."""
    files = {"area/a/a.rego": rego("a", deny_when("true")), "area/a/cases.yaml": cases}

    with pytest.raises(Exception, match=message) as refusal:
        list(run_cases(load_bundle(write(tmp_path, files))))

    assert refusal.value.__class__.__module__ == "policyeng.errors"
