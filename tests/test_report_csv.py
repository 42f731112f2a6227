"""CSV: what a parser reads back, and what a spreadsheet does not calculate."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.models import Evaluation, Location, Place
from policyeng.report.csv import COLUMNS, guarded, render, render_marked, unguarded
from policyeng.report.escaping import visible
from tests.command import policyeng
from tests.report_pages import ABOUT
from tests.report_samples import ISOLATION, PUBLIC_ACCESS, SAMPLES, evaluation_of, evaluations, laws


def rows(text: str) -> list[dict[str, str]]:
    """The rows as a parser reads them."""
    return list(csv.DictReader(StringIO(text, newline=""), strict=True))


def test_a_row_has_the_content_of_a_finding() -> None:
    """With owner, area, controls and since when."""
    row = next(row for row in rows(render(SAMPLES["every outcome"], about=ABOUT)) if row["policy"] == "AML-NET-001")

    assert row == {
        "policy": "AML-NET-001",
        "title": "Public network access to the workspace is disabled",
        "severity": "high",
        "outcome": "fail",
        "resource": PUBLIC_ACCESS.resource,
        "resource_type": "Microsoft.MachineLearningServices/workspaces",
        "owner": "ml-platform",
        "area": "network",
        "controls": "mcsb-v1 NS-2",
        "since": "2026-05-23T00:00:00Z",
        "reasons": "public network access is not disabled: /properties/publicNetworkAccess is Enabled, "
        "expected Disabled",
        "undecided": "",
        "exemption": "",
        "exempt_until": "",
        "exempt_because": "",
        "remediation": PUBLIC_ACCESS.remediation,
        "source": PUBLIC_ACCESS.source,
        "file": "samples/inference.json",
        "line": "12",
        "column": "1",
        "address": "",
        "why": "",
        "url": "",
    }


def test_the_place_is_that_of_the_field() -> None:
    """As in the text report, and its name in the format of the file."""
    path = ISOLATION.denials[0].path
    location = Location(fields={path: Place(file="infra/cluster.yml", line=9, column=7, address="size")})
    (row,) = rows(render(evaluation_of([ISOLATION.model_copy(update={"location": location})])))

    assert (row["file"], row["line"], row["column"], row["address"]) == ("infra/cluster.yml", "9", "7", "size")


def test_exempt_and_undecided_findings_state_why() -> None:
    """An exempt failure stays a failure, with its exemption next to it."""
    found = {row["policy"]: row for row in rows(render(SAMPLES["every outcome"]))}

    assert found["AML-NET-104"]["outcome"] == "fail"
    assert (found["AML-NET-104"]["exemption"], found["AML-NET-104"]["exempt_until"]) == ("EX-7", "2026-12-31T00:00:00Z")
    assert found["AML-TRN-103"]["undecided"] == "the deadline of 1000 ms passed while judging"
    assert found["AML-ISO-101"]["reasons"].count(" | ") == 1


@laws
@given(evaluation=evaluations())
def test_every_finding_has_one_row_that_identifies_it(evaluation: Evaluation) -> None:
    """Each line ends with CRLF (RFC 4180), and taking the guard away gives the names as every report shows them."""
    text = render(evaluation)

    assert text.count("\r\n") == len(evaluation.findings) + 1 == text.count("\n")
    found = [(unguarded(row["policy"]), unguarded(row["resource"]), row["outcome"]) for row in rows(text)]
    assert found == [(visible(f.policy), visible(f.resource), f.outcome) for f in evaluation.findings]
    assert all(None not in row and len(row) == len(COLUMNS) for row in rows(text))


@given(st.text(alphabet="=+-@'\uff1d\uff0b\uff0d\uff20; \u00a0\t\r\nab", max_size=12))
def test_the_guard_can_be_taken_away(text: str) -> None:
    """No cell begins with what a spreadsheet calculates, also where it parts lines at semicolons."""
    assert unguarded(guarded(text)) == text
    for part in guarded(text).split(";"):
        assert not part.lstrip().startswith(tuple("=+-@\uff1d\uff0b\uff0d\uff20"))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ('=HYPERLINK("http://evil.test";"x")', '\'=HYPERLINK("http://evil.test";"x")'),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("  -2+3+cmd|' /C calc'!A0", "  '-2+3+cmd|' /C calc'!A0"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("x;=1+1", "x;'=1+1"),
        ("'quoted", "''quoted"),
        ("\t=1+1", "\\t=1+1"),
        ("a\nb\u202e", "a\\nb\\u202e"),
        ("/subscriptions/x", "/subscriptions/x"),
    ],
)
def test_names_are_shown_and_not_calculated(name: str, shown: str) -> None:
    """Formulas, those after spaces, in full width or after a semicolon; what cannot be seen is an escape."""
    [row] = rows(render(evaluation_of([PUBLIC_ACCESS.model_copy(update={"resource": name})])))

    assert row["resource"] == shown


def test_the_encoding_is_marked_for_excel() -> None:
    """By a byte order mark, before the same text."""
    evaluation = SAMPLES["every outcome"]
    assert render_marked(evaluation) == "\ufeff" + render(evaluation)


def test_the_command_takes_the_tag_of_owners(root: Path, tmp_path: Path) -> None:
    """In any letter case; without one it is the workspace's, and without both there is none."""
    snapshot = str(root / "samples/workspaces/regulated.json")
    written = tmp_path / "findings.csv"
    policyeng("check", snapshot, "--output", f"csv={written}", "--owner-tag", "OWNER")
    by_other = policyeng("check", snapshot, "--format", "csv", POLICYENG_OWNER_TAG="nobody")

    octets = written.read_bytes()
    assert octets.count(b"\r\n") == octets.count(b"\n")
    assert {row["owner"] for row in rows(octets.decode())} >= {"ml-platform@contoso.example"}
    assert {row["owner"] for row in rows(by_other.stdout)} == {""}
    assert policyeng("check", snapshot, "--format", "html", "--owner-tag", " ").returncode == 3
