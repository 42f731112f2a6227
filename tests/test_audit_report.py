"""A run of an estate as a report: many parts as one, with their past."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.audit import run_report
from policyeng.audit.run_report import Listed, csv_lines, reported, run_to_report
from policyeng.audit.store.integrity import prune
from policyeng.errors import UsageError
from policyeng.models import Evaluation, Outcome, Severity
from policyeng.sources import load_snapshot
from tests.audits import START, Audited
from tests.bundles import workspace
from tests.command import policyeng
from tests.report_samples import ISOLATION, PUBLIC_ACCESS, passing


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[Audited]:
    """Three runs: one failure, then a second, then the first is fixed."""
    audited = Audited(tmp_path)
    audited.audit()
    audited.put("b", {"three": {"x": 1, "owner": "o"}})
    audited.audit()
    audited.put("a", {"one": {"x": 0, "owner": "o"}, "two": {"x": 0, "owner": "o"}})
    audited.audit()
    yield audited
    audited.close()


def rows(text: str) -> list[dict[str, str]]:
    """The rows of CSV."""
    return list(csv.DictReader(StringIO(text, newline="")))


def test_the_findings_of_all_parts_are_in_one_report(audited: Audited) -> None:
    """The counts, the exit, the clock and the engine are those of the run."""
    run = run_to_report(audited.store, "production")
    evaluation = reported(audited.store, run).evaluation

    assert run.number == 3
    assert (evaluation.summary, evaluation.exit_code, evaluation.as_of) == (run.summary, run.exit_code, run.as_of)
    assert (evaluation.bundle, evaluation.engine, evaluation.snapshot.digest) == (run.bundle, run.engine, run.content)
    assert len(evaluation.findings) == run.summary.pass_ + run.summary.fail
    assert [(f.policy, f.resource) for f in evaluation.findings if f.outcome is Outcome.FAIL] == [
        ("T-A-1", workspace("three")["id"])
    ]
    assert evaluation.findings == tuple(sorted(evaluation.findings, key=lambda f: (f.policy, f.resource)))


def test_a_report_on_one_part_is_that_of_check(tmp_path: Path) -> None:
    """Audit and check agree."""
    audited = Audited(tmp_path)
    audited.drop("b")
    audited.drop("c")
    reported_ = reported(audited.store, audited.audit()).evaluation
    checked = evaluate(audited.held.bundle, load_snapshot(tmp_path / "estate/a.json"), as_of=START)
    audited.close()

    def content(evaluation: Evaluation) -> list[object]:
        return [(f.policy, f.resource, f.outcome, f.denials) for f in evaluation.findings]

    assert content(reported_) == content(checked)
    assert (reported_.summary, reported_.snapshot.digest) == (checked.summary, checked.snapshot.digest)


def test_trends_and_since_come_from_the_past_up_to_the_run(audited: Audited) -> None:
    """A run of before is reported as it was then; failures are counted for each run from their spans."""
    newest, older = (reported(audited.store, audited.store.run(number)).about.trend for number in (3, 2))
    assert newest is not None
    assert older is not None

    assert [point.failures[Severity.HIGH] for point in newest.points] == [1, 2, 1]
    assert [point.failures[Severity.HIGH] for point in older.points] == [1, 2]
    assert [point.run for point in newest.points] == [1, 2, 3]
    assert {key[1]: since.run for key, since in newest.since.items()} == {workspace("three")["id"]: 2}
    assert {key[1]: since.as_of for key, since in older.since.items()} == {
        workspace("one")["id"]: START,
        workspace("three")["id"]: START + timedelta(days=1),
    }


def test_trends_begin_with_the_newest_runs(audited: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    """What existed before them counts in them."""
    monkeypatch.setattr(run_report, "RUNS", 2)
    trend = reported(audited.store, audited.store.run(3)).about.trend
    assert trend is not None
    assert [(point.run, point.failures[Severity.HIGH]) for point in trend.points] == [(2, 2), (3, 1)]


def test_csv_has_every_finding_of_every_part(audited: Audited) -> None:
    """With since when it exists in its part."""
    listed = rows("".join(csv_lines(audited.store, audited.store.run(2))))

    assert len(listed) == 8
    assert {row["resource"].rpartition("/")[2]: row["since"] for row in listed if row["outcome"] == "fail"} == {
        "one": "2026-06-01T00:00:00Z",
        "three": "2026-06-02T00:00:00Z",
    }
    assert {row["file"] for row in listed} == {"a.json", "b.json", "c.json"}


def test_what_is_not_listed_is_counted_and_mentioned() -> None:
    """Of what needs a reader the least severe goes, and passes beyond a number."""
    listed = Listed(needing=2, passing=1)
    low = PUBLIC_ACCESS.model_copy(update={"policy": "AML-LOW-001", "severity": Severity.LOW})
    listed.add([low, passing("P-1"), PUBLIC_ACCESS, passing("P-2"), passing("P-3"), ISOLATION])

    assert [finding.policy for finding in listed.findings()] == ["AML-ISO-101", "AML-NET-001", "P-1"]
    assert [problem.message for problem in listed.problems()] == [
        "1 of the least severe findings are counted and not listed; the report as csv has them all",
        "2 passes are counted and not listed; the report as csv has them all",
    ]


def test_a_part_that_could_not_be_read_is_a_problem_of_the_report(audited: Audited) -> None:
    """The others are reported."""
    audited.write("a", b"{")
    evaluation = reported(audited.store, audited.audit()).evaluation

    assert any(problem.level == "error" and "a.json" in problem.place for problem in evaluation.problems)
    assert evaluation.exit_code == 2
    assert evaluation.findings


def test_the_run_is_found_or_has_to_be_named(audited: Audited) -> None:
    """The only estate needs no name; a misspelt one has the nearest."""
    store = audited.store
    assert run_to_report(store, None).number == 3
    assert run_to_report(store, None, 2).number == 2
    for estate, number, message in (
        ("prodution", None, "there is no run of estate `prodution`; did you mean `production`"),
        (None, 9, "there is no run 9"),
        ("other", 1, "run 1 is of estate `production`"),
    ):
        with pytest.raises(UsageError) as refused:
            run_to_report(store, estate, number)
        assert message in str(refused.value)


def test_the_command_writes_each_format(audited: Audited, tmp_path: Path) -> None:
    """HTML with trends, the JSON report, Markdown, text, and CSV as a file or printed."""
    store = ("--store", audited.url)
    for name in ("html", "json", "markdown", "text", "csv", "csv-bom"):
        ran = policyeng("audit", "report", "production", *store, "--format", name, "--output", str(tmp_path / name))
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    printed = policyeng("audit", "report", *store, "--format", "csv", "--run", "3").stdout
    text = policyeng("audit", "report", *store, "--group-by", "policy").stdout

    written = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert b"Compliance over runs" in written["html"]
    assert b"Run 3 of estate production" in written["html"]
    assert json.loads(written["json"])["summary"]["fail"] == 1
    assert written["csv-bom"] == "\ufeff".encode() + written["csv"]
    assert printed.encode() == written["csv"]
    assert "FAILED: 1 failure" in text
    assert written["markdown"].startswith(b"## policyeng: 1 failure")


def test_the_forms_of_text_are_those_of_check(audited: Audited, tmp_path: Path) -> None:
    """Printed and written."""
    options = ("", "--summary", "--quiet", "--verbose", "--all")
    printed = {}
    for option in options:
        given = ("audit", "report", "--store", audited.url, *([option] if option else []))
        printed[option] = policyeng(*given).stdout
        assert policyeng(*given, "--output", str(tmp_path / "report")).returncode == 0
        assert (tmp_path / "report").read_text(encoding="utf-8").split() == printed[option].split()

    assert printed["--all"] == printed[""]  # there are fewer resources than are left out
    assert len({printed[option] for option in options}) == len(options) - 1
    assert len(printed["--quiet"]) < len(printed[""]) < len(printed["--verbose"])
    assert "\n  fix " not in printed["--summary"]


def test_a_run_whose_findings_are_gone_is_refused(audited: Audited) -> None:
    """In every format; the newest has its trends still, which need the spans alone."""
    prune(audited.store, now=START, keep_runs=1)

    for name in ("html", "csv", "json"):
        ran = policyeng("audit", "report", "--store", audited.url, "--run", "1", "--format", name)
        assert ran.returncode == 3
        assert "deleted by retention" in ran.stderr
    trend = reported(audited.store, audited.store.run(3)).about.trend
    assert trend is not None
    assert [point.failures[Severity.HIGH] for point in trend.points] == [1, 2, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--format", "sarif"), "unknown report format `sarif`"),
        (("--format", "csv", "--group-by", "policy"), "--group-by does not apply to csv"),
        (("--format", "html", "--summary"), "--summary does not apply to html"),
        (("--quiet", "--verbose"), "--verbose and --quiet exclude each other"),
        (("--summary", "--all"), "--all does not apply to --summary"),
        (("--output", "none/report.html"), "no such directory"),
        (("--run", "0"), "invalid value for `--run`"),
    ],
)
def test_what_does_not_fit_is_refused(audited: Audited, arguments: tuple[str, ...], message: str) -> None:
    """Before anything is written."""
    ran = policyeng("audit", "report", "--store", audited.url, *arguments)
    assert ran.returncode == 3
    assert message in ran.stderr
