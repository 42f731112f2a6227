"""What policies say of subjects as findings: in one order on every engine, secrets masked, with their places."""

from __future__ import annotations

import json
from collections.abc import Iterable

from policyeng.bundle import Policy
from policyeng.engines import Judgement, Pair
from policyeng.evaluation.estate import Subject
from policyeng.evaluation.places import with_places
from policyeng.evaluation.prepared import Prepared
from policyeng.masking import masked, masked_message
from policyeng.models import Denial, Finding, Outcome, Unknown, lowered, made


def findings_of(prepared: Prepared, judgements: Iterable[Judgement]) -> list[Finding]:
    """The findings of all pairs that are planned, sorted; `judgements` are those of the undecided pairs, in order."""
    return [finding for finding, _ in findings_by_pair(prepared, judgements)]


def findings_by_pair(prepared: Prepared, judgements: Iterable[Judgement]) -> list[tuple[Finding, Pair]]:
    """The findings of all pairs that are planned, sorted, each with its pair; `judgements` as for `findings_of`."""
    bundle, estate, verdicts = prepared.bundle, prepared.estate, iter(judgements)
    judged, pairs = [], []
    for pair, unknowns in prepared.planned:
        judgement = Judgement(unknowns=unknowns) if unknowns else next(verdicts)
        if judgement.applies:
            pairs.append(pair)
            judged.append(
                (_finding(bundle.policies[pair.policy], estate.subjects[pair.subject], judgement), pair.subject)
            )
    findings = list(zip(with_places(judged, estate, prepared.snapshot), pairs, strict=True))
    findings.sort(key=lambda entry: order_of(entry[0]))
    return findings


def order_of(finding: Finding) -> tuple[str, str, str]:
    """By what findings are sorted."""
    return finding.policy, lowered(finding.resource), finding.resource


def _finding(policy: Policy, subject: Subject, judgement: Judgement) -> Finding:
    header = policy.header
    if judgement.error is not None:
        outcome = Outcome.ERROR
    else:
        outcome = Outcome.FAIL if judgement.denials else Outcome.UNKNOWN if judgement.unknowns else Outcome.PASS
    failed = outcome is Outcome.FAIL
    return made(
        Finding,
        policy=header.id,
        title=header.title,
        severity=header.severity,
        resource=subject.reported_id,
        resource_type=subject.reported_type,
        outcome=outcome,
        denials=_sorted(judgement.denials) if failed else (),
        unknowns=_ordered(judgement.unknowns)
        if judgement.error is None
        else (made(Unknown, msg=masked_message(judgement.error), path=""),),
        exemption=judgement.excepted if failed else None,
        remediation=header.remediation.text if header.remediation else "",
        source=header.source,
        location=subject.location,
    )


def _sorted(denials: Iterable[Denial]) -> tuple[Denial, ...]:
    """Denials in one order on every engine, secrets masked."""
    shown = [
        made(
            Denial,
            msg=denial.msg,
            path=denial.path,
            actual=masked(denial.actual, denial.path),
            expected=masked(denial.expected, denial.path),
        )
        for denial in denials
    ]
    if len(shown) > 1:  # the texts of what stands there may be long
        shown.sort(key=lambda denial: (denial.path, denial.msg, _text(denial.actual), _text(denial.expected)))
    return tuple(shown)


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _ordered(unknowns: Iterable[Unknown]) -> tuple[Unknown, ...]:
    """Unknowns in one order on every engine, secrets masked."""
    return tuple(sorted(map(_masked, unknowns), key=lambda unknown: (unknown.path, unknown.msg)))


def _masked(unknown: Unknown) -> Unknown:
    message = masked_message(unknown.msg)
    return unknown if message == unknown.msg else made(Unknown, msg=message, path=unknown.path)
