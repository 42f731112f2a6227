"""What rules of others give, as denials and marks."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.engines.opa_query import OpaOptions
from policyeng.models import Denial, Evaluation, Outcome
from policyeng.report import FORMATS, sarif
from policyeng.sources import load_snapshot
from tests.bundles import write
from tests.conftest_binary import AS_OF


def evaluated(folder: Path, source: str, document: str = '{"x": 1}') -> Evaluation:
    """One module over one document."""
    bundle: Bundle = load_bundle(write(folder / "p", {"a.rego": source}))
    write(folder, {"x.json": document})
    return evaluate(bundle, load_snapshot(folder / "x.json", documents=True, resources=False), as_of=AS_OF)


@pytest.mark.parametrize(
    ("element", "denial"),
    [
        ('"text"', Denial(msg="text")),
        ('{"msg": "m"}', Denial(msg="m")),
        ('{"msg": "m", "details": {}, "n": 1}', Denial(msg="m", actual={"details": {}, "n": 1})),
        (
            '{"msg": "m", "path": "/a/0", "expected": 2, "actual": 1}',
            Denial(msg="m", path="/a/0", expected=2, actual=1),
        ),
        ('{"msg": "m", "path": "a.b", "actual": 1}', Denial(msg="m", actual={"path": "a.b", "actual": 1})),
        ('{"msg": "m", "path": 7}', Denial(msg="m", actual={"path": 7})),
    ],
)
def test_members_are_kept_where_a_reader_sees_them(tmp_path: Path, element: str, denial: Denial) -> None:
    """What we have a place for goes there if it fits, and the rest into `actual`."""
    [finding] = evaluated(tmp_path, f"package a\ndeny contains {element} if input.x").findings
    assert finding.denials == (denial,)


def test_a_list_of_messages_is_as_good_as_a_set(tmp_path: Path) -> None:
    """Conftest takes both."""
    [finding] = evaluated(tmp_path, 'package a\nwarn := ["one", {"msg": "two"}] if input.x').findings
    assert [denial.msg for denial in finding.denials] == ["one", "two"]


@pytest.mark.parametrize("element", ["1", '{"text": "m"}', '{"msg": 1}', "null"])
def test_an_element_without_a_message_is_an_error(tmp_path: Path, element: str) -> None:
    """Conftest drops some of them without a word."""
    evaluation = evaluated(tmp_path, f"package a\ndeny contains {element} if input.x")
    assert [finding.outcome for finding in evaluation.findings] == [Outcome.ERROR]
    assert evaluation.exit_code == 2


@pytest.mark.parametrize(
    ("exception", "marked"),
    [
        ('exception contains ["root"] if input.x', ["a.deny_root"]),
        ('exception contains {"", "root"} if input.x', ["a.deny", "a.deny_root"]),
        ('exception := [["root", "x"], [""]]', ["a.deny", "a.deny_root"]),
        ('exception contains {"k": "root"} if input.x', ["a.deny_root"]),
        ('exception contains ["root"] if input.y', []),
        ('exception contains "root" if input.x', []),
        ("exception if input.x", []),
    ],
)
def test_an_exception_rule_marks_and_hides_nothing(tmp_path: Path, exception: str, marked: list[str]) -> None:
    """What it excepts still fails, with a mark that shows it, and fails no run; forms are those of Conftest's query."""
    source = f'package a\ndeny contains "one" if input.x\ndeny_root contains "two" if input.x\n{exception}'
    evaluation = evaluated(tmp_path, source)

    assert [str(finding.outcome) for finding in evaluation.findings] == ["fail", "fail"]
    assert [finding.policy for finding in evaluation.findings if finding.exemption] == marked
    assert evaluation.exit_code == (0 if len(marked) == 2 else 1)
    assert evaluation.summary.exempt == len(marked)


def test_every_report_shows_the_mark_of_an_exception(tmp_path: Path) -> None:
    """No owner and no end are made up for it."""
    evaluation = evaluated(tmp_path, 'package a\ndeny_r contains "one" if input.x\nexception contains ["r"] if input.x')
    [finding] = evaluation.findings
    assert finding.exemption is not None
    assert (finding.exemption.id, finding.exemption.category) == ("data.a.exception", "exception")
    assert finding.exemption.expires_at is None
    assert "exempt by rule data.a.exception" in sarif.render(evaluation, include_exempt=True)
    for name, render in FORMATS.items():
        if name == "sarif":  # it leaves out what an exemption covers, unless it is requested
            continue
        wide = {"width": 500} if name == "text" else {}  # each finding has one line, and the file has a long name
        assert "the rule excepts" in render(evaluation, **wide).replace("\\n", " "), name


def test_messages_of_a_warning_fail_no_run(tmp_path: Path) -> None:
    """A warning is a failure of severity info."""
    evaluation = evaluated(tmp_path, 'package a\nwarn contains "one" if input.x')
    assert (evaluation.exit_code, evaluation.summary.fail) == (0, 1)


@pytest.mark.parametrize("style", ["annotated", "gatekeeper", "kubernetes", "konstraint", "suffixes", "terraform_plan"])
def test_an_opa_server_decides_the_same(style: str, opa: Path) -> None:
    """Documents, reviews, exceptions and Rego v0 on the other engine."""
    folder = Path(__file__).parent / "collections" / style
    data = [folder / "data"] if (folder / "data").is_dir() else []
    bundle = load_bundle(folder / "policy", data=data)
    snapshot = load_snapshot(folder / "inputs", documents=True, resources=False)
    embedded = evaluate(bundle, snapshot, as_of=AS_OF)
    server = evaluate(bundle, snapshot, as_of=AS_OF, engine="opa", opa=OpaOptions(binary=opa))

    assert server.findings == embedded.findings
    assert embedded.summary.fail
