"""Exemptions mark failures of one policy at and under one scope, while they are active, and change nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from policyeng.bundle import Bundle
from policyeng.bundle.policy_selection import selected
from policyeng.exemptions import apply
from policyeng.models import Denial, Exemption, Finding, Outcome, Problem, Severity

GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
WORKSPACE = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/ws"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
END = datetime(2026, 7, 1, tzinfo=UTC)


def exemption(**changes: object) -> Exemption:
    """An exemption that is active on 2026-06-01, with changes."""
    fields: dict[str, object] = {
        "id": "E-1",
        "policy": "AML-NET-001",
        "scope": GROUP,
        "category": "waiver",
        "reason": "migration",
        "owner": "a@x",
        "approved_by": "b@x",
        "created_at": BEGIN,
        "expires_at": END,
    }
    return Exemption.model_validate({**fields, **changes})


def finding(resource: str = WORKSPACE, outcome: Outcome = Outcome.FAIL) -> Finding:
    """A finding of AML-NET-001."""
    denials = (Denial(msg="m"),) if outcome is Outcome.FAIL else ()
    return Finding(
        policy="AML-NET-001",
        title="t",
        severity=Severity.HIGH,
        resource=resource,
        resource_type="x",
        outcome=outcome,
        denials=denials,
    )


def marked(
    bundle: Bundle, found: Finding, *exemptions: Exemption, at: datetime = datetime(2026, 6, 1, tzinfo=UTC)
) -> bool:
    """Whether the finding carries a mark."""
    return apply([found], exemptions, bundle.policies, {}, at)[0][0].exemption is not None


@pytest.mark.parametrize(
    ("scope", "covered"),
    [
        (WORKSPACE, True),
        (WORKSPACE.upper(), True),
        (GROUP, True),
        ("/subscriptions/11111111-1111-1111-1111-111111111111", True),
        (f"{GROUP}-2", False),
        (GROUP[:-1], False),
        (f"{WORKSPACE}2", False),
        (f"{WORKSPACE}/computes/c", False),
        ("/subscriptions/22222222-2222-2222-2222-222222222222", False),
    ],
)
def test_scope_covers_itself_and_everything_under_it_by_whole_segments(
    bundle: Bundle, scope: str, covered: bool
) -> None:
    """A shared prefix is no scope, and letter case makes no difference."""
    assert marked(bundle, finding(), exemption(scope=scope)) is covered


@pytest.mark.parametrize(
    ("at", "in_force"),
    [
        (BEGIN - timedelta(microseconds=1), False),
        (BEGIN, True),
        (END - timedelta(microseconds=1), True),
        (END, False),
    ],
)
def test_in_force_from_its_creation_until_just_before_its_expiry(bundle: Bundle, at: datetime, in_force: bool) -> None:
    """Both ends to the microsecond."""
    assert marked(bundle, finding(), exemption(), at=at) is in_force


@pytest.mark.parametrize("outcome", [Outcome.PASS, Outcome.UNKNOWN, Outcome.ERROR])
def test_only_failures_are_marked(bundle: Bundle, outcome: Outcome) -> None:
    """What is unknown or went wrong cannot be accepted."""
    assert not marked(bundle, finding(outcome=outcome), exemption())


def test_the_policy_is_one_exact_id(bundle: Bundle) -> None:
    """Another policy's exemption covers nothing, nor does a prefix."""
    assert not marked(bundle, finding(), exemption(policy="AML-NET-101"))
    assert not marked(bundle, finding(), exemption(policy="AML-NET"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"expires_at": datetime(2026, 2, 1, tzinfo=UTC)}, "the exemption expired 2026-02-01T00:00:00+00:00"),
        (
            {"created_at": datetime(2026, 6, 2, tzinfo=UTC)},
            "the exemption is not yet valid: it begins 2026-06-02T00:00:00+00:00",
        ),
        (
            {"policy": "AML-NET-0001"},
            "the exemption names `AML-NET-0001`, which is not among the policies in force; did you mean `AML-NET-001`",
        ),
        ({"scope": f"{GROUP}-2"}, "the exemption covers no failure"),
    ],
)
def test_an_exemption_without_effect_is_explained(bundle: Bundle, changes: dict[str, object], message: str) -> None:
    """Nothing about exemptions is silent."""
    _, problems = apply([finding()], [exemption(**changes)], bundle.policies, {}, datetime(2026, 6, 1, tzinfo=UTC))

    assert problems == [Problem(level="warning", message=message, place="exemption E-1", kind="exemption")]


def test_an_exemption_for_a_policy_that_is_not_selected_is_explained(bundle: Bundle) -> None:
    """Such a policy exists, so no other one is suggested, and a misspelled id is compared with it too."""
    chosen = selected(bundle, ["AML-NET-101"])
    given = [exemption(), exemption(id="E-2", policy="AML-NET-0001")]

    _, problems = apply([], given, chosen.policies, {}, datetime(2026, 6, 1, tzinfo=UTC), chosen.idle)

    assert [problem.message for problem in problems] == [
        "the exemption has no effect: `AML-NET-001` is not selected",
        "the exemption names `AML-NET-0001`, which is not among the policies in force; did you mean `AML-NET-001`",
    ]


def test_exemptions_without_effect_are_listed_by_their_ids(bundle: Bundle) -> None:
    """The order in which they are read makes no difference to the report."""
    over = [exemption(id=identity, expires_at=datetime(2026, 2, 1, tzinfo=UTC)) for identity in ("E-2", "E-3", "E-1")]

    _, problems = apply([], over, bundle.policies, {}, datetime(2026, 6, 1, tzinfo=UTC))

    assert [problem.place for problem in problems] == ["exemption E-1", "exemption E-2", "exemption E-3"]


@pytest.mark.parametrize(
    ("homes", "covered"),
    [
        ({("x", "job-1"): WORKSPACE}, True),
        ({("y", "job-1"): WORKSPACE}, False),
        ({("x", "job-2"): WORKSPACE}, False),
        ({("x", "job-1"): f"{GROUP}-2"}, False),
        ({("x", "job-1"): ""}, False),
    ],
)
def test_a_finding_without_an_arm_id_is_covered_where_it_belongs(
    bundle: Bundle, homes: dict[tuple[str, str], str], covered: bool
) -> None:
    """The home is that of the finding's own type and id; without one, no scope covers the finding."""
    found, _ = apply([finding("job-1")], [exemption()], bundle.policies, homes, datetime(2026, 6, 1, tzinfo=UTC))

    assert (found[0].exemption is not None) is covered


def test_a_policy_that_takes_no_exemptions_takes_none(bundle: Bundle) -> None:
    """`exemptable: false` overrides every exemption, and the report states it."""
    policy = next(entry for entry in bundle.policies if entry.id == "AML-NET-001")
    strict = policy.__class__(
        policy.header.model_copy(update={"exemptable": False}), policy.area, policy.name, policy.file, policy.rules
    )

    found, problems = apply([finding()], [exemption()], [strict], {}, datetime(2026, 6, 1, tzinfo=UTC))

    assert found[0].exemption is None
    assert [problem.message for problem in problems] == [
        "the exemption has no effect: `AML-NET-001` takes no exemptions"
    ]


def test_of_several_the_one_that_lasts_longest_marks(bundle: Bundle) -> None:
    """The mark shows how long the acceptance lasts; none of the others is called useless."""
    later = exemption(id="E-2", expires_at=END + timedelta(days=30))

    found, problems = apply([finding()], [exemption(), later], bundle.policies, {}, datetime(2026, 6, 1, tzinfo=UTC))

    assert found[0].exemption is not None
    assert found[0].exemption.id == "E-2"
    assert problems == []
