"""An exemption changes nothing but its mark, and only while it is active."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from policyeng.evaluation.summary import by_pair
from policyeng.facts.ids import is_at_or_under, scopes_of
from policyeng.models import Evaluation, Exemption, Finding, Outcome
from policyeng.verify.laws.law import Trial, Violation, find_first_difference

#: Days by which the middle of an exemption's life is off the clock: active, expired, and not yet begun.
_SHIFTS = (0, 0, -400, 400)


def drawn(random: Random, evaluation: Evaluation) -> Exemption | None:
    """An exemption for a failure that has an ARM id, active or not; None where there is no such failure."""
    failures = [entry for entry in evaluation.findings if entry.outcome is Outcome.FAIL and _is_at_home(entry)]
    if not failures:
        return None
    target = random.choice(failures)
    try:
        begin = evaluation.as_of + timedelta(days=random.choice(_SHIFTS) - 30)
        end = begin + timedelta(days=60)
    except OverflowError:  # a clock at the edge of the calendar
        return None
    return Exemption(
        id="E-1",
        policy=target.policy,
        scope=random.choice((target.resource, target.resource, *scopes_of(target.resource))),
        category=random.choice(("waiver", "mitigated")),
        reason="accepted for a trial",
        owner="owner@example.com",
        approved_by="approver@example.com",
        created_at=begin,
        expires_at=end,
    )


def _is_at_home(finding: Finding) -> bool:
    """Whether scopes are compared with the id that is reported; an approval has a scope of its own."""
    return finding.resource.startswith("/") and finding.resource_type != "approval"


def violated(trial: Trial) -> Violation | None:
    """What an exemption changes besides its mark, or marks that it does not cover."""
    plain = trial.evaluation
    exemption = drawn(trial.random("exemptions"), plain)
    if exemption is None:
        return None
    exempted = trial.evaluate(exemptions=[exemption])
    found = find_first_difference(plain, exempted, _unmarked)
    if found is not None:
        return replace(found, message="an exemption changes another finding")
    before = by_pair(plain)
    exemptable = {policy.id for policy in trial.bundle.policies if policy.header.exemptable}
    for pair, finding in by_pair(exempted).items():
        marked = finding.exemption is not None and finding.exemption.id == exemption.id
        covered = finding.policy in exemptable and _covers(exemption, finding, exempted.as_of)
        if marked != covered and _is_at_home(finding):
            message = "an exemption marks what it does not cover, or not what it covers"
            return Violation(message, finding.policy, finding.resource)
        if not marked and finding.exemption != before[pair].exemption:
            return Violation("an exemption changes the mark of another", finding.policy, finding.resource)
    return None


def _unmarked(finding: Finding) -> object:
    return finding.outcome, finding.denials, finding.unknowns


def _covers(exemption: Exemption, finding: Finding, as_of: datetime) -> bool:
    """Whether the mark is due: for a failure of its policy at or under its scope while it is active."""
    return (
        finding.outcome is Outcome.FAIL
        and finding.policy == exemption.policy
        and exemption.created_at <= as_of < exemption.expires_at
        and is_at_or_under(finding.resource, exemption.scope)
    )
