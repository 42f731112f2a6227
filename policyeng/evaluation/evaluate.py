"""Bundle x snapshot x exemptions x as-of -> evaluation. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from policyeng import exemptions as exempting
from policyeng.bundle import Bundle
from policyeng.engines import OpaOptions, engine_version, judge
from policyeng.evaluation.conclusion import exit_code, homes_of, problems_of, summary_of
from policyeng.evaluation.estate import Estate
from policyeng.evaluation.findings import findings_of
from policyeng.evaluation.options import EvaluationOptions
from policyeng.evaluation.prepared import Prepared, prepare
from policyeng.garbage import uncollected
from policyeng.masking import masked_message
from policyeng.models import (
    BundleRef,
    EngineRef,
    Evaluation,
    Exemption,
    Finding,
    JsonObject,
    Problem,
    Severity,
    Snapshot,
    SnapshotRef,
)


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
    options = EvaluationOptions(as_of, exemptions, engine, opa, threads, fail_on, strict_unknown, tuple(problems))
    judgements = judge(prepared.work(options.moment, threads), engine, opa)
    return concluded(prepared, findings_of(prepared, judgements), options)


def concluded(prepared: Prepared, judged: Sequence[Finding], options: EvaluationOptions) -> Evaluation:
    """The evaluation that the findings of all pairs come to, once exemptions have marked them.

    Raises:
        UsageError: the engine does not exist.
        EngineError: the OPA server does not answer.
    """
    bundle, snapshot, estate = prepared.bundle, prepared.snapshot, prepared.estate
    homes = homes_of(estate.subjects)
    findings, notes = exempting.apply(judged, options.exemptions, bundle.policies, homes, options.moment)
    said = [*options.problems, *problems_of(prepared), *notes]
    gaps = {(gap.kind, gap.scope) for gap in estate.gaps}
    if all((finding.resource_type, finding.resource) in gaps for finding in findings):
        said.append(Problem(level="error", message=_nothing_evaluated(bundle, estate)))
    engine = EngineRef.model_construct(name=options.engine, version=engine_version(options.engine, options.opa))
    return Evaluation.model_construct(
        bundle=BundleRef.model_construct(name=bundle.name, revision=bundle.revision, digest=bundle.digest),
        snapshot=SnapshotRef.model_construct(
            scope=masked_message(snapshot.scope), taken_at=snapshot.taken_at, digest=estate.digest
        ),
        as_of=options.moment,
        engine=engine,
        exit_code=exit_code(findings, said, options.fail_on, strict_unknown=options.strict_unknown),
        summary=summary_of(findings),
        findings=tuple(findings),
        problems=tuple(said),
    )


def _nothing_evaluated(bundle: Bundle, estate: Estate) -> str:
    there = sum(not subject.is_gap for subject in estate.subjects)
    seen = f"{there} resources and {len(bundle.policies)} policies, and none of them applies"
    return f"nothing was evaluated: {seen}; see `policyeng policies list` for what the policies judge"
