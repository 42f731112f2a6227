"""Where policyeng and other rule sets agree and differ: their defects, their published fixtures, and docs/peers.md."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import policyeng
from policyeng.models import JsonObject, Snapshot
from policyeng.sources import read_inputs
from tests.documents import cited

HERE = Path(__file__).parent / "peers"
PAGE = Path(__file__).parents[1] / "docs" / "peers.md"
GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml/providers/"
SERVICE = "Microsoft.MachineLearningServices/"
AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
OURS = {"pass", "fail", "unknown", "none"}
#: Policies whose counterparts publish a title or a setting of the service, and no condition.
UNPUBLISHED = {"AML-DAT-002", "AML-DAT-003", "AML-LOG-008", *(f"AML-JOB-{number:03}" for number in range(1, 7))}
THEIRS = {"pass", "fail", "unknown", "error", "none"}


class Case(NamedTuple):
    """One snapshot, and the outcomes for its first resource; `none` is no outcome.

    Attributes:
        name: the peer, its rule, our policy, and what the snapshot shows.
        policy: the id of our policy.
        case: `resources`, `peer`, `ours`, `why` where they differ, and `parameters`, `covers` and `metrics`.
        rule: the entry that has the case.
    """

    name: str
    policy: str
    case: dict[str, Any]
    rule: dict[str, Any]


def _read(name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = yaml.safe_load((HERE / name).read_text(encoding="utf-8"))
    return entries


DEFECTS = _read("defects.yaml")
FIXTURES = _read("fixtures.yaml")
CASES = [
    Case(
        f"{entry.get('defect', entry['peer'])} {entry['rule']} {entry['policy']}: {name}", entry["policy"], case, entry
    )
    for entry in (*DEFECTS, *FIXTURES)
    for name, case in entry["cases"].items()
]


def _complete(value: Any) -> Any:
    """Return a value whose texts `~/TYPE/NAME` are ids of resources of the group."""
    match value:
        case dict():
            return {_complete(key): _complete(member) for key, member in value.items()}
        case list():
            return [_complete(member) for member in value]
        case str() if value.startswith("~/"):
            return GROUP + value.removeprefix("~/")
    return value


def _resource(stated: dict[str, Any]) -> JsonObject:
    """Return an ARM resource: `type` is completed by the name of the service, and `id` made from it and `name`."""
    resource = _complete(stated)
    if not resource["type"].startswith("Microsoft."):
        resource["type"] = SERVICE + resource["type"]
    if "id" not in resource:
        space, *kinds = resource["type"].split("/")
        names = resource["name"].split("/")
        resource["id"] = f"{GROUP}{space}/" + "/".join(f"{a}/{b}" for a, b in zip(kinds, names, strict=True))
    resource["name"] = resource["id"].rpartition("/")[2]
    return {"location": "eastus", "properties": {}, **resource}


def _snapshot(case: dict[str, Any]) -> Snapshot:
    document = {"snapshotVersion": 1, "resources": [_resource(one) for one in case["resources"]]}
    document |= {key: _complete(case[key]) for key in ("covers", "metrics") if key in case}
    return read_inputs(["-"], stdin=json.dumps(document).encode()).snapshot


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_our_outcome_is_as_stated(bundle: policyeng.Bundle, case: Case) -> None:
    """The built-in policy has the outcome of the table for the first resource."""
    first = _resource(case.case["resources"][0])["id"]
    parameters = {case.policy: _complete(case.case["parameters"])} if "parameters" in case.case else {}
    found = policyeng.evaluate(bundle, _snapshot(case.case), as_of=AS_OF, parameters=parameters)
    ours = {
        finding.outcome.value
        for finding in found.findings
        if finding.policy == case.policy and finding.resource == first
    }

    assert (ours or {"none"}) == {case.case["ours"]}


def test_a_difference_has_a_reason() -> None:
    """The outcomes are words that the table knows, and `why` is there where they differ and only there."""
    outcomes = {case.name: (case.case["peer"], case.case["ours"], bool(case.case.get("why"))) for case in CASES}

    assert len(outcomes) == len(CASES)
    assert [name for name, (peer, ours, why) in outcomes.items() if (peer != ours) != why] == []
    assert {ours for _, ours, _ in outcomes.values()} == OURS
    assert {peer for peer, _, _ in outcomes.values()} <= THEIRS


def test_every_defect_makes_a_difference() -> None:
    """Each of the sixteen has a case in which the peer's outcome is not ours."""
    differ = {entry["defect"] for entry in DEFECTS for case in entry["cases"].values() if case["peer"] != case["ours"]}

    assert differ == {f"P-{number:02}" for number in range(1, 17)}


class Row(NamedTuple):
    """A policy of docs/peers.md.

    Attributes:
        rules: the keys of the facts about sources.
        theirs: the rule sets with the ids of their rules.
        outcome: `same`, `differs` or `only here`.
        why: what ours does.
    """

    policy: str
    rules: str
    theirs: str
    outcome: str
    why: str


def _rows(columns: int) -> list[list[str]]:
    """Return the cells of the rows of the page that begin with a policy and have that many columns."""
    found = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    return [cells for cells in found if cells[0].startswith("[AML-") and len(cells) == columns]


ROWS = [Row(re.sub(r"\[(.+)\]\(policies/\1\.md\)", r"\1", first), *cells) for first, *cells in _rows(5)]


def test_the_page_has_every_policy_with_a_rule_of_others(bundle: policyeng.Bundle) -> None:
    """Each once, in order, with the rules that its source names, which the facts know."""
    sources = bundle.facts.document["sources"]
    expected = {policy.id: cited(policy.header.source).peers for policy in bundle.policies}
    expected = {policy: rules for policy, rules in sorted(expected.items()) if rules}

    assert {row.policy: tuple(row.rules.split(", ")) for row in ROWS} == expected
    assert [row.policy for row in ROWS] == list(expected)
    assert {rule for rules in expected.values() for rule in rules} <= set(sources)


def test_the_page_has_every_policy_without_a_counterpart(bundle: policyeng.Bundle) -> None:
    """Those whose source is their own id, with their titles."""
    sources = bundle.facts.document["sources"]
    own = {policy.id: policy for policy in bundle.policies if policy.id == f"AML-{policy.header.source}"}

    assert _rows(2) == [[f"[{name}](policies/{name}.md)", own[name].header.title] for name in sorted(own)]
    assert {sources[policy.header.source]["title"] for policy in own.values()} == {"policyeng's own rule"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.policy)
def test_the_page_states_what_the_cases_show(row: Row) -> None:
    """A difference in the cases is one on the page; only what has no counterpart or no published condition has none."""
    cases = [case.case for case in CASES if case.policy == row.policy]
    agreements = {case["peer"] == case["ours"] for case in cases}

    assert row.why
    if row.policy in UNPUBLISHED:
        assert (row.outcome, agreements) == ("differs", set())
    else:
        shown = "only here" if not cases else "differs" if False in agreements else "same"
        assert row.outcome == shown


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.policy)
def test_the_page_names_the_first_rule_set_of_the_facts(bundle: policyeng.Bundle, row: Row) -> None:
    """An id of the row is in the source of each of its rules; rules of Defender have no ids."""
    named = re.findall(r"`([^`]+)`", row.theirs) or re.findall(r"^Defender", row.theirs)
    sources = [bundle.facts.document["sources"][rule] for rule in row.rules.split(", ")]

    assert named
    assert [source for source in sources if not any(name in f"{source}" for name in named)] == []


def test_the_page_has_the_rules_of_the_cases() -> None:
    """By their ids; those of Azure Policy by the first eight digits."""
    named = set(re.findall(r"`([^`]+)`", PAGE.read_text(encoding="utf-8")))
    rules = {re.sub(r"^([0-9a-f]{8})-[0-9a-f-]{27}$", r"\1", entry["rule"]) for entry in (*DEFECTS, *FIXTURES)}

    assert rules <= named
