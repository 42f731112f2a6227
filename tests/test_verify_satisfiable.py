"""Witnesses and conflicts of classes of workloads, compared with plain enumeration, and the command for them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import combinations, product
from pathlib import Path
from random import Random

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.moments import describe_spans
from policyeng.bundle.policy_selection import with_profile
from policyeng.models import Outcome, Snapshot
from policyeng.verify.laws.outcome_laws import unsatisfiable
from policyeng.verify.satisfiability.classes import WorkloadClass, classes_of
from policyeng.verify.satisfiability.result import SatisfiabilityResult, answer
from tests.bundles import rego, workspace, write
from tests.command import policyeng

ROOT = Path(__file__).resolve().parents[1]
BROKEN = ROOT / "tests/broken/satisfiable"
NOW = datetime(2026, 6, 1, tzinfo=UTC)
ABOUT = [{"type": "Microsoft.MachineLearningServices/workspaces"}]
ZONES = ("a", "b", "c")
DENY = 'deny contains {{"msg": "m", "path": "{path}", "actual": zone, "expected": {expected}}} if {{ {condition} }}\n'
READ = "".join(f'{name} := object.get(input.resource, ["properties", "{name}"], "")\n' for name in ("zone", "tier"))


def policy(number: int, condition: str, path: str = "/id", expected: str = "1") -> str:
    """A policy that denies under a condition on `zone` and `tier` of a workspace."""
    body = DENY.format(path=path, expected=expected, condition=condition) + READ
    return rego(f"p{number}", body, identity=f"T-P-{number}")


def bundle_with(folder: Path, *conditions: str) -> Bundle:
    """A bundle with one policy for each condition, and a workspace to begin with."""
    files = {f"area/p{number}/p{number}.rego": policy(number, text) for number, text in enumerate(conditions, 1)}
    files["baselines/place.json"] = json.dumps(workspace(zone="", tier=""))
    return load_bundle(write(folder, files))


def subject(**more: object) -> WorkloadClass:
    """A class of a workspace with a zone and a tier."""
    choices = {
        "zone": {"at": {"place": "/properties/zone"}, "values": list(ZONES)},
        "tier": {"at": {"place": "/properties/tier"}, "values": [1, 2, 3]},
    }
    given = {"id": "c", "title": "t", "about": ABOUT, "estate": ["place"], "choices": choices}
    return WorkloadClass.model_validate({**given, **more})


def sets_of(found: SatisfiabilityResult) -> list[tuple[str, ...]]:
    """The conflicting sets of a result."""
    return [conflict.policies for conflict in found.conflicts]


def failing(bundle: Bundle, zone: str, tier: int, as_of: datetime) -> frozenset[str]:
    """The policies that a workspace does not pass, by a whole evaluation."""
    snapshot = Snapshot.model_validate({"resources": [workspace(zone=zone, tier=tier)]})
    findings = evaluate(bundle, snapshot, as_of=as_of).findings
    return frozenset(finding.policy for finding in findings if finding.outcome is not Outcome.PASS)


def by_trying(family: list[frozenset[str]]) -> list[tuple[str, ...]]:
    """Every smallest set of policies that each estate fails one of."""
    members = sorted(frozenset().union(*family))
    for size in range(len(members) + 1):
        if found := [taken for taken in combinations(members, size) if all(map(set(taken).intersection, family))]:
            return found
    return []


@pytest.mark.parametrize("seed", range(8))
def test_the_result_is_that_of_plain_enumeration(tmp_path: Path, seed: int) -> None:
    """Possible or not, the smallest sets and the day of every change are as if all were evaluated at every moment."""
    chance = Random(seed)  # noqa: S311  # nothing here is secret
    conditions = []
    for number in range(4):
        pairs = [pair for pair in product(ZONES, (1, 2, 3)) if chance.random() < 0.5]
        text = " ".join(f'[zone, tier] == ["{zone}", {tier}],' for zone, tier in pairs)
        table = f"true in [{text} false]"
        conditions.append(f'{table}; input.as_of >= "2026-0{number + 3}-05"' if number % 2 else table)
    bundle = bundle_with(tmp_path, *conditions)
    days = [datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=number) for number in range(0, 160, 7)]
    every = list(product(ZONES, (1, 2, 3)))
    enumerated = [any(not failing(bundle, *pair, day) for pair in every) for day in days]

    found = answer(subject(), bundle, NOW)
    family = [failing(bundle, *pair, NOW) for pair in every]

    assert (found.status == "possible") is (frozenset() in family)
    assert [possible(found, day) for day in days] == enumerated
    if found.status == "impossible":
        assert sets_of(found) == by_trying(family)


def possible(found: SatisfiabilityResult, moment: datetime) -> bool:
    """Whether the class is possible at a moment of the timeline."""
    return [span.possible for span in found.spans if span.begins is None or span.begins <= moment][-1]


def test_three_policies_conflict_and_each_two_of_them_do_not(tmp_path: Path) -> None:
    """Each policy leaves one zone; for each an estate is shown that passes all the others."""
    found = answer(subject(), bundle_with(tmp_path, 'zone == "a"', 'zone == "b"', 'zone == "c"', "tier == 3"), NOW)

    assert sets_of(found) == [("T-P-1", "T-P-2", "T-P-3")]
    assert [
        (rest.policy, dict(rest.assignment.chosen), sorted(rest.failing)) for rest in found.conflicts[0].remainders
    ] == [
        ("T-P-1", {"zone": '"a"', "tier": "1"}, ["T-P-1"]),
        ("T-P-2", {"zone": '"b"', "tier": "1"}, ["T-P-2"]),
        ("T-P-3", {"zone": '"c"', "tier": "1"}, ["T-P-3"]),
    ]


def test_dates_are_exact_to_the_day_and_state_why(tmp_path: Path) -> None:
    """A date in the code, and days before a date in the estate; what was possible ends with a reason."""
    conditions = ('zone != "a"; input.as_of >= "2026-07-04"', 'zone == "a"; input.as_of >= "2027-01-15"')
    found = answer(subject(), bundle_with(tmp_path, *conditions), NOW)

    assert describe_spans(found.spans) == "possible until 2027-01-14, impossible from 2027-01-15 on"
    assert found.endings == {datetime(2027, 1, 15, tzinfo=UTC): ("T-P-2: m (a)",)}
    assert found.witness is not None
    assert found.conflicts[0].at == datetime(2027, 1, 15, tzinfo=UTC)
    assert sets_of(found) == [("T-P-1", "T-P-2")]
    assert answer(subject(), load_bundle(tmp_path), datetime(2028, 1, 1, tzinfo=UTC)).status == "impossible"


def test_options_bring_their_part_of_the_estate(tmp_path: Path) -> None:
    """A choice is made where its place is, and where `when` applies; without the work it is no estate of the class."""
    bundle = bundle_with(tmp_path, 'zone == "a"; tier == 1')
    options = {
        "small": {"with": {"place": {"properties": {"tier": 1}}}},
        "large": {},
        "none": {"with": {"place": {"type": "x/y"}}},
    }
    zones = {"at": {"place": "/properties/zone"}, "values": list(ZONES), "when": {"kind": ["small"]}}
    found = answer(subject(choices={"kind": {"options": options}, "zone": zones}), bundle, NOW)

    assert found.witness is not None
    assert dict(found.witness.assignment.chosen) == {"kind": "small", "zone": '"b"'}
    conflicting = bundle_with(tmp_path, "true")
    found = answer(subject(choices={"kind": {"options": options}, "zone": zones}), conflicting, NOW)
    assert (found.tried, found.outside) == (4, 1)


def test_contradicting_policies_are_named_and_no_innocent_one() -> None:
    """One demands what the other forbids; the third fails everywhere until its denial has been listened to."""
    bundle = load_bundle(BROKEN)
    (anything,) = classes_of(bundle, chosen=["anything"])
    found = answer(anything, bundle, NOW)

    assert sets_of(found) == [("BROKEN-ACCESS-001", "BROKEN-ACCESS-002")]
    assert found.extension is not None
    assert "workspace /tags/reviewed" in found.extension.choices
    one = answer(anything, bundle.only([entry for entry in bundle.policies if entry.id != "BROKEN-ACCESS-001"]), NOW)
    assert one.witness is not None
    assert one.witness.assignment.chosen["workspace /tags/reviewed"] == '"yes"'


def test_the_law_finds_the_class_and_the_policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conflict is a violation, so is an expectation that is not met; an expected result is none."""
    monkeypatch.setattr(
        "policyeng.verify.laws.outcome_laws.classes_of",
        lambda bundle: classes_of(bundle, chosen=["anything", "regulated-realtime-gpu-inference"]),
    )
    (violation,) = unsatisfiable(load_bundle(BROKEN), NOW)[:1]

    assert violation.resource == "anything"
    assert "conflict: BROKEN-ACCESS-001, BROKEN-ACCESS-002" in violation.lines
    bundle = bundle_with(tmp_path, "true")
    wrong = {"impossible": "2026-01-01", "because": "b"}
    for expected, count in ((None, 1), (wrong, 1), ({**wrong, "impossible": "always"}, 0)):
        monkeypatch.setattr(
            "policyeng.verify.laws.outcome_laws.classes_of", lambda *_, given=expected: [subject(expected=given)]
        )
        assert len(unsatisfiable(bundle, NOW)) == count


def documented(column: int = 1) -> Mapping[str, str]:
    """Return what a column of the table in docs/satisfiability.md has for each of our classes."""
    page = (ROOT / "docs/satisfiability.md").read_text(encoding="utf-8")
    table = page.partition("## Our classes")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| `")]
    return {row[1].strip(" `"): row[1 + column].strip() for row in rows}


@pytest.mark.slow
def test_our_classes_are_decided_as_documented() -> None:
    """Classes that need the documents' isolated GPU sizes end with these; all else is possible at all known dates."""
    bundle = load_bundle()
    results = {entry.id: answer(entry, bundle, NOW) for entry in classes_of(bundle)}

    assert {name: describe_spans(found.spans) for name, found in results.items()} == documented()
    assert all(found.is_as_expected for found in results.values())
    found = results["regulated-gpu-training-on-managed-compute"]
    assert found.witness is not None
    assert found.witness.assignment.chosen["size"] == "Standard_NC64as_T4_v3"


@pytest.mark.slow
def test_the_documents_contradict_themselves() -> None:
    """With their profile, the conflicts come out with the policies and the date."""
    bundle = load_bundle()
    conflicts = {
        "regulated-realtime-gpu-inference": ("AML-INF-101", "AML-ISO-101", "AML-ISO-103"),
        "regulated-gpu-training-on-managed-compute": ("AML-ISO-101", "AML-ISO-103", "AML-SKU-102"),
    }
    for entry in classes_of(bundle, chosen=[*conflicts]):
        found = answer(entry, bundle, NOW, with_profile(bundle, "documents", {}))
        assert conflicts[entry.id] in sets_of(found)
        assert describe_spans(found.spans) == documented(column=2)[entry.id]


CLASS = """\
id: tagged
title: A workspace in one of two regions
estate: [workspace]
about: [{type: Microsoft.MachineLearningServices/workspaces}]
choices:
  region: {at: {workspace: /location}, values: [eastus, westus]}
"""
REGION = (
    'deny contains {"msg": "m", "path": "/location", "actual": 1, "expected": 1} if input.resource.location != "westus"'
)


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A user's bundle with one policy, and a class next to it."""
    return write(tmp_path, {"b/area/a/a.rego": rego("a", REGION), "tagged.yaml": CLASS})


def test_a_users_class_has_a_witness_that_check_accepts(user: Path) -> None:
    """The file that is written passes with the printed command."""
    ours = ("--policy", str(user / "b"))
    chosen = ("--classes", str(user / "tagged.yaml"), "--class", "tagged", "--witness", str(user / "w"))
    ran = policyeng("verify", "--satisfiable", *ours, *chosen, "--as-of", "2026-06-01T00:00:00Z")

    assert (ran.returncode, ran.stderr) == (0, "")
    assert 'witness: region "westus"' in ran.stdout
    assert "possible as of 2026-06-01T00:00:00Z; possible at all known dates" in ran.stdout
    assert "exit 0: 1 class: 1 possible" in ran.stdout
    command = next(line for line in ran.stdout.splitlines() if "policyeng check" in line).split()[1:]
    again = policyeng(*command)
    assert (again.returncode, "PASSED: no failures" in again.stdout) == (0, True)


def test_an_impossible_class_exits_1_in_every_format() -> None:
    """Text, JSON and JUnit carry the same."""
    given = ("verify", "--satisfiable", "--policy", str(BROKEN), "--class", "anything", "--format")
    ran = {form: policyeng(*given, form) for form in ("text", "json", "junit")}
    report = json.loads(ran["json"].stdout)
    suite = ET.fromstring(ran["junit"].stdout)[0]  # noqa: S314  # our own report

    assert {entry.returncode for entry in ran.values()} == {1}
    assert "the fewest policies that conflict: BROKEN-ACCESS-001, BROKEN-ACCESS-002" in ran["text"].stdout
    assert report["classes"][0]["conflicts"][0]["policies"] == ["BROKEN-ACCESS-001", "BROKEN-ACCESS-002"]
    assert report["exitCode"] == 1
    assert (suite.attrib["tests"], suite.attrib["failures"], suite[0][0].tag) == ("1", "1", "failure")


def test_a_class_that_nothing_evaluates_is_undecided(user: Path) -> None:
    """A class whose work no policy evaluates has no witness, and none of its policies conflict."""
    other = CLASS.replace("estate: [workspace]", "estate: [workspace, budget]").replace(
        "about: [{type: Microsoft.MachineLearningServices/workspaces}]",
        "about: [{type: Microsoft.Consumption/budgets}]",
    )
    path = write(user, {"other.yaml": other}) / "other.yaml"
    ran = policyeng("verify", "--satisfiable", "--policy", str(user / "b"), "--classes", str(path), "--class", "tagged")

    assert ran.returncode == 2
    assert "not judged: no policy evaluates the resources of the class" in ran.stdout


def test_usage() -> None:
    """Options that belong to it alone, two ways of asking at once, and unknown classes."""
    assert policyeng("verify", "--class", "x").returncode == 3
    assert "cannot be combined" in policyeng("verify", "--satisfiable", "--engines").stderr
    ran = policyeng("verify", "--satisfiable", "--class", "batch-scorin")
    assert (ran.returncode, "did you mean `batch-scoring`" in ran.stderr) == (3, True)
