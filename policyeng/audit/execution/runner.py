"""Run an audit of an estate: read its parts, evaluate them or reuse their earlier findings, and store the run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, cached_property

from pydantic_core import to_json

from policyeng import __version__
from policyeng.audit.collection.parts import Collected, PartSource, is_unchanged, sources_of
from policyeng.audit.collection.urls import hide_secrets, is_url
from policyeng.audit.execution.part_evaluation import (
    Before,
    JudgedPart,
    Resumed,
    ReuseKey,
    RunOptions,
    decode_key,
    ids_in_force,
    missed,
    options_of,
    read_and_judged,
    read_back,
)
from policyeng.audit.records import AuditRun
from policyeng.audit.store.codecs import PartRow, canonical, digest_of, evaluation_of, head_of, in_batches, pack
from policyeng.audit.store.run_writer import StoredPart, start_run
from policyeng.audit.store.store import Store, contents_of, rows_of
from policyeng.bundle import Bundle, Policy
from policyeng.bundle.serialization import pack_bundle, unpack_bundle
from policyeng.cache import package_digest
from policyeng.configuration.estates import EstateSettings
from policyeng.context import EvaluationSetup
from policyeng.engines import OpaOptions, engine_version
from policyeng.evaluation import added
from policyeng.exemptions import in_force_of, unused
from policyeng.frozen import frozen
from policyeng.models import BundleRef, EngineRef, Problem, Summary
from policyeng.processes import Processes, Task, processes
from policyeng.progress import counted
from policyeng.report.phrases import rfc3339
from policyeng.sources import FileWalk

#: Parts of which the stored findings are in memory at once.
_BATCH = 100


class EarlierRun:
    """The last run of an estate, for reusing its evaluations.

    Attributes:
        grounds: the digest of what all parts of this run share; see `ReuseKey`.
    """

    def __init__(
        self, store: Store, last: AuditRun | None, policies: Sequence[Policy], grounds: str, options: RunOptions
    ) -> None:
        """Use the parts of the last run, if any."""
        self._store, self._options, self.grounds = store, options, grounds
        self._as_of = last.as_of if last else options.as_of
        self._rows: Mapping[str, PartRow] = rows_of(store, last) if last else {}
        self._in_force = ids_in_force(options, policies)
        self._saying = cache(lambda used: frozenset(_problems_of_exemptions(options, policies, used)))

    def resumed(
        self, sources: Iterable[PartSource | Collected]
    ) -> Iterator[PartSource | Collected | Resumed | JudgedPart]:
        """Yield the parts of an estate in order, with the reusable evaluations.

        Raises:
            StoreError: a reused content is not what was stored.
        """
        for batch in in_batches(sources, _BATCH):
            held = {source.name: found for source in batch if (found := self._held(source))}
            heads = contents_of(self._store, [row.evaluation for row, _ in held.values()]) if held else {}
            again = [heads[row.evaluation] for row, basis in held.values() if self._is_again(basis, row, heads)]
            findings = contents_of(self._store, [head_of(head).findings for head in again]) if again else {}
            for source in batch:
                found = held.get(source.name) if isinstance(source, PartSource) else None
                head = heads.get(found[0].evaluation) if found else None
                yield (self._taken(source, *found, head, findings) if found and head else None) or source

    def _held(self, source: PartSource | Collected) -> tuple[PartRow, ReuseKey] | None:
        row = self._rows.get(source.name)
        if row is None or not row.holding or isinstance(source, Collected):
            return None
        basis = read_back(row.holding)
        if basis is None or basis.grounds != self.grounds or tuple(basis.in_force) != self._in_force:
            return None
        return (row, basis) if is_unchanged(source, basis.asked) else None

    def _is_again(self, basis: ReuseKey, row: PartRow, heads: Mapping[str, bytes]) -> bool:
        return row.evaluation in heads and not self._is_same_clock(basis)

    def _taken(
        self, source: PartSource | Collected, row: PartRow, basis: ReuseKey, head: bytes, findings: Mapping[str, bytes]
    ) -> Resumed | JudgedPart | None:
        if isinstance(source, PartSource) and not self._is_same_clock(basis):
            stored = findings.get(head_of(head).findings)
            if stored is None:
                return None
            return Resumed(
                source, basis.asked, Before(evaluation_of(head, stored), frozenset(basis.again), row.snapshot)
            )
        then, now = (b',"asOf":' + to_json(moment) for moment in (self._as_of, self._options.as_of))
        if head.count(then) != 1:  # its evaluation time differs from that of its run
            return None
        content = head.replace(then, now)
        digest = digest_of(content)
        entry = StoredPart(
            row.name, row.snapshot, digest, {digest: pack(content)}, row.standing, row.exit_code, row.summary
        )
        summary = Summary.model_validate_json(row.summary)
        return JudgedPart(row.name, entry, summary, (), self._saying(tuple(basis.used)), basis)

    def _is_same_clock(self, basis: ReuseKey) -> bool:
        """Check whether the policies that read the clock have the same results."""
        now = self._options.as_of
        return not basis.again or self._as_of == now or (basis.unchanged is not None and basis.unchanged.includes(now))


def _problems_of_exemptions(options: RunOptions, policies: Sequence[Policy], used: Sequence[str]) -> Iterator[Problem]:
    in_force, problems = in_force_of(options.exemptions, policies, options.as_of)
    yield from (*problems, *unused(in_force, used))


def digest_grounds(policies: bytes, options: RunOptions) -> str:
    """Return the digest of the stored policies, the options, and the code of the engine."""
    stated = {
        "policies": digest_of(policies),
        "parameters": options.parameters,
        "exemptions": [exemption.model_dump(mode="json") for exemption in options.exemptions],
        "failing": [str(options.fail_on), options.strict_unknown],
        "engine": [options.engine, engine_version(options.engine, options.opa)],
        "code": [__version__, package_digest()],
    }
    return digest_of(canonical(stated))


#: So many parts are asked for ahead, for each process: work for as long as the store takes to write a batch.
_AHEAD = 8


def evaluate_parts(
    sources: Iterable[PartSource | Collected | Resumed | JudgedPart],
    bundle: Bundle,
    policies: bytes,
    options: RunOptions,
    jobs: int,
) -> Iterator[JudgedPart]:
    """Read and evaluate parts, in order.

    Args:
        sources: the sources of parts, or parts that are read or evaluated already.
        bundle: the policies.
        policies: their stored form, which each process reads.
        options: the other options for evaluations.
        jobs: the number of processes; 1 uses this process.

    Raises:
        EngineError: the bundle does not compile, the engine does not answer, or a process ended.
    """
    if jobs == 1:
        for source in sources:
            yield source if isinstance(source, JudgedPart) else read_and_judged(source, bundle, options)
        return
    waiting: deque[Task[JudgedPart] | JudgedPart] = deque()
    # New processes and no forks: this one may have threads, such as those of a schedule.
    with processes(_Judging(policies, options), jobs, ahead=_AHEAD, is_sent=True) as spread:
        for source in sources:
            waiting.append(source if isinstance(source, JudgedPart) else spread.ask(_Judging.judge, source))
            if len(waiting) > _AHEAD * jobs:
                yield _evaluate(spread, waiting.popleft())
        while waiting:
            yield _evaluate(spread, waiting.popleft())


@frozen
class _Judging:
    """What a process judges with, from its beginning on."""

    policies: bytes
    options: RunOptions

    @cached_property
    def bundle(self) -> Bundle:
        return unpack_bundle(self.policies)

    def judge(self, source: PartSource | Collected | Resumed) -> JudgedPart:
        return read_and_judged(source, self.bundle, self.options)


def _evaluate(spread: Processes[_Judging], part: Task[JudgedPart] | JudgedPart) -> JudgedPart:
    return part if isinstance(part, JudgedPart) else spread.answer(part)


class PartTotals:
    """The totals of the parts of a run.

    Attributes:
        parts: the number of parts.
        problems: of parts that could not be evaluated.
        summaries: of each part.
    """

    def __init__(self) -> None:
        self.parts = 0
        self.summaries: list[Summary] = []
        self.problems: list[Problem] = []
        self._exit_code = 0
        self._exempting: frozenset[Problem] | None = None

    def add(self, part: JudgedPart) -> None:
        """Add a part."""
        self.problems += part.problems
        if part.entry is None:
            return
        self.parts += 1
        self._exit_code = max(self._exit_code, part.entry.exit_code)
        self.summaries.append(part.summary)
        if part.exempting is not None:
            self._exempting = part.exempting if self._exempting is None else self._exempting & part.exempting

    def run_problems(self, more: Iterable[Problem]) -> list[Problem]:
        """Return the problems of the run: `more`, those of parts, and problems of exemptions that all parts have."""
        problems = [*more, *self.problems]
        if not self.parts:
            message = "nothing was read: the estate has no part that can be evaluated"
            problems.append(Problem(level="error", message=message))
        return problems + sorted(self._exempting or (), key=lambda problem: (problem.place, problem.message))

    def exit_code(self, problems: Iterable[Problem]) -> int:
        """Return the exit code of the run, as of `check` of all parts."""
        return max(self._exit_code, 2 * any(problem.level == "error" for problem in problems))


def run_estate(
    store: Store,
    estate: EstateSettings,
    held: EvaluationSetup,
    *,
    as_of: datetime,
    engine: str = "embedded",
    opa: OpaOptions | None = None,
    jobs: int = 1,
    full: bool = False,
) -> AuditRun:
    """Audit an estate: read and evaluate its parts, and store them as one run.

    Args:
        store: the store of the run.
        estate: the estate.
        held: the policies, exemptions and settings.
        as_of: the evaluation clock; in UTC without a time zone.
        engine: the engine for Rego.
        opa: options of that engine.
        jobs: the number of processes.
        full: whether to evaluate unchanged parts again.

    Raises:
        StoreError: the estate is being audited already, or the store reports an error.
        EngineError: the bundle does not compile, or the engine does not answer.
    """
    started, options = datetime.now(UTC), options_of(held, as_of, engine, opa)
    policies, tally = pack_bundle(held.bundle), PartTotals()
    with start_run(store, estate.name, policies) as draft:
        last = next(iter(store.runs(estate.name, last=1)), None)
        before = {part.name for part in store.parts(last)} if last else set()
        earlier = EarlierRun(
            store, None if full else last, held.bundle.policies, digest_grounds(policies, options), options
        )
        sources = sources_of(estate, FileWalk(held.settings.exclude))
        for part in counted(evaluate_parts(earlier.resumed(sources), held.bundle, policies, options, jobs)):
            if last and part.entry is None and part.name in before:
                part = missed(part, last.number)
            tally.add(part)
            if part.entry is not None:
                draft.add(part.entry._replace(holding=decode_key(part.basis, earlier.grounds)))
        warnings = [*_missing_heads(store, held.settings.expect), *_warn_about_earlier_clock(last, options.as_of)]
        return draft.finish(_run(estate, held, options, tally, started, warnings))


def _missing_heads(store: Store, expected: Sequence[str]) -> Iterator[Problem]:
    """Warn about expected hashes that the store lacks, such as after it was deleted or replaced."""
    for missing in store.missing(expected):
        message = f"the store has no run and no retention with the expected hash `{missing}`: it may have been replaced"
        yield Problem(level="warning", message=message, place="store")


def _warn_about_earlier_clock(last: AuditRun | None, as_of: datetime) -> Iterator[Problem]:
    """Warn about an earlier clock than that of the last run: expired exemptions could be active again."""
    if last is not None and as_of < last.as_of:
        message = f"the clock {rfc3339(as_of)} is earlier than {rfc3339(last.as_of)}, the clock of run {last.number}"
        yield Problem(level="warning", message=message, place="clock")


def _run(
    estate: EstateSettings,
    held: EvaluationSetup,
    options: RunOptions,
    tally: PartTotals,
    started: datetime,
    warnings: Sequence[Problem],
) -> AuditRun:
    """Return the run, without its number, content, previous hash and hash."""
    problems = (*tally.run_problems(held.problems), *warnings)
    bundle = held.bundle
    return AuditRun(
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
    """Return the inputs of an estate without secrets: paths, URLs, or the ARM id of live Azure."""
    if not estate.subscription:
        return tuple(hide_secrets(given) if is_url(given) else given for given in estate.inputs)
    identity = f"/subscriptions/{estate.subscription}"
    if estate.resource_group:
        identity += f"/resourceGroups/{estate.resource_group}"
    if estate.workspace:
        identity += f"/providers/Microsoft.MachineLearningServices/workspaces/{estate.workspace}"
    return (identity,)
