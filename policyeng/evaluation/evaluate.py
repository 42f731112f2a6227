"""Evaluate a snapshot with a bundle: load, match, evaluate, exempt, conclude.

Loading and matching are in `context.prepare`. Nothing here does I/O or reads the system clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from policyeng import exemptions as exempting
from policyeng._performance import uncollected
from policyeng.bundle import Bundle
from policyeng.engines import engine_version, run_engine
from policyeng.evaluation.context import PAIRS_OF_A_PROCESS, EvaluationContext, prepare
from policyeng.evaluation.findings import findings_of
from policyeng.evaluation.options import EvaluationOptions
from policyeng.evaluation.summary import exit_code, find_scopes, problems_of, summary_of
from policyeng.facts.coverage import ledger_of
from policyeng.facts.evidence import mask_evidence
from policyeng.models import (
    BundleRef,
    EngineRef,
    Evaluation,
    Evidence,
    Finding,
    Findings,
    Problem,
    Snapshot,
    SnapshotRef,
    lowered,
)
from policyeng.redaction import masked_message
from policyeng.rego.clock import Clock

#: More types than this are not listed in a message.
_MOST_TYPES = 8


def evaluate(bundle: Bundle, snapshot: Snapshot, options: EvaluationOptions) -> Evaluation:
    """Evaluate every resource of a snapshot with every policy of a bundle that applies to it.

    Raises:
        UsageError: a parameter does not exist or does not match its schema, or the engine does not exist or cannot use
            several processes.
        EngineError: the bundle does not compile, the OPA server does not return a result for every pair, or no process
            can be started.
    """
    return evaluate_prepared(prepare(bundle, snapshot, options.parameters), options)


@uncollected()
def evaluate_prepared(prepared: EvaluationContext, options: EvaluationOptions) -> Evaluation:
    """Evaluate every pair of a context and summarize the findings.

    Raises:
        UsageError: the engine does not exist.
        EngineError: the bundle does not compile, or the OPA server does not return a result for every pair.
    """
    findings = evaluate_pairs(prepared, options)
    return conclude(prepared, findings, options)


@uncollected()
def evaluate_pairs(prepared: EvaluationContext, options: EvaluationOptions, clock: Clock | None = None) -> Findings:
    """Return the sorted findings of all pairs, without exemptions.

    Args:
        prepared: the bundle and the snapshot.
        options: the settings.
        clock: a clock set to the time of the options; it records at which other times the findings are the same.

    Raises:
        UsageError: the engine does not exist or cannot use several processes.
        EngineError: the bundle does not compile, the OPA server does not return a result for every pair, or no process
            can be started.
    """
    request = prepared.work(options.moment, clock)
    pairs = sum(map(len, request.positions.values()))
    if options.jobs > 1 or (options.jobs == 0 and pairs >= 2 * PAIRS_OF_A_PROCESS):
        from policyeng.evaluation.partitioning import evaluate_in_processes, processes_for  # seldom needed

        count = processes_for(options, pairs)
        if count > 1:
            if clock is not None:
                clock.give_up()  # what other processes record is not available here
            return findings_of(prepared, evaluate_in_processes(request, count))
    return findings_of(prepared, run_engine(request, options.engine, options.opa))


def conclude(prepared: EvaluationContext, findings: Sequence[Finding], options: EvaluationOptions) -> Evaluation:
    """Apply the exemptions, count the findings, and choose the exit code.

    Raises:
        UsageError: the engine does not exist.
        EngineError: the OPA server does not respond.
    """
    bundle, snapshot, estate = prepared.bundle, prepared.snapshot, prepared.estate
    homes = find_scopes(estate.subjects) if options.exemptions else {}
    marked, warnings = exempting.apply(
        findings, options.exemptions, bundle.policies, homes, options.moment, bundle.idle
    )
    problems = [*options.problems, *problems_of(prepared), *warnings]
    problems += _foreign_problems(bundle, Findings.of(findings), options)
    # Why nothing could be read is the cause; that nothing was evaluated follows from it.
    if snapshot.resources or not any(problem.level == "error" for problem in options.problems):
        problems += _check_not_empty(marked, prepared)
    ledger = ledger_of(snapshot)
    engine = EngineRef(name=options.engine, version=engine_version(options.engine, options.opa))
    return Evaluation(
        bundle=BundleRef(name=bundle.name, revision=bundle.revision, digest=bundle.digest),
        snapshot=SnapshotRef(scope=masked_message(snapshot.scope), taken_at=snapshot.taken_at, digest=estate.digest),
        as_of=options.moment,
        engine=engine,
        exit_code=exit_code(marked.others, problems, options, ledger),
        fail_on=options.fail_on,
        strict_unknown=options.strict_unknown,
        summary=summary_of(marked),
        findings=marked,
        problems=tuple(problems),
        ledger=ledger,
        evidence=tuple(_evidence_in_force(prepared, options.moment)),
    )


def _foreign_problems(bundle: Bundle, findings: Findings, options: EvaluationOptions) -> Iterator[Problem]:
    """Yield the modules of others that are left out and decide nothing themselves, and the builtins that failed."""
    for note in bundle.azure_notes:
        yield Problem(level="error" if note.is_error else "warning", message=note.message, place=note.place)
    if bundle.foreign and options.engine == "embedded":
        from policyeng.engines.embedded import compile_bundle  # as for the evaluation

        decided = {finding.policy for finding in findings.others}
        for module in compile_bundle(bundle).left_out[len(bundle.left_out) :]:
            if decided.isdisjoint(f"{module.package}.{name}" for name in module.names):
                yield Problem(level="error", message=module.reason, place=module.path, kind="left_out")
    names = {policy.id: bundle.name_of(policy) for policy in bundle.policies} if findings.builtin_errors else {}
    by_name: dict[str, Counter[str]] = {}
    for (policy, builtin), number in findings.builtin_errors.items():
        by_name.setdefault(names[policy], Counter())[builtin] += number
    for name, counts in sorted(by_name.items()):
        listed = ", ".join(f"{builtin} {number}" for builtin, number in sorted(counts.items()))
        message = "builtins that fail are undefined, as for `opa test`, Conftest and Gatekeeper"
        remedy = "set `metadata.policyeng.builtin_errors` to `error` in its `.manifest` to make them errors"
        text = f"{message}: {listed} ({counts.total()} in all); {remedy}"
        yield Problem(level="warning", message=text, place=name, kind="builtin_errors")


def _evidence_in_force(prepared: EvaluationContext, moment: datetime) -> Iterator[Evidence]:
    """Yield the active evidence for active policies and for controls, by id."""
    policies = {lowered(policy.id) for policy in prepared.bundle.policies}
    for entry in sorted(prepared.snapshot.evidence, key=lambda one: lowered(one.id)):
        is_meant = ":" in entry.for_ or lowered(entry.for_) in policies
        if is_meant and entry.given_at <= moment < entry.expires_at:
            yield mask_evidence(entry)


def _check_not_empty(findings: Sequence[Finding], prepared: EvaluationContext) -> Iterator[Problem]:
    """Yield an error if no policy was evaluated for any resource that is in the snapshot."""
    subjects, gaps = prepared.estate.subjects, {(gap.kind, gap.scope) for gap in prepared.estate.gaps}
    if all((finding.resource_type, finding.resource) in gaps for finding in findings):
        resources, policies = sum(not subject.is_gap for subject in subjects), len(prepared.bundle.policies)
        counts = f"none of {policies} policies applies to any of {resources} resources"
        kinds = {lowered(kind.type): kind.type for one in prepared.bundle.policies for kind in one.header.judges}
        needed = f"they check {', '.join(sorted(kinds.values()))}; add such resources"
        if len(kinds) > _MOST_TYPES:
            needed = "see `policyeng policies list` for the types that policies check"
        message = f"nothing was evaluated: {counts}; {needed}"
        yield Problem(level="error", message=message, kind="nothing_evaluated")
