"""A failing snapshot made small: the rest still fails through the reader, and nothing of it can go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle
from policyeng.models import JsonObject, Outcome, Severity, Snapshot
from policyeng.sources import load_snapshot
from policyeng.verify.example_documents import read
from policyeng.verify.generators.json_mutations import Json, copied, places, remove
from policyeng.verify.shrinking import Minimised, failing, minimize, native, shrink
from tests.bundles import deny_when, rego, snapshot, workspace, write
from tests.command import policyeng
from tests.conftest import ROOT

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
AT = ("--as-of", "2026-06-01T00:00:00Z")
WORKSPACES = ROOT / "samples" / "workspaces"
FORMATS = ROOT / "samples" / "formats"


def of(bundle: Bundle, whole: Snapshot, policy: str) -> Minimised:
    """The smallest document on which a policy fails."""
    found = minimize(bundle, whole, policy, partial(evaluate, as_of=AS_OF))
    assert found is not None
    return found


def fails(bundle: Bundle, document: Json, policy: str) -> bool:
    """Whether the reader takes a document and the policy fails on it."""
    assert isinstance(document, dict)
    seen = read(document)
    if seen is None:
        return False
    alone = bundle.only([entry for entry in bundle.policies if entry.id == policy])
    return any(finding.outcome is Outcome.FAIL for finding in evaluate(alone, seen, as_of=AS_OF).findings)


def with_one_member_less(document: JsonObject) -> Iterator[Json]:
    """The document without each of its members in turn."""
    for place in places(document):
        less = copied(document)
        remove(less, place)
        yield less


SAMPLES = [
    ("workspaces/regulated.json", "AML-NET-105", 2),
    ("workspaces/regulated.json", "AML-SKU-101", 2),
    ("workspaces/training.json", "AML-RBAC-104", 0),
    ("workspaces/training.json", "AML-TRN-107", 2),
    ("workspaces/training.json", "AML-COST-104", 1),
    ("workspaces/inference.json", "AML-INF-105", 2),
    ("formats/plan.json", "AML-ISO-101", 1),
    ("formats/main.json", "AML-SKU-104", 1),
    ("formats/manifests.yaml", "AML-NET-001", 1),
]


@pytest.mark.parametrize(("sample", "policy", "most"), SAMPLES)
def test_the_rest_fails_and_without_any_member_it_does_not(bundle: Bundle, sample: str, policy: str, most: int) -> None:
    """From every format, through the reader; no more resources are left than the failure needs."""
    found = of(bundle, load_snapshot(ROOT / "samples" / sample), policy)

    assert found.finding.policy == policy
    assert len(found.document.get("resources", ())) <= most
    assert fails(bundle, found.document, policy)
    assert not any(fails(bundle, less, policy) for less in with_one_member_less(found.document))


def test_the_same_snapshot_gives_the_same_document(bundle: Bundle) -> None:
    """Nothing is left to chance."""
    whole = load_snapshot(WORKSPACES / "regulated.json")

    assert of(bundle, whole, "AML-NET-105") == of(bundle, whole, "AML-NET-105")


def test_every_value_is_one_of_the_snapshot(bundle: Bundle) -> None:
    """Members are left out; none is rewritten."""
    whole = load_snapshot(WORKSPACES / "training.json")
    found = of(bundle, whole, "AML-TRN-107")
    document, notes = native(whole)
    texts = json.dumps(document)

    assert notes == []
    for place in places(found.document):
        value: Json = found.document
        for step in place:
            value = value[step]  # type: ignore[index]  # the place exists
        assert isinstance(value, dict | list) or json.dumps(value) in texts


def test_a_native_document_states_what_the_snapshot_states(bundle: Bundle) -> None:
    """Statements, clock and gaps are carried, so the findings are the same."""
    for path in sorted(WORKSPACES.glob("*.json")):
        whole = load_snapshot(path)
        document, _ = native(whole)
        again = read(document)
        assert again is not None

        assert evaluate(bundle, again, as_of=AS_OF).summary == evaluate(bundle, whole, as_of=AS_OF).summary


def test_the_most_severe_policy_comes_first_then_the_first_by_id(bundle: Bundle) -> None:
    """Those below `--fail-on` are none that fail."""
    findings = evaluate(bundle, load_snapshot(WORKSPACES / "regulated.json"), as_of=AS_OF).findings

    every = failing(findings)
    assert every[:3] == ["AML-ISO-101", "AML-NET-105", "AML-RBAC-101"]
    assert every[:3] == failing(findings, Severity.CRITICAL)


def test_a_search_that_is_cut_short_reports_it(bundle: Bundle) -> None:
    """The snapshot that it has by then still fails."""
    whole = load_snapshot(WORKSPACES / "regulated.json")
    found = minimize(bundle, whole, "AML-ISO-101", partial(evaluate, as_of=AS_OF), most=5)

    assert found is not None
    assert any("a smaller snapshot may exist" in note for note in found.notes)
    assert fails(bundle, found.document, "AML-ISO-101")


def test_without_plainer_values_shrinking_only_leaves_out() -> None:
    """A number that could be any stays what it is."""
    document: Json = {"a": [{"b": 17, "c": "x"}], "d": 1}

    def has_b(entry: Json) -> bool:
        return '"b"' in json.dumps(entry)

    assert shrink(document, has_b, plainer=False) == {"a": [{"b": 17}]}


def test_the_document_alone_is_printed_and_the_named_command_fails_on_it(tmp_path: Path) -> None:
    """Standard output is a file for `check`; standard error states the failure, the source and how to see it."""
    ran = policyeng("check", str(WORKSPACES / "regulated.json"), "--minimise", *AT)
    (tmp_path / "smallest.json").write_text(ran.stdout, encoding="utf-8")
    command = next(line for line in ran.stderr.splitlines() if "to reproduce" in line).partition("policyeng check ")[2]
    again = policyeng("check", *command.split(), "--format", "json", folder=tmp_path)

    assert ran.returncode == 1
    assert list(json.loads(ran.stdout)) == ["snapshotVersion", "resources"]
    assert "AML-ISO-101 (critical) fails on /subscriptions/" in ran.stderr
    assert "reduced from 11 resources (" in ran.stderr
    assert ") to 2 resources (" in ran.stderr
    assert "AML-NET-105, AML-RBAC-101" in ran.stderr
    assert "select one with --select" in ran.stderr
    assert again.returncode == 1, again.stderr
    assert {finding["policy"] for finding in json.loads(again.stdout)["findings"]} == {"AML-ISO-101"}


def test_a_plan_is_printed_as_a_native_snapshot(tmp_path: Path) -> None:
    """Incomplete ids are filled in, and that is reported."""
    ran = policyeng("check", str(FORMATS / "plan.json"), "--minimise", "--select", "AML-NET-001", *AT)
    smallest = tmp_path / "s.json"
    smallest.write_text(ran.stdout, encoding="utf-8")
    again = policyeng("check", str(smallest), "--select", "AML-NET-001", *AT)

    assert (ran.returncode, again.returncode) == (1, 1)
    assert "the input does not state where the resources are: `{subscription}`" in ran.stderr
    assert "{" not in json.loads(ran.stdout)["resources"][0]["id"]


def test_nothing_fails_nothing_is_printed() -> None:
    """A word on standard error, and the exit of `check`."""
    ran = policyeng("check", str(WORKSPACES / "compliant.json"), "--minimise", *AT)

    assert (ran.returncode, ran.stdout) == (0, "")
    assert "nothing to minimise" in ran.stderr


def test_what_could_not_be_decided_is_reported(tmp_path: Path) -> None:
    """Where nothing fails the exit is that of `check`: 2 for an input that cannot be read."""
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    ran = policyeng("check", str(broken), "--minimise")

    assert (ran.returncode, ran.stdout) == (2, "")
    assert "broken.json" in ran.stderr


def test_parameters_and_exemptions_stay_what_they_are(tmp_path: Path) -> None:
    """A failure that the configured parameter makes, on the one resource that no exemption covers."""
    body = deny_when("input.resource.properties.n > input.parameters.most")
    more = "parameters: {most: {type: integer, default: 9}}"
    policies = write(tmp_path / "p", {"area/a/a.rego": rego("a", body, more=more)})
    first, second = workspace("a", n=5), workspace("b", n=6, other=1)
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps([first, second]), encoding="utf-8")
    (tmp_path / "exemptions.yaml").write_text(
        "exemptions:\n- {id: E-1, policy: T-A-1, category: waiver, reason: r, owner: o, approvedBy: a,\n"
        f"   scope: '{first['id']}', createdAt: 2026-05-01T00:00:00Z, expiresAt: 2026-07-01T00:00:00Z}}\n",
        encoding="utf-8",
    )
    (tmp_path / "policyeng.toml").write_text('[parameters."T-A-1"]\nmost = 3\n', encoding="utf-8")
    line = ("check", str(file), "--policy", str(policies), "--exemptions", "exemptions.yaml", "--minimise", *AT)
    ran = policyeng(*line, folder=tmp_path)

    assert ran.returncode == 1, ran.stderr
    (left,) = json.loads(ran.stdout)["resources"]
    assert left == {**second, "properties": {"n": 6}}
    assert f"--policy {policies}" in ran.stderr
    assert "--exemptions exemptions.yaml" in ran.stderr


@pytest.mark.parametrize(
    "more", [("--format", "json"), ("--output", "json=x.json"), ("--group-by", "policy"), ("--baseline", __file__)]
)
def test_no_report_is_made_in_addition(more: tuple[str, ...]) -> None:
    """An option for a report is a usage error."""
    ran = policyeng("check", str(WORKSPACES / "regulated.json"), "--minimise", *more)

    assert (ran.returncode, ran.stdout) == (3, "")
    assert "--minimise prints a snapshot instead of a report" in ran.stderr


def test_policies_that_evaluate_documents_are_left_alone(tmp_path: Path) -> None:
    """Their inputs have no native form."""
    policies = write(tmp_path / "p", {"policy/a.rego": 'package main\n\ndeny contains "m" if { input.x == 1 }\n'})
    file = tmp_path / "x.json"
    file.write_text('{"x": 1}', encoding="utf-8")
    ran = policyeng("check", str(file), "--policy", str(policies), "--minimise")

    assert (ran.returncode, ran.stdout) == (3, "")
    assert "evaluates documents" in ran.stderr


def test_a_failure_that_the_native_form_cannot_express_is_none(tmp_path: Path) -> None:
    """Here because the reader refuses the id; nothing is made up."""
    from policyeng.bundle import load_bundle

    policies = write(tmp_path / "p", {"area/a/a.rego": rego("a", deny_when("true"))})
    odd = {**workspace("a"), "id": "/no/full/id"}

    assert minimize(load_bundle(policies), snapshot(odd), "T-A-1", partial(evaluate, as_of=AS_OF)) is None
