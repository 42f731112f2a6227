"""Looking ahead: what flips, to the second, and what it is that begins or lapses there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policyeng.audit.diff.forecast import Ready, UpcomingChange, forecast_flips, forecast_parts, stored_parts
from policyeng.audit.diff.inputs import CauseKind, FindingKey, State, Status, evaluate_state, index_findings, status_of
from policyeng.bundle import load_bundle
from policyeng.configuration import Settings
from policyeng.evaluation import EvaluationOptions
from policyeng.models import Outcome, Problem, Snapshot
from policyeng.verify.generators.examples import Examples
from tests.audits import START, Audited, exemption
from tests.bundles import deny_when, rego, snapshot, workspace, write
from tests.comparing import given_of
from tests.drawn import BUNDLE
from tests.effort import effort

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
SOURCE = Examples(BUNDLE)


def summary(found: Sequence[UpcomingChange]) -> list[tuple[datetime, str, CauseKind, str]]:
    """When, which policy, and the first cause."""
    causes = [(one, one.flip.causes[0][0]) for one in found]
    return [(one.at, one.flip.finding.policy, cause.kind, cause.change) for one, cause in causes]


def state_of(folder: Path, condition: str, **more: object) -> State:
    """One workspace under one policy."""
    bundle = load_bundle(write(folder, {"area/p/p.rego": rego("p", deny_when(condition))}))
    return State(bundle, snapshot(workspace("w", x=1, end="2026-06-10T12:00:00Z"), **more), EvaluationOptions(AS_OF))


def test_an_exemption_that_lapses_and_one_that_begins(tmp_path: Path) -> None:
    """At the moments that they state; one of another policy is none."""
    state = state_of(tmp_path, "input.resource.properties.x == 1")
    late = exemption("w", days=20).model_copy(update={"id": "E-2", "created_at": AS_OF + 15 * DAY})
    state = state.with_options(exemptions=[exemption("w", days=10), late, exemption("w", policy="T-Z-1", days=3)])

    found = list(forecast_flips(state, AS_OF + 30 * DAY))

    assert summary(found) == [
        (AS_OF + 10 * DAY, "T-A-1", CauseKind.EXEMPTION, "lapsed"),
        (AS_OF + 15 * DAY, "T-A-1", CauseKind.EXEMPTION, "began"),
        (AS_OF + 20 * DAY, "T-A-1", CauseKind.EXEMPTION, "lapsed"),
    ]
    assert [len(list(forecast_flips(state, AS_OF + days * DAY))) for days in (9, 10, 15)] == [0, 1, 2]


@pytest.mark.parametrize(("comparison", "later"), [(">=", timedelta(0)), (">", SECOND)])
def test_the_second_at_which_a_policy_flips_is_found(tmp_path: Path, comparison: str, later: timedelta) -> None:
    """From a date in the resource, with the bound and after it."""
    now = "time.parse_rfc3339_ns(input.as_of)"
    state = state_of(tmp_path, f"{now} {comparison} time.parse_rfc3339_ns(input.resource.properties.end)")

    (one,) = forecast_flips(state, AS_OF + 30 * DAY)

    assert (one.at, one.flip.before, one.flip.after) == (
        datetime(2026, 6, 10, 12, tzinfo=UTC) + later,
        Outcome.PASS,
        Outcome.FAIL,
    )
    assert one.flip.causes[0][0].kind is CauseKind.CLOCK


def test_an_approval_that_lapses_is_named(root: Path) -> None:
    """On the built-in policies: of the compliant sample the approval of a restricted series ends."""
    from policyeng.sources import load_snapshot

    state = State(
        BUNDLE,
        load_snapshot(root / "samples/workspaces/compliant.json"),
        EvaluationOptions(datetime(2026, 12, 20, tzinfo=UTC)),
    )
    (one,) = (
        one
        for one in forecast_flips(state, datetime(2027, 1, 10, tzinfo=UTC))
        if one.flip.finding.policy == "AML-SKU-101"
    )

    assert (one.at, one.flip.causes[0][0].kind) == (datetime(2027, 1, 1, tzinfo=UTC), CauseKind.APPROVAL)
    assert (one.flip.causes[0][0].subject, one.flip.causes[0][0].change) == ("A-1", "lapsed")


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=effort(12, 120), suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_what_is_foreseen_is_what_is_found_then(seed: int) -> None:
    """At any later clock the findings are those of now with all that flips until then."""
    random = Random(seed)  # noqa: S311  # nothing here is secret
    drawn = given_of(BUNDLE, SOURCE.drawn(random, kind=random.choice(["estate", "nearly-compliant", "plausible"])))
    state = drawn.state.with_options(as_of=drawn.as_of.replace(microsecond=0))
    now = state.options.as_of
    until = now + random.choice((30, 90)) * DAY
    found = list(forecast_flips(state, until))

    for _ in range(4):
        at = state.options.as_of + timedelta(
            seconds=random.randrange(1, int((until - state.options.as_of).total_seconds()))
        )
        foreseen = {key: status_of(one) for key, one in index_findings(evaluate_state(state).findings).items()}
        for one in found:
            if one.at <= at:
                (key,) = index_findings([one.flip.finding])
                remains = one.flip.after is one.flip.finding.outcome and one.flip.exempt_after == bool(
                    one.flip.finding.exemption
                )
                foreseen[key] = status_of(one.flip.finding) if remains else None
        then = {
            key: status_of(one)
            for key, one in index_findings(evaluate_state(state.with_options(as_of=at)).findings).items()
        }
        assert _remaining(foreseen) == _remaining(then), at


def _remaining(found: Mapping[FindingKey, Status | None]) -> Mapping[FindingKey, Status]:
    return {key: status for key, status in found.items() if status is not None and status.is_open}


def test_an_outlook_fails_where_something_will_and_names_what_could_not_be_read(tmp_path: Path) -> None:
    """Exit 1 for a new failure, 2 for a part without a snapshot, 0 for neither."""
    state = state_of(tmp_path, "input.resource.properties.x == 1").with_options(exemptions=[exemption("w", days=10)])
    unread = Ready("b", None, (Problem(level="error", message="broken"),))

    def code(*parts: Ready, days: int = 30) -> int:
        return forecast_parts(parts, "e", AS_OF, AS_OF + days * DAY, Settings()).exit_code

    assert [code(Ready("a", state)), code(Ready("a", state), unread), code(Ready("a", state), days=5)] == [1, 2, 0]
    assert forecast_parts([unread], "e", AS_OF, AS_OF + DAY, Settings()).problems[0].place == "b"
    empty = Ready("c", replace(state, snapshot=Snapshot()))
    assert code(empty) == 0


def test_the_newest_run_is_looked_ahead_from_any_clock(tmp_path: Path) -> None:
    """With the bundle and settings of that run."""
    audited = Audited(tmp_path)
    run = audited.audit(exemptions=[exemption("one", days=10)])

    found = forecast_parts(
        stored_parts(audited.store, run, START), "production", START, START + 30 * DAY, Settings(), run.number
    )
    later = START + 11 * DAY
    nothing = forecast_parts(stored_parts(audited.store, run, later), "production", later, later + 30 * DAY, Settings())
    audited.close()

    assert [(one.at, one.part) for one in found.coming] == [(START + 10 * DAY, "a.json")]
    assert (found.parts, found.exit_code, nothing.coming) == (3, 1, ())
