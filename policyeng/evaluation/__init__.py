"""Bundle x snapshot x exemptions x as-of -> evaluation. Pure: no I/O, no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from policyeng import exemptions as exempting
from policyeng.bundle import Bundle
from policyeng.engines import OpaOptions, engine_version, judge
from policyeng.evaluation.coverage import is_as_asked
from policyeng.evaluation.estate import Estate, Subject
from policyeng.evaluation.findings import findings_of
from policyeng.evaluation.prepared import Prepared, prepare
from policyeng.evaluation.remarks import of_classifications
from policyeng.evaluation.terms import Terms
from policyeng.garbage import uncollected
from policyeng.masking import masked_message
from policyeng.models import (
    BundleRef,
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
)

__all__ = ["Prepared", "added", "concluded", "evaluate", "evaluated", "exit_code", "prepare", "summary_of"]

#: How a problem begins that tells of a part of the inputs which was not read; so it is known from a report, too.
_INCOMPLETE = "the snapshot is incomplete"
#: The same of a part that was not asked for.
_AS_ASKED = "the snapshot is bounded"


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
    return evaluated(
        prepare(bundle, snapshot, parameters),
        as_of=as_of,
        exemptions=exemptions,
        engine=engine,
        opa=opa,
        threads=threads,
        fail_on=fail_on,
        strict_unknown=strict_unknown,
        problems=problems,
    )


@uncollected()
def evaluated(
    prepared: Prepared,
    *,
    as_of: datetime,
    exemptions: Sequence[Exemption] = (),
    engine: str = "embedded",
    opa: OpaOptions | None = None,
    threads: int = 1,
    fail_on: Severity = Severity.LOW,
    strict_unknown: bool = False,
    problems: Iterable[Problem] = (),
) -> Evaluation:
    """Judge what `prepare` made ready, every pair anew; the arguments are those of `evaluate`.

    Raises:
        UsageError: the engine does not exist.
        EngineError: the bundle does not compile, or the OPA server does not answer for every pair.
    """
    terms = Terms(as_of, exemptions, engine, opa, threads, fail_on, strict_unknown, tuple(problems))
    judgements = judge(prepared.work(terms.moment, threads), engine, opa)
    return concluded(prepared, findings_of(prepared, judgements), terms)


def concluded(prepared: Prepared, judged: Sequence[Finding], terms: Terms) -> Evaluation:
    """The evaluation that the findings of all pairs come to, once exemptions have marked them.

    Raises:
        UsageError: the engine does not exist.
        EngineError: the OPA server does not answer.
    """
    bundle, snapshot, estate = prepared.bundle, prepared.snapshot, prepared.estate
    homes = homes_of(estate.subjects)
    findings, notes = exempting.apply(judged, terms.exemptions, bundle.policies, homes, terms.moment)
    said = [*terms.problems, *problems_of(prepared), *notes]
    gaps = {(gap.kind, gap.scope) for gap in estate.gaps}
    if all((finding.resource_type, finding.resource) in gaps for finding in findings):
        said.append(Problem(level="error", message=_nothing_evaluated(bundle, estate)))
    engine = EngineRef.model_construct(name=terms.engine, version=engine_version(terms.engine, terms.opa))
    return Evaluation.model_construct(
        bundle=BundleRef.model_construct(name=bundle.name, revision=bundle.revision, digest=bundle.digest),
        snapshot=SnapshotRef.model_construct(
            scope=masked_message(snapshot.scope), taken_at=snapshot.taken_at, digest=estate.digest
        ),
        as_of=terms.moment,
        engine=engine,
        exit_code=exit_code(findings, said, terms.fail_on, strict_unknown=terms.strict_unknown),
        summary=summary_of(findings),
        findings=tuple(findings),
        problems=tuple(said),
    )


def homes_of(subjects: Iterable[Subject]) -> dict[tuple[str, str], str]:
    """By type and id as findings report them, the ARM ids that scopes of exemptions are held against."""
    return {(subject.reported_type, subject.reported_id): subject.home for subject in subjects}


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
    outcomes = Counter(finding.outcome.value for finding in findings)
    return _summary(outcomes, exempt=sum(finding.exemption is not None for finding in findings))


def added(summaries: Iterable[Summary]) -> Summary:
    """The summary over the findings of several evaluations."""
    counted = list(summaries)
    outcomes = Counter[str]()
    for each in counted:
        outcomes.update({"pass": each.pass_, "fail": each.fail, "unknown": each.unknown, "error": each.error})
    return _summary(outcomes, exempt=sum(each.exempt for each in counted))


def _summary(outcomes: Counter[str], exempt: int) -> Summary:
    passed, unknown = outcomes[Outcome.PASS], outcomes[Outcome.UNKNOWN]
    total = outcomes.total() or 1
    return Summary.model_construct(
        pass_=passed,
        fail=outcomes[Outcome.FAIL],
        unknown=unknown,
        error=outcomes[Outcome.ERROR],
        exempt=exempt,
        strict_compliance=round(100 * passed / total, 2),
        azure_compliance=round(100 * (passed + exempt + unknown) / total, 2),
    )


def problems_of(prepared: Prepared) -> list[Problem]:
    """What a reader must know of a snapshot, whatever is found in it."""
    snapshot = prepared.snapshot
    said = [f"{_AS_ASKED if is_as_asked(line) else _INCOMPLETE}: {line}" for line in snapshot.incomplete]
    words = of_classifications(prepared.unknown_classifications, prepared.known_classifications)
    return [*prepared.estate.problems, *words, *(Problem(level="warning", message=message) for message in said)]


def _nothing_evaluated(bundle: Bundle, estate: Estate) -> str:
    there = sum(not subject.is_gap for subject in estate.subjects)
    seen = f"{there} resources and {len(bundle.policies)} policies, and none of them applies"
    return f"nothing was evaluated: {seen}; see `policyeng policies list` for what the policies judge"
