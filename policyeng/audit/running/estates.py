"""A run of an estate, from its parts to its hash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from policyeng.audit.collecting.parts import sources_of
from policyeng.audit.collecting.urls import is_url, shown
from policyeng.audit.history import Run
from policyeng.audit.running.holding import rests_on
from policyeng.audit.running.judging import RunOptions, missed, options_of
from policyeng.audit.running.processes import judged_parts
from policyeng.audit.running.taking_over import Earlier, grounds_of
from policyeng.audit.running.tally import Tally
from policyeng.audit.store.drafting import drafted
from policyeng.audit.store.kept import Store
from policyeng.bundle.carrying import packed
from policyeng.configuration.estates import EstateSettings
from policyeng.engines import OpaOptions, engine_version
from policyeng.evaluation import added
from policyeng.exemptions import in_force_of
from policyeng.in_force import Held
from policyeng.models import BundleRef, EngineRef, Problem
from policyeng.report.wording import rfc3339
from policyeng.sources import Walk


def run_estate(
    store: Store,
    estate: EstateSettings,
    held: Held,
    *,
    as_of: datetime,
    engine: str = "embedded",
    opa: OpaOptions | None = None,
    jobs: int = 1,
    full: bool = False,
) -> Run:
    """Audit an estate: read and judge its parts, and keep them as one run.

    Args:
        store: where it is kept.
        estate: what is audited.
        held: what is judged with.
        as_of: the evaluation clock; without a zone it is taken as UTC.
        engine: what judges Rego.
        opa: which OPA judges, for that engine.
        jobs: how many processes judge.
        full: judge also what did not change since the last run.

    Raises:
        StoreError: the estate is being audited already, or the store refuses something.
        EngineError: the bundle does not compile, or the engine does not answer.
    """
    started, options = datetime.now(UTC), options_of(held, as_of, engine, opa)
    policies, tally = packed(held.bundle), Tally()
    with drafted(store, estate.name, policies) as draft:
        last = next(iter(store.runs(estate.name, last=1)), None)
        before = {part.name for part in store.parts(last)} if last else set()
        earlier = Earlier(store, None if full else last, held.bundle.policies, grounds_of(policies, options), options)
        sources = sources_of(estate, Walk(held.settings.exclude))
        for part in judged_parts(earlier.resumed(sources), held.bundle, policies, options, jobs):
            if last and part.entry is None and part.name in before:
                part = missed(part, last.number)
            tally.add(part)
            if part.entry is not None:
                draft.add(part.entry._replace(holding=rests_on(part.basis, earlier.grounds)))
        warnings = [*_missing_heads(store, held.settings.expect), *_earlier_clock(last, options.as_of)]
        return draft.finish(_run(estate, held, options, tally, started, warnings))


def _missing_heads(store: Store, expected: Sequence[str]) -> Iterator[Problem]:
    """Warn of hashes that the configuration expects and the store lacks, as after it was deleted or replaced."""
    for missing in store.missing(expected):
        message = f"the store has no run and no retention with the expected hash `{missing}`: it may have been replaced"
        yield Problem(level="warning", message=message, place="store")


def _earlier_clock(last: Run | None, as_of: datetime) -> Iterator[Problem]:
    """Warn of a clock that goes backwards: an exemption that has expired since could be in force again."""
    if last is not None and as_of < last.as_of:
        message = f"the clock {rfc3339(as_of)} is earlier than {rfc3339(last.as_of)}, the clock of run {last.number}"
        yield Problem(level="warning", message=message, place="clock")


def _run(
    estate: EstateSettings,
    held: Held,
    options: RunOptions,
    tally: Tally,
    started: datetime,
    warnings: Sequence[Problem],
) -> Run:
    """The run, but for what only its place in the store says."""
    problems = (*tally.said(held.problems), *warnings)
    bundle = held.bundle
    return Run(
        number=0,
        estate=estate.name,
        started_at=started,
        finished_at=datetime.now(UTC),
        as_of=options.as_of,
        inputs=inputs_of(estate),
        bundle=BundleRef(name=bundle.name, revision=bundle.revision, digest=bundle.digest),
        engine=EngineRef(name=options.engine, version=engine_version(options.engine, options.opa)),
        parameters=options.parameters,
        exemptions=tuple(in_force_of(options.exemptions, bundle.policies, options.as_of)[0]),
        fail_on=options.fail_on,
        strict_unknown=options.strict_unknown,
        exit_code=tally.exit_code(problems),
        summary=added(tally.summaries),
        parts=tally.parts,
        problems=problems,
        settings=held.applied,
        content="",
        previous="",
        hash="",
    )


def inputs_of(estate: EstateSettings) -> tuple[str, ...]:
    """Where an estate is read from, without secrets: paths, URLs, or the ARM id of live Azure."""
    if not estate.subscription:
        return tuple(shown(given) if is_url(given) else given for given in estate.inputs)
    identity = f"/subscriptions/{estate.subscription}"
    if estate.resource_group:
        identity += f"/resourceGroups/{estate.resource_group}"
    if estate.workspace:
        identity += f"/providers/Microsoft.MachineLearningServices/workspaces/{estate.workspace}"
    return (identity,)
