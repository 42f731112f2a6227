"""The text and the JSON of a decision, and its published schema."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from policyeng.models import Changed, Decision, Evaluation, Operation, Problem
from policyeng.report import decision as text
from policyeng.report.decision import decision_schema, render_json
from policyeng.report.escaping import visible
from tests.report_samples import HOSTILE, PUBLIC_ACCESS, SAMPLES, WORKSPACE, evaluations, laws

REGENERATE = (
    ".venv/bin/python -c 'import json; from policyeng.report.decision import decision_schema;"
    " print(json.dumps(decision_schema(), indent=2))' > docs/decision.schema.json"
)
LISTS = ("denied", "warned", "shadowed", "undecided", "exempted", "standing", "cleared")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def decision_of(evaluation: Evaluation, **more: object) -> Decision:
    """A decision with the references of an evaluation."""
    shared = {name: getattr(evaluation, name) for name in ("bundle", "snapshot", "as_of", "engine", "problems")}
    change = Changed(operation=Operation.REPLACE, id=WORKSPACE)
    return Decision.model_validate({**shared, "allowed": True, "exit_code": 0, "changes": (change,), **more})


@st.composite
def decisions(draw: st.DrawFn) -> Decision:
    """Any decision: the findings of an evaluation, each in one of its lists."""
    evaluation = draw(evaluations())
    homes = [draw(st.sampled_from(LISTS)) for _ in evaluation.findings]
    lists = {
        name: tuple(one for one, home in zip(evaluation.findings, homes, strict=True) if home == name) for name in LISTS
    }
    code = draw(st.sampled_from([0, 1, 2]))
    return decision_of(evaluation, allowed=code == 0, exit_code=code, **lists)


@pytest.mark.slow
@laws
@given(decisions())
def test_a_decision_reads_back_and_fits_the_schema(decision: Decision) -> None:
    """Law 7: nothing is lost, whatever the names, values and zones."""
    rendered = render_json(decision)

    assert Decision.model_validate_json(rendered) == decision
    Draft202012Validator(decision_schema()).validate(json.loads(rendered))


def test_the_published_schema_is_up_to_date(root: Path) -> None:
    """`docs/decision.schema.json` is the schema of the models, and refuses other documents."""
    published = (root / "docs" / "decision.schema.json").read_text(encoding="utf-8")
    schema = decision_schema()
    document = json.loads(render_json(decision_of(SAMPLES["failures"])))

    assert published == json.dumps(schema, indent=2) + "\n", f"stale; write it with: {REGENERATE}"
    Draft202012Validator.check_schema(schema)
    assert not Draft202012Validator(schema).is_valid(document | {"other": 1})
    del document["allowed"]
    assert not Draft202012Validator(schema).is_valid(document)


@laws
@given(decisions(), st.integers(1, 200))
def test_the_text_shows_every_list_plainly(decision: Decision, width: int) -> None:
    """Colour adds colours alone, what people read is visible, and the verdict has the counts."""
    plain = text.render(decision, width=width)
    colored = text.render(decision, color=True, width=width)

    assert _ANSI.sub("", colored) == plain
    assert visible(plain, keep="\n") == plain
    assert f"exit {decision.exit_code}: " in plain
    for name in LISTS:
        if findings := getattr(decision, name):
            assert f"{len(findings)} {name}" in " ".join(plain.split())


def test_denials_have_their_remedy_and_existing_failures_are_short() -> None:
    """Reasons and remediation of the one, a line for each of the others, as far as a reader goes."""
    standing = tuple(PUBLIC_ACCESS.model_copy(update={"resource": f"{WORKSPACE}{n}"}) for n in range(12))
    decision = decision_of(
        SAMPLES["failures"],
        allowed=False,
        exit_code=1,
        denied=(PUBLIC_ACCESS,),
        standing=standing,
        problems=(Problem(level="warning", message=HOSTILE, place="plan.json:3"),),
    )
    shown = text.render(decision)

    assert shown.startswith("Denied (1 on 1 resource)\n")
    assert "    fix       Set publicNetworkAccess to Disabled" in shown
    assert "Existing failures (12 on 12 resources)" in shown
    assert "  high      AML-NET-001  ws0: Public network access" in shown
    assert "and 2 more; the JSON report lists all" in shown
    assert "warning   plan.json:3: " in shown
    assert f"  replace   {WORKSPACE}\n" in shown
    assert shown.endswith("exit 1: denied: 1 change; 1 denied, 12 standing\n")
