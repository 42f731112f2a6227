"""What is printed of comparisons, courses, lives, outlooks and impacts, and the published schema."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from policyeng.audit.diff import forecast, impact, report, trends
from policyeng.audit.diff.comparison import summarize
from policyeng.audit.diff.forecast import Outlook, UpcomingChange
from policyeng.audit.diff.impact import FlipCounts, Impact, Shifted
from policyeng.audit.diff.inputs import Cause, CauseKind, Comparison, Flip, PathChange
from policyeng.audit.diff.report import cause_sentence, diff_schema
from policyeng.audit.diff.report import render_json as render
from policyeng.audit.diff.trends import ComplianceTrend, FindingHistory, TrendPoint, Turn
from policyeng.models import BundleRef, Outcome, Severity
from policyeng.report.escaping import visible
from tests.report_samples import HOSTILE, PUBLIC_ACCESS, evaluations, laws

REGENERATE = (
    ".venv/bin/python -c 'import json; from policyeng.audit.diff.report import diff_schema;"
    " print(json.dumps(diff_schema(), indent=2))' > docs/diff.schema.json"
)
AT = datetime(2026, 6, 1, tzinfo=UTC)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_LISTS = ("new", "fixed", "changed", "persisting")
_TEXTS = st.sampled_from(["/properties/x", "a", "", HOSTILE])
_CAUSES = st.builds(
    Cause,
    kind=st.sampled_from(CauseKind),
    change=st.sampled_from(["came", "went", "changed", "began", "lapsed", "ended"]),
    subject=_TEXTS,
    paths=st.lists(
        st.builds(
            PathChange,
            path=_TEXTS,
            change=st.sampled_from(["came", "went", "changed"]),
            before=st.sampled_from([None, 1, HOSTILE]),
            after=st.sampled_from([None, {"a": [1]}, "x" * 500]),
        ),
        max_size=6,
    ).map(tuple),
    before=_TEXTS,
    after=_TEXTS,
)


@st.composite
def comparisons(draw: st.DrawFn) -> Comparison:
    """Any comparison: the findings of an evaluation, each in one of its lists."""
    evaluation = draw(evaluations())
    lists: dict[str, list[object]] = {name: [] for name in _LISTS}
    for finding in evaluation.findings:
        name = draw(st.sampled_from(_LISTS))
        if name == "persisting":
            lists[name].append(finding)
            continue
        sides = [draw(st.sampled_from([None, *Outcome])), finding.outcome]
        before, after = sides[::-1] if name == "fixed" else sides
        causes = tuple(tuple(draw(st.lists(_CAUSES, min_size=1, max_size=2))) for _ in range(draw(st.integers(0, 2))))
        reopened = draw(st.booleans())
        lists[name].append(Flip(before=before, after=after, causes=causes, finding=finding, reopened=reopened))
    side, code = summarize(evaluation), draw(st.sampled_from([0, 1, 2]))
    return Comparison.model_validate(
        {"exit_code": code, "before": side, "after": side, "problems": evaluation.problems, **lists}
    )


@pytest.mark.slow
@laws
@given(comparisons())
def test_a_comparison_reads_back_and_fits_the_schema(comparison: Comparison) -> None:
    """Nothing is lost, whatever the names, values and zones."""
    rendered = render(comparison)

    assert Comparison.model_validate_json(rendered) == comparison
    Draft202012Validator(diff_schema()).validate(json.loads(rendered))


def test_the_published_schema_is_up_to_date(root: Path) -> None:
    """`docs/diff.schema.json` is the schema of the models."""
    published = (root / "docs" / "diff.schema.json").read_text(encoding="utf-8")

    assert published == json.dumps(diff_schema(), indent=2) + "\n", f"stale; write it with: {REGENERATE}"
    Draft202012Validator.check_schema(diff_schema())


@laws
@given(comparisons(), st.integers(1, 200))
def test_the_text_and_the_markdown_are_plain(comparison: Comparison, width: int) -> None:
    """Colour adds colours alone, what people read is visible, and no name is markup."""
    plain = report.render_text(comparison, width=width)
    tabled = report.render_markdown(comparison)

    assert _ANSI.sub("", report.render_text(comparison, color=True, width=width)) == plain
    assert visible(plain, keep="\n") == plain
    assert visible(tabled, keep="\n") == tabled
    assert f"exit {comparison.exit_code}: " in plain
    assert "<script" not in tabled
    for name in _LISTS:
        if found := getattr(comparison, name):
            assert f"{len(found)} {name}" in " ".join(plain.split())


@pytest.mark.parametrize(
    ("cause", "sentence"),
    [
        (Cause(kind=CauseKind.POLICY, change="changed", before="a" * 64, after="b" * 64), "the policy changed from a"),
        (
            Cause(kind=CauseKind.EXEMPTION, change="lapsed", subject="E", before="T"),
            "the exemption E lapsed (it ended T)",
        ),
        (
            Cause(kind=CauseKind.EXEMPTION, change="ended", subject="E", before="T"),
            "the exemption E was taken back (until T)",
        ),
        (Cause(kind=CauseKind.CLOCK, change="changed", before="a", after="b"), "the clock changed from a to b"),
        (Cause(kind=CauseKind.QUOTA, change="went", subject="q"), "the quota q went"),
    ],
)
def test_a_cause_is_a_sentence(cause: Cause, sentence: str) -> None:
    """What became of what."""
    assert cause_sentence(cause).startswith(sentence)


def hostile_flip() -> Flip:
    """A flip of which every text is hostile."""
    finding = PUBLIC_ACCESS.model_copy(update={"title": HOSTILE, "resource": HOSTILE, "policy": HOSTILE})
    cause = Cause(
        kind=CauseKind.RESOURCE, change="changed", subject=HOSTILE, paths=(PathChange(path=HOSTILE, change="came"),)
    )
    return Flip(before=Outcome.PASS, after=Outcome.FAIL, causes=((cause,),), finding=finding)


def forms_of_everything() -> list[tuple[str, str]]:
    """Every form of a course, a life, an outlook and an impact with hostile names."""
    flip, bundle = hostile_flip(), BundleRef(name=HOSTILE, revision="", digest="d")
    point = TrendPoint(run=1, as_of=AT, parts=1, exit_code=0)
    turn = Turn(run=1, as_of=AT, turn="new", outcome=Outcome.FAIL, causes=flip.causes, note="")
    names = {"part": HOSTILE, "policy": HOSTILE, "resource": HOSTILE, "resource_type": "", "severity": Severity.LOW}
    courses = [ComplianceTrend(estate=HOSTILE, points=(point,))]
    lives = [FindingHistory.model_validate({"estate": HOSTILE, "turns": (turn,), **names})]
    coming = (UpcomingChange(at=AT, part=HOSTILE, flip=flip),)
    outlooks = [Outlook(exit_code=1, estate=HOSTILE, run=1, begins=AT, until=AT, coming=coming)]
    tally = FlipCounts(name=HOSTILE, failing=1)
    listed = (Shifted(part=HOSTILE, owner=HOSTILE, shift="newly failing", flip=flip),)
    impacts = [
        Impact(
            estate=HOSTILE,
            run=1,
            as_of=AT,
            was=bundle,
            would_be=bundle,
            parts=1,
            total=tally,
            by_policy=(tally,),
            by_owner=(tally,),
            listed=listed,
            omitted=3,
        )
    ]
    forms: list[tuple[str, str]] = [(name, form(courses)) for name, form in trends.COURSES.items()]
    forms += [(name, form(lives)) for name, form in trends.LIVES.items()]
    forms += [(name, form(outlooks)) for name, form in forecast.FORMS.items()]
    forms += [(name, form(impacts)) for name, form in impact.FORMS.items()]
    return forms


def test_hostile_names_do_nothing_in_any_form() -> None:
    """Every character is visible, no cell is a formula, JSON is JSON and no markup comes from a name."""
    for name, printed in forms_of_everything():
        assert visible(printed, keep="\r\n") == printed, name
        if name == "json":
            assert json.loads(printed)
        if name == "markdown":
            assert "<script" not in printed
        if name == "csv":
            rows: Sequence[Sequence[str]] = list(csv.reader(StringIO(printed, newline="")))
            assert len({len(row) for row in rows}) == 1
            assert not any(cell.startswith(("=", "+", "@", "\t")) for row in rows for cell in row)


@laws
@given(comparisons())
def test_the_text_counts_the_persisting_findings_that_it_does_not_name(comparison: Comparison) -> None:
    """Ten are named, whatever their number."""
    persisting = (PUBLIC_ACCESS,) * 13

    plain = report.render_text(comparison.model_copy(update={"persisting": persisting}))

    assert "  and 3 more, which the JSON form lists\n" in plain
