"""Evidence: what no API returns, stated in a snapshot, decides policies whose header requires it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.bundle import load_bundle
from policyeng.errors import BundleError
from policyeng.models import Evaluation, JsonObject, Outcome
from policyeng.sources import native
from policyeng.sources.reader import read_inputs
from tests.bundles import WORKSPACE, deny_when, rego, snapshot, workspace, write

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
HEADER = rego("a", "", more="evidence: true")
SWITCHED = rego("a", "", more="evidence: true\nparameters: {required: {type: boolean, default: false}}")


def entry(**changed: object) -> JsonObject:
    """An active entry of evidence for the policy of `HEADER`."""
    return {
        "id": "E-1",
        "for": "T-A-1",
        "scope": "-",
        "statement": "a restart was tested",
        "givenBy": "anna@contoso.example",
        "givenAt": "2026-01-01T00:00:00Z",
        "expiresAt": "2026-12-01T00:00:00Z",
        **changed,
    }


def evaluated(tmp_path: Path, *entries: JsonObject, text: str = HEADER, **options: object) -> Evaluation:
    """The evaluation of one workspace by one policy with these entries."""
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": text}))
    stated = snapshot(workspace(), evidence=list(entries))
    return evaluate(bundle, stated, as_of=AS_OF, **options)  # type: ignore[arg-type]  # options vary by test


LAPSED = {"givenAt": "2025-12-01T00:00:00Z", "expiresAt": "2026-06-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("entries", "outcome"),
    [
        ([], Outcome.UNKNOWN),
        ([entry()], Outcome.PASS),
        ([{**entry(), "for": "t-a-1"}], Outcome.PASS),
        ([{**entry(), "for": "T-A-10"}], Outcome.UNKNOWN),
        ([entry(scope=WORKSPACE.upper())], Outcome.PASS),
        ([entry(scope="/subscriptions/s")], Outcome.PASS),
        ([entry(scope=WORKSPACE + "2")], Outcome.UNKNOWN),
        ([entry(scope="/subscriptions/{subscription}")], Outcome.UNKNOWN),
        ([entry(givenAt="2026-06-01T00:00:00Z")], Outcome.PASS),
        ([entry(givenAt="2026-06-01T00:00:01Z")], Outcome.UNKNOWN),
        ([entry(expiresAt="2026-06-01T00:00:01Z")], Outcome.PASS),
        ([entry(**LAPSED)], Outcome.FAIL),
        ([entry(**LAPSED, scope="/subscriptions/other")], Outcome.UNKNOWN),
        ([entry(**LAPSED, scope="/subscriptions/{subscription}")], Outcome.UNKNOWN),
        ([entry(**LAPSED), entry(id="E-2")], Outcome.PASS),
    ],
)
def test_evidence_in_force_passes_and_lapsed_evidence_fails(
    tmp_path: Path, entries: list[JsonObject], outcome: Outcome
) -> None:
    """Only entries for the policy whose scope covers the resource count; without any the finding is unknown."""
    (finding,) = evaluated(tmp_path, *entries).findings

    assert finding.outcome is outcome


def test_a_failure_shows_who_gave_the_evidence_that_lapsed_last(tmp_path: Path) -> None:
    """The denial is at `/id` and its `actual` is the lapse."""
    older = entry(id="E-0", givenAt="2025-01-01T00:00:00Z", expiresAt="2025-06-01T00:00:00Z", givenBy="ben")
    (finding,) = evaluated(tmp_path, older, entry(**LAPSED)).findings

    (denial,) = finding.denials
    assert denial.path == "/id"
    assert denial.actual == {"evidence": "E-1", "givenBy": "anna@contoso.example", "expiresAt": "2026-06-01T00:00:00Z"}


def test_a_policy_that_is_not_required_has_no_findings(tmp_path: Path) -> None:
    """The engine honours a boolean parameter `required`."""
    assert not evaluated(tmp_path, entry(), text=SWITCHED).findings
    (finding,) = evaluated(tmp_path, text=SWITCHED, parameters={"T-A-1": {"required": True}}).findings
    assert finding.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"area/a/a.rego": rego("a", deny_when("true"), more="evidence: true")},
            "the header states `evidence: true`, and the policy defines the rule `deny`",
        ),
        (
            {
                "area/a.py": "from policyeng import policy\n\n"
                "@policy(id='T-A-1', title='t', severity='low', judges=['workload'], evidence=True)\n"
                "def judge(given):\n    return []\n"
            },
            "the header states `evidence: true`, and the policy has a function",
        ),
        (
            {
                "area/a/a.rego": rego(
                    "a", "", more="evidence: true\nparameters: {required: {type: string, default: no_}}"
                )
            },
            "the parameter `required` of a policy with `evidence: true` has the type `boolean`",
        ),
    ],
)
def test_a_policy_on_evidence_has_no_rules(tmp_path: Path, files: dict[str, str], message: str) -> None:
    """Rules that the engine would ignore are refused when the bundle is loaded."""
    with pytest.raises(BundleError, match=message.replace("(", r"\(")):
        load_bundle(write(tmp_path, files))


READING = """\
deny contains {"msg": "seen", "path": "/id", "actual": seen} if true

seen := [[one.id, one["for"], one.scope, one.statement, one.reference, one.givenBy, one.givenAt, one.expiresAt] |
	some one in input.snapshot.evidence
]
"""
READING_IN_PYTHON = """\
from policyeng import Denial, policy

KEYS = ["id", "for", "scope", "statement", "reference", "givenBy", "givenAt", "expiresAt"]

@policy(id="T-A-1", title="t", severity="low", judges=["Microsoft.MachineLearningServices/workspaces"])
def judge(given):
    yield Denial("seen", "/id", actual=[[one[key] for key in KEYS] for one in given.snapshot.evidence])
"""


@pytest.mark.parametrize("file", [{"area/a/a.rego": rego("a", READING)}, {"area/a/a.py": READING_IN_PYTHON}])
def test_policies_read_evidence_sorted_by_id(tmp_path: Path, file: dict[str, str]) -> None:
    """Both languages see the same entries, with a null `reference` where none is given."""
    stated = snapshot(workspace(), evidence=[entry(id="b"), entry(id="A", reference="run 1")])
    (finding,) = evaluate(load_bundle(write(tmp_path, file)), stated, as_of=AS_OF).findings

    rest = ["anna@contoso.example", "2026-01-01T00:00:00Z", "2026-12-01T00:00:00Z"]
    assert finding.denials[0].actual == [
        ["A", "T-A-1", "-", "a restart was tested", "run 1", *rest],
        ["b", "T-A-1", "-", "a restart was tested", None, *rest],
    ]


def test_opa_sees_evidence(tmp_path: Path, opa: Path) -> None:
    """With the engine `opa`, Rego sees the same entries, and policies on evidence are decided as always."""
    from policyeng.engines import OpaOptions

    files = {
        "area/a/a.rego": rego("a", READING),
        "area/b/b.rego": rego("b", "", identity="T-B-1", more="evidence: true"),
    }
    bundle = load_bundle(write(tmp_path, files))
    stated = snapshot(workspace(), evidence=[entry(), entry(id="E-2", **{"for": "T-B-1"})])
    both = [
        evaluate(bundle, stated, as_of=AS_OF, engine=engine, opa=OpaOptions(binary=opa)).findings
        for engine in ("embedded", "opa")
    ]
    assert [one.outcome for one in both[0]] == [Outcome.FAIL, Outcome.PASS]
    assert list(both[0]) == list(both[1])


BAD = {
    "no list": ({}, "/evidence", "`evidence` is an object, not a list"),
    "an unknown key": ([entry(by="x")], "/evidence/0/by", "unknown key `by`"),
    "a missing key": ([{"id": "E-1"}], "/evidence/0", "`for` is missing"),
    "a time without a zone": (
        [entry(givenAt="2026-01-01T00:00:00")],
        "/evidence/0/givenAt",
        "`givenAt` has no time zone",
    ),
    "a scope that is no id": ([entry(scope="rg-ml")], "/evidence/0/scope", "`scope` is not an ARM id: `rg-ml`"),
    "a blank giver": ([entry(givenBy=" ")], "/evidence/0/givenBy", "`givenBy` is blank"),
    "a disguised giver": ([entry(givenBy="аnna")], "/evidence/0/givenBy", "letters of another script"),
    "an end before the begin": (
        [entry(expiresAt="2026-01-01T00:00:00Z")],
        "/evidence/0/expiresAt",
        "`expiresAt` is not after `givenAt`",
    ),
    "more than a year": (
        [entry(expiresAt="2027-01-01T00:00:01Z")],
        "/evidence/0/expiresAt",
        "`expiresAt` is more than 365 days after `givenAt`",
    ),
}


@pytest.mark.parametrize("case", BAD, ids=list(BAD))
def test_entries_that_are_wrong_are_refused(case: str) -> None:
    """Only the wrong entry is refused, with its pointer."""
    value, pointer, message = BAD[case]
    parsed = native.read({"snapshotVersion": 1, "resources": [], "evidence": value})

    assert [(one.place, message in one.message) for one in parsed.refusals[:1]] == [(pointer, True)]
    assert not parsed.stated


def test_a_year_is_not_too_long() -> None:
    """365 days are allowed."""
    document = {"snapshotVersion": 1, "resources": [], "evidence": [entry(expiresAt="2027-01-01T00:00:00Z")]}
    parsed = native.read(document)

    assert not parsed.refusals
    assert len(parsed.stated) == 1


def test_evidence_of_several_files_is_joined(tmp_path: Path) -> None:
    """An id in two files with different content is an error that names both."""
    import json

    paths = []
    for number, more in enumerate(([entry()], [entry(), entry(id="E-2")], [entry(statement="other")])):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps({"snapshotVersion": 1, "resources": [], "evidence": more}))
        paths.append(path)
    joined = read_inputs(list(map(str, paths[:2])))
    assert [one.id for one in joined.snapshot.evidence] == ["E-1", "E-2"]
    conflict = read_inputs([str(paths[0]), str(paths[2])])
    assert any("duplicate evidence `E-1`" in problem.message for problem in conflict.problems)


def test_the_digest_depends_on_evidence_only_where_there_is_any(tmp_path: Path) -> None:
    """A snapshot without evidence has the digest that it always had."""
    none, some = evaluated(tmp_path), evaluated(tmp_path, entry())
    other = evaluated(tmp_path, entry(givenBy="ben"))
    assert len({none.snapshot.digest, some.snapshot.digest, other.snapshot.digest}) == 3


def test_a_report_shows_who_gave_the_evidence_in_force(tmp_path: Path) -> None:
    """Of active policies and of controls, with secrets masked; what lapsed is in the finding."""
    from policyeng.report import html, json, markdown, text

    secret = "AccountKey=" + "A" * 86 + "=="
    given = [
        entry(statement=f"see {secret}"),
        entry(id="E-2", **{"for": "mcsb-v1:PA-1"}),
        entry(id="E-3", **{"for": "T-OTHER-1"}),
        entry(id="E-4", **LAPSED),
    ]
    evaluation = evaluated(tmp_path, *given)

    assert [one.id for one in evaluation.evidence] == ["E-1", "E-2"]
    for render in (html.render, json.render, markdown.render, text.render):
        shown = render(evaluation)
        assert "anna" in shown
        assert secret not in shown
    assert "E-1 for T-A-1, by anna@contoso.example until 2026-12-01, not checked: see" in text.render(
        evaluation, width=200
    )
