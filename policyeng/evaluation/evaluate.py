"""Bundle x snapshot x exemptions x as-of -> evaluation. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from policyeng import exemptions as exempting
from policyeng._performance import uncollected
from policyeng.bundle import Bundle
from policyeng.engines import OpaOptions, engine_version, judge
from policyeng.evaluation.context import EvaluationContext, prepare
from policyeng.evaluation.findings import findings_of
from policyeng.evaluation.options import PAIRS_OF_A_PROCESS, EvaluationOptions
from policyeng.evaluation.prepared_snapshot import PreparedSnapshot
from policyeng.evaluation.summary import exit_code, homes_of, problems_of, summary_of
from policyeng.models import (
    BundleRef,
    EngineRef,
    Evaluation,
    Exemption,
    Finding,
    Findings,
    JsonObject,
    Problem,
    Severity,
    Snapshot,
    SnapshotRef,
)
from policyeng.redaction import masked_message
from policyeng.rego.clock import Clock


def evaluate(
    bundle: Bundle,
    snapshot: Snapshot,
    *,
    as_of: datetime,
    exemptions: Sequence[Exemption] = (),
    parameters: Mapping[str, JsonObject] | None = None,
    engine: str = "embedded",
    opa: OpaOptions | None = None,
    jobs: int = 1,
    fail_on: Severity = Severity.LOW,
    strict_unknown: bool = False,
    problems: Iterable[Problem] = (),
) -> Evaluation:
    """Evaluate every resource of a snapshot with every policy of a bundle that applies to it.

    Args:
        bundle: the policies in force.
        snapshot: what is evaluated.
        as_of: the evaluation clock; without a zone it is taken as UTC.
        exemptions: acceptances that mark failures while they are in force.
        parameters: by policy id, values that replace the defaults.
        engine: evaluates Rego, a name of `policyeng.engines.ENGINES`.
        opa: which OPA evaluates, for the engine `opa`; a private server unless given.
        jobs: how many processes evaluate; with 0 as many as pay, at most one for each processor. They are forked, so
            no other thread of this one may be at work. It is for the engine `embedded`.
        fail_on: failures at or above this severity make the exit code 1.
        strict_unknown: what cannot be decided counts as a failure does.
        problems: what went wrong on the way to the snapshot; an error among them makes the exit code 2.

    Raises:
        UsageError: a parameter does not exist or does not fit its schema, or the engine does not exist or evaluates
            in one process only.
        EngineError: the bundle does not compile, the OPA server does not answer for every pair, or no process can be
            started.
    """
    options = EvaluationOptions(as_of, exemptions, engine, opa, jobs, fail_on, strict_unknown, tuple(problems))
    return evaluate_prepared(prepare(bundle, snapshot, parameters), options)


@uncollected()
def evaluate_prepared(prepared: EvaluationContext, options: EvaluationOptions) -> Evaluation:
    """Evaluate every pair of a context.

    Raises:
        UsageError: the engine does not exist.
        EngineError: the bundle does not compile, or the OPA server does not answer for every pair.
    """
    return conclude(prepared, evaluate_pairs(prepared, options), options)


@uncollected()
def evaluate_pairs(prepared: EvaluationContext, options: EvaluationOptions, clock: Clock | None = None) -> Findings:
    """Return the findings of all pairs, sorted, before exemptions mark them.

    Args:
        prepared: what is evaluated.
        options: how.
        clock: shows the moment of the options; it records at which others the findings are the same.

    Raises:
        UsageError: the engine does not exist, or evaluates in one process only.
        EngineError: the bundle does not compile, the OPA server does not answer for every pair, or no process can be
            started.
    """
    work = prepared.work(options.moment, clock)
    if options.jobs > 1 or (options.jobs == 0 and len(prepared.planned) >= 2 * PAIRS_OF_A_PROCESS):
        from policyeng.evaluation.partitioning import findings_by_processes, processes_for  # most are not divided

        count = processes_for(options, len(prepared.planned))
        if count > 1:
            if clock is not None:
                clock.give_up()  # what other processes record is not known here
            return findings_by_processes(prepared, work, count)
    return findings_of(prepared, judge(work, options.engine, options.opa))


def conclude(prepared: EvaluationContext, findings: Sequence[Finding], options: EvaluationOptions) -> Evaluation:
    """Return the evaluation of all findings: marked by exemptions, counted, with an exit code.

    Raises:
        UsageError: the engine does not exist.
        EngineError: the OPA server does not answer.
    """
    bundle, snapshot, estate = prepared.bundle, prepared.snapshot, prepared.estate
    homes = homes_of(estate.subjects) if options.exemptions else {}
    marked, notes = exempting.apply(findings, options.exemptions, bundle.policies, homes, options.moment)
    problems = [*options.problems, *problems_of(prepared), *notes]
    gaps = {(gap.kind, gap.scope) for gap in estate.gaps}
    if all((finding.resource_type, finding.resource) in gaps for finding in marked):
        problems.append(_nothing_evaluated(bundle, estate))
    engine = EngineRef(name=options.engine, version=engine_version(options.engine, options.opa))
    return Evaluation(
        bundle=BundleRef(name=bundle.name, revision=bundle.revision, digest=bundle.digest),
        snapshot=SnapshotRef(scope=masked_message(snapshot.scope), taken_at=snapshot.taken_at, digest=estate.digest),
        as_of=options.moment,
        engine=engine,
        exit_code=exit_code(marked.others, problems, options.fail_on, strict_unknown=options.strict_unknown),
        summary=summary_of(marked),
        findings=marked,
        problems=tuple(problems),
    )


def _nothing_evaluated(bundle: Bundle, estate: PreparedSnapshot) -> Problem:
    there = sum(not subject.is_gap for subject in estate.subjects)
    seen = f"{there} resources and {len(bundle.policies)} policies, and none of them applies"
    message = f"nothing was evaluated: {seen}; see `policyeng policies list` for what the policies judge"
    return Problem(level="error", message=message, kind="nothing_evaluated")
