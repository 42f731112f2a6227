"""The laws of evaluation, each on random snapshots with all built-in policies."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policyeng.bundle import load_bundle
from policyeng.evaluation import evaluate, exit_code
from policyeng.models import Evaluation, Exemption, Finding, Outcome, Problem, Severity, Snapshot
from policyeng.verify.strategies import snapshots

BUNDLE = load_bundle()
ESTATES = snapshots(BUNDLE)
AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
#: The same policies in other orders: few, because each is compiled.
REORDERED = [
    BUNDLE.only(BUNDLE.policies[::-1]),
    BUNDLE.only(sorted(BUNDLE.policies, key=lambda policy: policy.header.title)),
]
#: Deadlines measure the machine, not the law.
LAW = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def judged(snapshot: Snapshot, **options: object) -> Evaluation:
    """The evaluation of a snapshot with every built-in policy."""
    return evaluate(BUNDLE, snapshot, as_of=AS_OF, **options)  # type: ignore[arg-type]  # options vary by law


@LAW
@given(ESTATES)
def test_law_1_same_arguments_same_findings(snapshot: Snapshot) -> None:
    """Judging twice gives one evaluation, on one thread as on two."""
    assert judged(snapshot) == judged(snapshot, threads=2)


@LAW
@given(ESTATES, st.randoms(use_true_random=False))
def test_law_2_order_is_irrelevant(snapshot: Snapshot, order: random.Random) -> None:
    """The order of resources and of policies changes no finding and no digest."""
    resources = list(snapshot.resources)
    order.shuffle(resources)

    shuffled = evaluate(
        order.choice(REORDERED), snapshot.model_copy(update={"resources": tuple(resources)}), as_of=AS_OF
    )

    assert shuffled.findings == judged(snapshot).findings
    assert shuffled.snapshot.digest == judged(snapshot).snapshot.digest


@LAW
@given(ESTATES)
def test_law_4_no_input_makes_evaluate_raise_and_every_pair_has_one_finding(snapshot: Snapshot) -> None:
    """Whatever stands in a resource, there is one finding per pair, the counts add up, and no built-in policy errs."""
    evaluation = judged(snapshot)
    summary = evaluation.summary
    pairs = [(finding.policy, finding.resource.lower()) for finding in evaluation.findings]

    assert len(pairs) == len(set(pairs))
    assert summary.pass_ + summary.fail + summary.unknown + summary.error == len(evaluation.findings)
    assert [finding for finding in evaluation.findings if finding.outcome is Outcome.ERROR] == []


@LAW
@given(ESTATES, st.data())
def test_law_5_an_exemption_changes_nothing_but_its_mark(snapshot: Snapshot, data: st.DataObject) -> None:
    """With an exemption the findings are the same but for the marks, and out of force it marks nothing."""
    plain = judged(snapshot)
    failures = [finding for finding in plain.findings if finding.outcome is Outcome.FAIL]
    if not failures:
        return
    target = data.draw(st.sampled_from(failures))
    shift = data.draw(st.sampled_from([0, -400, 400]))
    begin = AS_OF - timedelta(days=30) + timedelta(days=shift)
    exemption = Exemption(
        id="E",
        policy=target.policy,
        scope=target.resource,
        category="waiver",
        reason="r",
        owner="a",
        approved_by="b",
        created_at=begin,
        expires_at=begin + timedelta(days=60),
    )

    exempted = judged(snapshot, exemptions=[exemption])

    assert tuple(_bare(finding) for finding in exempted.findings) == plain.findings
    marks = [finding for finding in exempted.findings if finding.exemption]
    assert all(finding.policy == target.policy for finding in marks)
    assert not marks or shift == 0


def _bare(finding: Finding) -> Finding:
    return finding.model_copy(update={"exemption": None})


@LAW
@given(ESTATES, st.sampled_from(list(Severity)))
def test_law_6_more_failures_never_turn_deny_into_allow(snapshot: Snapshot, gate: Severity) -> None:
    """Adding a failure or an error never lowers the exit code, and an error always denies."""
    findings = judged(snapshot).findings
    for finding in findings[:5]:
        failed = finding.model_copy(update={"outcome": Outcome.FAIL, "exemption": None})
        erred = finding.model_copy(update={"outcome": Outcome.ERROR})
        rest = [other for other in findings if other is not finding]

        assert exit_code([*rest, failed], [], gate) >= exit_code(rest, [], gate)
        assert exit_code([*findings, erred], [], gate) == 2
    assert exit_code(findings, [Problem(level="error", message="m")], gate) == 2


@LAW
@given(ESTATES)
def test_law_7_an_evaluation_survives_its_round_trip(snapshot: Snapshot) -> None:
    """An evaluation read back from its JSON is the same evaluation."""
    evaluation = judged(snapshot)

    assert Evaluation.model_validate_json(evaluation.model_dump_json(by_alias=True)) == evaluation
