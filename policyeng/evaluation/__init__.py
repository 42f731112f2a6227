"""Bundle x snapshot x exemptions x as-of -> evaluation. Pure: no I/O, no clock."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from policyeng import exemptions as exempting
from policyeng.bundle import Bundle, Policy
from policyeng.bundle.parameters import parameters_of
from policyeng.engines import Judgement, OpaOptions, Work, engine_version, judge
from policyeng.evaluation.estate import Estate, Subject, estate_of
from policyeng.evaluation.places import with_places
from policyeng.evaluation.plan import Planned, plan
from policyeng.garbage import uncollected
from policyeng.masking import masked
from policyeng.models import (
    BundleRef,
    Denial,
    EngineRef,
    Evaluation,
    Exemption,
    Finding,
    JsonObject,
    Outcome,
    Problem,
    Severity,
    Snapshot,
    SnapshotRef,
    Summary,
    Unknown,
    lowered,
    made,
)

__all__ = ["evaluate", "exit_code", "summary_of"]

#: How a problem begins that tells of a part of the inputs which was not read; so it is known from a report, too.
_INCOMPLETE = "the snapshot is incomplete"


@uncollected()
def evaluate(
    bundle: Bundle,
    snapshot: Snapshot,
    *,
    as_of: datetime,
    exemptions: Sequence[Exemption] = (),
    parameters: Mapping[str, JsonObject] | None = None,
    engine: str = "embedded",
    opa: OpaOptions | None = None,
    threads: int = 1,
    fail_on: Severity = Severity.LOW,
    strict_unknown: bool = False,
    problems: Iterable[Problem] = (),
) -> Evaluation:
    """Judge every resource of a snapshot with every policy of a bundle that applies to it.

    Args:
        bundle: the policies in force.
        snapshot: what is judged.
        as_of: the evaluation clock; without a zone it is taken as UTC.
        exemptions: acceptances that mark failures while they are in force.
        parameters: by policy id, values that replace the defaults.
        engine: what judges Rego, a name of `policyeng.engines.ENGINES`.
        opa: which OPA judges, for the engine `opa`; a private server unless given.
        threads: how many threads judge Rego.
        fail_on: failures at or above this severity make the exit code 1.
        strict_unknown: what cannot be decided counts as a failure does.
        problems: what went wrong on the way to the snapshot; an error among them makes the exit code 2.

    Raises:
        UsageError: a parameter does not exist or does not fit its schema, or the engine does not exist.
        EngineError: the bundle does not compile, or the OPA server does not answer for every pair.
    """
    moment = as_of.astimezone(UTC) if as_of.tzinfo else as_of.replace(tzinfo=UTC)
    estate = estate_of(snapshot, bundle.facts)
    judging_with = parameters_of(bundle, parameters or {})
    planned = list(plan(bundle, estate, judging_with))
    work = Work(
        bundle=bundle,
        snapshot=estate.view,
        subjects=[subject.document for subject in estate.subjects],
        document=estate.document,
        pairs=[entry.pair for entry in planned if not entry.unknowns],
        parameters=judging_with,
        as_of=moment,
        threads=threads,
    )
    judged = _findings(planned, iter(judge(work, engine, opa)), bundle, estate, snapshot)
    homes = {(subject.reported_type, subject.reported_id): subject.home for subject in estate.subjects}
    findings, notes = exempting.apply(judged, exemptions, bundle.policies, homes, moment)
    said = [*problems, *estate.problems, *_incomplete(snapshot), *notes]
    if not findings:
        said.append(Problem(level="error", message=_nothing_evaluated(bundle, estate)))
    return Evaluation.model_construct(
        bundle=BundleRef.model_construct(name=bundle.name, revision=bundle.revision, digest=bundle.digest),
        snapshot=SnapshotRef.model_construct(scope=snapshot.scope, taken_at=snapshot.taken_at, digest=estate.digest),
        as_of=moment,
        engine=EngineRef.model_construct(name=engine, version=engine_version(engine, opa)),
        exit_code=exit_code(findings, said, fail_on, strict_unknown=strict_unknown),
        summary=summary_of(findings),
        findings=tuple(findings),
        problems=tuple(said),
    )


def exit_code(
    findings: Iterable[Finding],
    problems: Iterable[Problem],
    fail_on: Severity = Severity.LOW,
    *,
    strict_unknown: bool = False,
) -> int:
    """2 when something went wrong, else 1 when a failure at or above `fail_on` has no exemption, else 0.

    With `strict_unknown` an unknown finding at or above `fail_on` counts as a failure does, and so does a part of the
    inputs that was not read.
    """
    listed, said = list(findings), list(problems)
    if any(finding.outcome is Outcome.ERROR for finding in listed):
        return 2
    if any(problem.level == "error" for problem in said):
        return 2
    if strict_unknown and any(map(is_unread, said)):
        return 1
    return int(any(fails(finding, fail_on, strict_unknown=strict_unknown) for finding in listed))


def is_unread(problem: Problem) -> bool:
    """Whether a problem says that a part of the inputs was not read, so that nothing is known of what it may hold."""
    return problem.message.startswith(_INCOMPLETE)


def fails(finding: Finding, fail_on: Severity, *, strict_unknown: bool = False) -> bool:
    """Whether a finding on its own makes a run fail."""
    failed = finding.outcome is Outcome.FAIL and finding.exemption is None
    undecided = strict_unknown and finding.outcome is Outcome.UNKNOWN
    return (failed or undecided) and finding.severity.rank >= fail_on.rank


def summary_of(findings: Sequence[Finding]) -> Summary:
    """Counts by outcome and both ways of counting compliance."""
    outcomes = Counter(finding.outcome for finding in findings)
    exempt = sum(finding.exemption is not None for finding in findings)
    passed, unknown = outcomes[Outcome.PASS], outcomes[Outcome.UNKNOWN]
    total = len(findings) or 1
    return Summary.model_construct(
        pass_=passed,
        fail=outcomes[Outcome.FAIL],
        unknown=unknown,
        error=outcomes[Outcome.ERROR],
        exempt=exempt,
        strict_compliance=round(100 * passed / total, 2),
        azure_compliance=round(100 * (passed + exempt + unknown) / total, 2),
    )


def _findings(
    planned: Iterable[Planned], judgements: Iterator[Judgement], bundle: Bundle, estate: Estate, snapshot: Snapshot
) -> list[Finding]:
    judged = []
    for entry in planned:
        judgement = Judgement(unknowns=entry.unknowns) if entry.unknowns else next(judgements)
        if judgement.applies:
            policy = bundle.policies[entry.pair.policy]
            judged.append((_finding(policy, estate.subjects[entry.pair.subject], judgement), entry.pair.subject))
    findings = with_places(judged, estate, snapshot)
    findings.sort(key=lambda finding: (finding.policy, lowered(finding.resource), finding.resource))
    return findings


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
        else (made(Unknown, msg=judgement.error, path=""),),
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
    """Unknowns in one order on every engine."""
    return tuple(sorted(unknowns, key=lambda unknown: (unknown.path, unknown.msg)))


def _incomplete(snapshot: Snapshot) -> list[Problem]:
    said = [f"{_INCOMPLETE}: {line}" for line in snapshot.incomplete]
    said += [f"the inputs do not say everything: {line}" for line in snapshot.beyond]
    return [Problem(level="warning", message=message) for message in said]


def _nothing_evaluated(bundle: Bundle, estate: Estate) -> str:
    seen = f"{len(estate.subjects)} resources and {len(bundle.policies)} policies, and none of them applies"
    return f"nothing was evaluated: {seen}; see `policyeng policies list` for what the policies judge"
