"""Policies and parameters without effect are named, and those that only look so are distinguished."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.cli import run
from policyeng.models import Outcome
from policyeng.verify import redundancy
from policyeng.verify.example_documents import read
from policyeng.verify.generators.estates import EstateGenerator
from policyeng.verify.observation import ObservedOutcomes, cases_of
from policyeng.verify.redundancy import RedundancyAnalysis, Remark, analysed, implication_remarks
from tests.bundles import deny_when, rego, write

pytestmark = pytest.mark.slow

BROKEN = Path(__file__).parent / "broken" / "redundancy"


@pytest.fixture(scope="module")
def analysis() -> RedundancyAnalysis:
    """The remarks on the broken bundle."""
    return analysed(load_bundle(BROKEN), 60, 1, tries=80)


def of(analysis: RedundancyAnalysis, policy: str, kind: str) -> list[Remark]:
    """The remarks of a kind about a policy."""
    return [remark for remark in analysis.remarks if (remark.policy, remark.kind) == (policy, kind)]


def small(folder: Path, *policies: tuple[str, str, str]) -> Bundle:
    """A bundle of policies of workspaces: name, body, more of the header."""
    files = {
        f"area/{name}/{name}.rego": rego(name, body, identity=f"T-A-{number}", more=more)
        for number, (name, body, more) in enumerate(policies, 1)
    }
    return load_bundle(write(folder, files))


@pytest.mark.parametrize(
    ("policy", "kind", "words"),
    [
        ("BRK-RED-001", "vacuous", "did you mean `Microsoft.MachineLearningServices/workspaces`"),
        ("BRK-RED-002", "vacuous", "`applies` is never true"),
        ("BRK-RED-003", "dead", "it never fails"),
        ("BRK-RED-004", "implied", "it fails only where `BRK-RED-010` fails"),
        ("BRK-RED-005", "parameter", "its parameter `forgotten` is never read"),
        ("BRK-RED-006", "parameter", "it does not fail with any tested value of its parameter `share`"),
    ],
)
def test_each_broken_policy_is_a_fault_by_name(
    analysis: RedundancyAnalysis, policy: str, kind: str, words: str
) -> None:
    """The message states what was tried and what to do."""
    (found,) = [remark for remark in of(analysis, policy, kind) if words in remark.message]

    assert found.is_fault
    assert found.tried
    assert found.remedy


def test_policies_that_are_not_broken_have_no_fault(analysis: RedundancyAnalysis) -> None:
    """Neither the one that implies another nor those that look alike."""
    assert {remark.policy for remark in analysis.faults} == {f"BRK-RED-00{number}" for number in range(1, 7)}


def test_facts_of_a_schema_are_proved_and_missing_examples_are_not(analysis: RedundancyAnalysis) -> None:
    """A reader knows which is which."""
    proved = {remark.policy for remark in analysis.faults if remark.is_proved}

    assert proved == {"BRK-RED-005"}


def test_a_rare_example_that_distinguishes_a_pair_is_searched_for_and_shown(analysis: RedundancyAnalysis) -> None:
    """Where no random example has it; on it the one fails and the other does not, through the reader."""
    (found,) = [remark for remark in of(analysis, "BRK-RED-007", "told apart") if remark.other == "BRK-RED-011"]
    assert found.example is not None
    snapshot = read(found.example.document)
    assert snapshot is not None
    findings = evaluate(load_bundle(BROKEN), snapshot, as_of=found.example.as_of).findings
    outcomes = {finding.policy: finding.outcome for finding in findings if finding.resource.lower() == found.resource}

    assert found.message in (
        "it seems implied by `BRK-RED-011`, but an example distinguishes them",
        "it fails together with `BRK-RED-011` except for rare examples",
    )
    assert not found.is_fault
    assert outcomes["BRK-RED-007"] is Outcome.FAIL
    assert outcomes["BRK-RED-011"] is Outcome.PASS
    assert len(found.example.document["resources"]) == 1


def test_the_same_seed_gives_the_same(tmp_path: Path) -> None:
    """Words, numbers and examples."""
    bundle = small(tmp_path, ("a", deny_when("input.resource.properties.hbiWorkspace"), ""))

    assert analysed(bundle, 15, 3) == analysed(bundle, 15, 3)


def test_equal_policies_and_a_less_severe_one(tmp_path: Path) -> None:
    """Both of a pair are named; of policies that differ in severity the less severe one has no effect."""
    body = deny_when("input.resource.properties.publicNetworkAccess != `Disabled`")
    low = rego("c", body, identity="T-A-3", severity="low")
    files = {
        "area/a/a.rego": rego("a", body, identity="T-A-1"),
        "area/b/b.rego": rego("b", body, identity="T-A-2"),
        "area/c/c.rego": low,
    }
    found = analysed(load_bundle(write(tmp_path, files)), 25, 1, tries=15)
    equal = {(remark.policy, remark.other): remark.is_fault for remark in found.remarks if remark.kind == "equal"}

    assert equal[("T-A-1", "T-A-2")]
    assert equal[("T-A-2", "T-A-1")]
    assert equal[("T-A-3", "T-A-1")]
    assert not equal[("T-A-1", "T-A-3")]


def test_a_policy_that_states_what_it_refines_is_no_fault_until_it_is_refuted(tmp_path: Path) -> None:
    """`refines` is a claim: a true one is a remark, a false one is a fault with the example."""
    wide = deny_when("input.resource.properties.publicNetworkAccess != `Disabled`")
    narrow = wide.replace("if {", "if { input.resource.properties.hbiWorkspace == true;")
    other = deny_when("input.resource.properties.hbiWorkspace == true")
    true = small(tmp_path / "true", ("a", wide, ""), ("b", narrow, "refines: [T-A-1]"))
    false = small(tmp_path / "false", ("a", wide, ""), ("b", other, "refines: [T-A-1]"))

    (confirmed,) = of(analysed(true, 25, 1, tries=40), "T-A-2", "implied")
    (refuted,) = of(analysed(false, 25, 1, tries=40), "T-A-2", "told apart")
    assert not confirmed.is_fault
    assert refuted.is_fault
    assert "it refines `T-A-1`, but fails without it" in refuted.message
    assert refuted.example is not None


def test_parameters_do_not_refute_what_a_policy_refines(tmp_path: Path) -> None:
    """The claim is about the defaults of parameters; that others distinguish the policies is a remark."""
    wide = deny_when("input.resource.properties.publicNetworkAccess != `Disabled`")
    narrow = deny_when("input.resource.properties.publicNetworkAccess == input.parameters.denied")
    denied = "refines: [T-A-1]\nparameters: {denied: {type: string, enum: [Enabled, Disabled], default: Enabled}}"
    bundle = small(tmp_path, ("a", wide, ""), ("b", narrow, denied))

    (remark,) = of(analysed(bundle, 25, 1, tries=40), "T-A-2", "told apart")
    assert not remark.is_fault
    assert "refines" not in remark.message


def test_a_default_that_switches_off_is_a_remark(tmp_path: Path) -> None:
    """A value is meant to be given, or it is a slip."""
    body = deny_when("input.parameters.on; input.resource.properties.publicNetworkAccess != `Disabled`")
    found = analysed(small(tmp_path, ("a", body, "parameters: {on: {type: boolean, default: false}}")), 40, 1)

    (remark,) = [entry for entry in of(found, "T-A-1", "parameter") if "with the default" in entry.message]
    assert remark.message == "with the default of its parameter `on`, `false`, it never fails"
    assert not remark.is_fault


@pytest.mark.slow
def test_work_that_cannot_be_is_proved_vacuous(tmp_path: Path) -> None:
    """The words of workloads are known; so is a field that is spelt wrong."""
    judges = "  judges: [Microsoft.MachineLearningServices/workspaces]"
    work = rego("a", deny_when("true")).replace(judges[2:], "judges: [{type: workload, where: {/purpose: [scoring]}}]")
    spelt = rego("b", deny_when("true"), identity="T-A-2").replace(
        judges[2:],
        "judges: [{type: Microsoft.MachineLearningServices/workspaces/computes, "
        "where: {/properties/computeTyp: [AmlCompute]}}]",
    )
    found = analysed(load_bundle(write(tmp_path, {"area/a/a.rego": work, "area/b/b.rego": spelt})), 20, 1)

    (impossible,) = of(found, "T-A-1", "vacuous")
    assert impossible.is_proved
    assert "no workload has `scoring` at `/purpose`" in impossible.message
    (wrong,) = of(found, "T-A-2", "vacuous")
    assert "did you mean `/properties/computeType`" in wrong.message
    assert not wrong.is_proved


def test_a_reason_that_is_never_given_is_a_remark(tmp_path: Path) -> None:
    """A rule that is never true is hidden by one that is."""
    live = deny_when("input.resource.properties.publicNetworkAccess != `Disabled`")
    silent = deny_when("1 == 2").replace('"m"', '"never returned"')
    body = f"{live}\n\n{silent}"
    (found,) = of(analysed(small(tmp_path, ("a", body, "")), 40, 1), "T-A-1", "reason")

    assert "never returns the reason `never returned`" in found.message
    assert not found.is_fault


def test_policies_that_evaluate_documents_are_reported_as_left_out(tmp_path: Path) -> None:
    """They are no faults: no example contains what they evaluate."""
    bundle = load_bundle(write(tmp_path, {"policy/a.rego": 'package main\n\ndeny contains "m" if { input.x == 1 }\n'}))
    found = analysed(bundle, 3, 1)

    assert [remark.kind for remark in found.remarks] == ["not tried"]
    assert found.faults == []


@pytest.mark.slow
def test_built_in_policies_that_look_implied_are_distinguished(bundle: Bundle) -> None:
    """By the cases of the two alone and the search; a policy that refines another stays next to it."""
    pairs = bundle.only(
        [
            policy
            for policy in bundle.policies
            if policy.id in {"AML-INF-103", "AML-INF-110", "AML-INF-112", "AML-INF-118"}
        ]
    )
    estates, observed = EstateGenerator(pairs), ObservedOutcomes(pairs)
    for policy in pairs.policies:
        for case, example in cases_of(policy.id, estates):
            if case.path is not None:
                observed.record(example)
    found = {(remark.policy, remark.other): remark for remark in implication_remarks(observed, estates, 2, 60)}

    assert not [remark for remark in found.values() if remark.is_fault]
    assert found["AML-INF-118", "AML-INF-110"].kind == "implied"
    assert found["AML-INF-103", "AML-INF-112"].message.endswith(
        "but an example distinguishes them only with other parameters"
    )


def test_reports_give_the_same_in_every_format(analysis: RedundancyAnalysis) -> None:
    """Every remark is in text and JSON, every fault a failure in JUnit."""
    text, document = redundancy.as_text(analysis), json.loads(redundancy.as_json(analysis))
    suite = ET.fromstring(redundancy.as_junit(analysis)).find("testsuite")  # noqa: S314  # written a line above
    assert suite is not None

    assert [remark["message"] for remark in document["remarks"]] == [remark.message for remark in analysis.remarks]
    assert all(remark.message in text for remark in analysis.remarks)
    assert document["faults"] == len(analysis.faults)
    assert f"exit 1: {len(analysis.faults)} faults" in text
    assert (suite.get("tests"), suite.get("failures")) == ("9", "6")
    assert len(suite.findall("testcase/failure")) == 6


def test_the_command_exits_1_for_faults_and_0_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Remarks alone do not fail."""
    live = deny_when("input.resource.properties.publicNetworkAccess != `Disabled`")
    fine = tmp_path / "fine"
    small(fine, ("a", live, ""))
    dead = tmp_path / "dead"
    small(dead, ("a", live, ""), ("b", deny_when("1 == 2"), ""))
    command = partial(_printed, capsys)

    assert command("--policy", str(fine), "--format", "json")[0] == 0
    code, out = command("--policy", str(dead))
    assert code == 1
    assert "fault: T-A-2: it never fails: it always passes" in out
    assert command("--policy", str(dead), "--select", "T-A-1")[0] == 0
    assert command("--policy", str(fine), "--format", "junit")[1].startswith("<?xml")
    assert command("--policy", str(fine), "--engines")[0] == 3
    assert command("--policy", str(fine), "--format", "xml")[0] == 3


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = run(["verify", "--redundancy", "--seed", "1", "--examples", "25", *arguments])
    return code, capsys.readouterr().out
