"""Run an audit of an estate: read its parts, evaluate them or reuse earlier evaluations, and store them as one run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import orjson
from msgspec import Struct
from msgspec.structs import replace
from pydantic_core import to_json

from policyeng import __version__
from policyeng._performance import uncollected
from policyeng.audit.collection.parts import Collected, PartSource, hide_secrets, is_unchanged, is_url, read, sources_of
from policyeng.audit.records import AuditRun
from policyeng.audit.store.store import Store, StoredPart, contents_of, rows_of, start_run
from policyeng.audit.store.tables import (
    PartRow,
    canonical,
    compute_span_states,
    digest_of,
    encode_evaluation,
    encode_snapshot,
    evaluation_of,
    head_of,
    in_batches,
    pack,
    snapshot_of,
)
from policyeng.bundle import Bundle, Policy
from policyeng.bundle.assembling import pack_bundle, unpack_bundle
from policyeng.cache import package_digest
from policyeng.configuration.settings import EstateSettings
from policyeng.context import EvaluationSetup, walk_of
from policyeng.engines import engine_version
from policyeng.errors import InputError, StoreError
from policyeng.evaluation import (
    EvaluationContext,
    EvaluationOptions,
    added,
    conclude,
    evaluate,
    evaluate_pairs,
    prepare,
)
from policyeng.evaluation.findings import order_of
from policyeng.exemptions import in_force_of, place_of, unused
from policyeng.models import (
    BundleRef,
    EngineRef,
    Evaluation,
    FailureCriteria,
    Finding,
    Findings,
    LedgerEntry,
    Outcome,
    Problem,
    Snapshot,
    Summary,
    leaves_undecided,
)
from policyeng.processes import Processes, Task, processes
from policyeng.progress import counted
from policyeng.rego.clock import Clock, Unchanged, microseconds_of
from policyeng.report.phrases import rfc3339
from policyeng.sources.discovery import FileDependency
from policyeng.sources.parsed import problem_of


class ReuseKey(NamedTuple):
    """Everything that an evaluation depends on.

    Attributes:
        grounds: the digest of what all parts share, except for the clock; see `reuse.grounds_of`.
        asked: the file queries for reading the part.
        in_force: the ids of the active exemptions.
        again: the policies to evaluate again at another clock.
        used: the ids of the exemptions that cover a finding of the part.
        unchanged: the range of clocks with the same results; None if it is not known.
    """

    grounds: str
    asked: Sequence[FileDependency]
    in_force: Sequence[str]
    again: Sequence[str]
    used: Sequence[str]
    unchanged: Unchanged | None = None


def encode_key(basis: ReuseKey) -> str:
    """Return a key as JSON; empty if the name of a file is not text, which prevents reuse."""
    try:
        return canonical(
            {
                **basis._asdict(),
                "asked": [(one.question, str(one.path), one.answer) for one in basis.asked],
                "unchanged": basis.unchanged and tuple(basis.unchanged),
            }
        ).decode()
    except TypeError:
        return ""


def read_back(text: str) -> ReuseKey | None:
    """Return the key of its JSON; None for one of an earlier version.

    Raises:
        StoreError: the JSON is not a key.
    """
    try:
        stated = orjson.loads(text)
        if "unchanged" not in stated:
            return None
        asked = [FileDependency(question, Path(path), answer) for question, path, answer in stated["asked"]]
        unchanged = stated["unchanged"] and Unchanged(*stated["unchanged"])
        return ReuseKey(**{**stated, "asked": asked, "unchanged": unchanged})
    except (KeyError, TypeError, ValueError):
        remedy = "`policyeng audit verify-history` reports the affected run"
        raise StoreError("the dependencies of a part were altered", place=("parts",), remedy=remedy) from None


def decode_key(basis: ReuseKey | None, grounds: str) -> str:
    """Return the stored form of a key; empty without one."""
    return encode_key(basis._replace(grounds=grounds)) if basis else ""


class EvaluatedPart(Struct, frozen=True):
    """The result of a part.

    Attributes:
        entry: ready to be stored; None if the part has nothing to evaluate.
        problems: problems of the run.
        exempting: problems of exemptions; None if the part was not evaluated.
        basis: the key for reusing the evaluation, without what all parts share; None if the part was not evaluated.
        ledger: the entries of the ledger of the run; those of an evaluated part are in its evaluation.
    """

    name: str
    entry: StoredPart | None
    summary: Summary
    problems: tuple[Problem, ...] = ()
    exempting: frozenset[Problem] | None = None
    basis: ReuseKey | None = None
    ledger: tuple[LedgerEntry, ...] = ()


class Before(NamedTuple):
    """The evaluation of a part at another clock.

    Attributes:
        again: the ids of the policies to evaluate again at this clock.
        snapshot: the digest of the stored snapshot.
    """

    evaluation: Evaluation
    again: Set[str]
    snapshot: str


class Resumed(Struct, frozen=True):
    """An unchanged part with some policies to evaluate again.

    Attributes:
        queries: the file queries for reading it.
        before: its evaluation at another clock.
    """

    source: PartSource
    queries: Sequence[FileDependency]
    before: Before


@uncollected()
def read_and_evaluate(
    source: PartSource | Collected | Resumed, bundle: Bundle, options: EvaluationOptions
) -> EvaluatedPart:
    """Read a part if necessary, and evaluate it, or the policies that have to be evaluated again.

    Raises:
        EngineError: the bundle does not compile, or the engine does not answer.
    """
    if not isinstance(source, Resumed):
        return evaluate_part(read(source, bundle.wanted), bundle, options)
    part = read(source.source, bundle.wanted)
    is_same = list(part.queries) == list(source.queries)  # it may have changed since it was compared
    return evaluate_part(part, bundle, options, source.before if is_same else None)


def evaluate_part(
    part: Collected, bundle: Bundle, options: EvaluationOptions, before: Before | None = None
) -> EvaluatedPart:
    """Evaluate a part; with an earlier evaluation, only the policies that read the clock.

    Raises:
        EngineError: the bundle does not compile, or the engine does not answer.
    """
    if part.snapshot is None:
        if any(problem.level == "error" for problem in part.problems):
            return replace(unread(part.name, part.problems), ledger=part.ledger)
        return EvaluatedPart(part.name, None, Summary(), (*part.problems,), ledger=part.ledger)
    try:
        kept = encode_snapshot(part.snapshot)
    except InputError as error:
        return unread(part.name, [problem_of(InputError(error.message, place=(part.name,), remedy=error.remedy))])
    snapshot = snapshot_of(kept.contents[kept.digest], kept.contents)
    prepared, given = prepare(bundle, snapshot, options.parameters), replace(options, problems=part.problems)
    part_of = prepared.only(lambda policy, _: policy.id in before.again) if before else prepared
    clock = Clock(given.moment)
    found = evaluate_pairs(part_of, given, clock)
    again = _find_clock_policies(prepared, found) | (before.again if before else frozenset())
    if before:
        kept_findings = (one for one in before.evaluation.findings if one.policy not in before.again)
        together: list[Finding] = sorted((*kept_findings, *found), key=order_of)
        found = Findings.of(together)
    evaluation, exempting = separate_exemption_problems(conclude(prepared, found, given))
    stored = encode_evaluation(evaluation, len(part.problems))
    read_anew = {} if before and before.snapshot == kept.digest else kept.contents
    entry = StoredPart(
        name=part.name,
        snapshot=kept.digest,
        evaluation=stored.digest,
        contents={digest: pack(content) for digest, content in (*read_anew.items(), *stored.contents.items())},
        standing=compute_span_states(Findings.of(evaluation.findings)),
        exit_code=evaluation.exit_code,
        summary=evaluation.summary.model_dump_json(by_alias=True),
    )
    active, used = ids_in_force(options, bundle.policies), find_used_exemptions(options, bundle, exempting)
    if not again:
        clock = Clock(given.moment)  # no finding depends on it
    for evidence in snapshot.evidence:  # an evaluation lists the active evidence
        clock.has_come(microseconds_of(evidence.given_at))
        clock.has_come(microseconds_of(evidence.expires_at))
    unchanged = None if _failing(found) else clock.unchanged
    basis = ReuseKey("", part.queries, active, sorted(again), used, unchanged)
    return EvaluatedPart(part.name, entry, evaluation.summary, (), exempting, basis)


def _failing(found: Findings) -> set[str]:
    """Return the ids of the policies with an error."""
    return {finding.policy for finding in found.others if finding.outcome is Outcome.ERROR}


def _find_clock_policies(prepared: EvaluationContext, found: Findings) -> frozenset[str]:
    """Return the ids of the policies whose findings depend on the clock; errors can be timeouts."""
    bundle = prepared.bundle
    planned = {column.policy for column in prepared.planned}
    return frozenset((*(bundle.policies[number].id for number in planned if bundle.clocked[number]), *_failing(found)))


def ids_in_force(options: EvaluationOptions, policies: Sequence[Policy]) -> tuple[str, ...]:
    """Return the ids of the exemptions that are active at the clock."""
    return tuple(one.id for one in in_force_of(options.exemptions, policies, options.as_of)[0])


def find_used_exemptions(options: EvaluationOptions, bundle: Bundle, exempting: Iterable[Problem]) -> tuple[str, ...]:
    """Return the ids of the exemptions that cover a finding of a part, from its problems of exemptions."""
    idle = {problem.place for problem in exempting}
    active, _ = in_force_of(options.exemptions, bundle.policies, options.as_of)
    return tuple(sorted(entry.id for entry in active if place_of(entry) not in idle))


def evaluate_stored(
    snapshot: Snapshot, bundle: Bundle, options: EvaluationOptions, problems: Sequence[Problem]
) -> Evaluation:
    """Evaluate a stored snapshot. Return the evaluation without the problems of exemptions."""
    return separate_exemption_problems(evaluate(bundle, snapshot, replace(options, problems=problems)))[0]


def separate_exemption_problems(evaluation: Evaluation) -> tuple[Evaluation, frozenset[Problem]]:
    """Separate the problems of exemptions from an evaluation.

    They are problems of the run: an exemption that covers nothing in one part can cover a finding of another.
    """
    exempting = frozenset(problem for problem in evaluation.problems if problem.kind == "exemption")
    rest = tuple(problem for problem in evaluation.problems if problem.kind != "exemption")
    return evaluation.model_copy(update={"problems": rest}), exempting


def unread(name: str, problems: Sequence[Problem]) -> EvaluatedPart:
    """Return a part that could not be read, with problems of the run."""
    counts = Summary()
    entry = StoredPart(name, "", "", {}, [], 2, counts.model_dump_json(by_alias=True))
    return EvaluatedPart(name, entry, counts, tuple(problems))


def missed(part: EvaluatedPart, number: int) -> EvaluatedPart:
    """Return an error for a part that no longer has anything to evaluate: its findings are not fixed."""
    message = f"it was part of run {number}, but has nothing to evaluate now; if that is expected, delete it"
    problems = [*part.problems, Problem(level="error", message=message, place=part.name)]
    return replace(unread(part.name, problems), ledger=part.ledger)


#: Parts of which the stored findings are in memory at once.
_BATCH = 100


class EarlierRun:
    """The last run of an estate, for reusing its evaluations.

    Attributes:
        grounds: the digest of what all parts of this run share; see `ReuseKey`.
    """

    def __init__(
        self, store: Store, last: AuditRun | None, bundle: Bundle, grounds: str, options: EvaluationOptions
    ) -> None:
        """Use the parts of the last run, if any."""
        self._store, self._options, self.grounds = store, options, grounds
        self._as_of = last.as_of if last else options.as_of
        self._rows: Mapping[str, PartRow] = rows_of(store, last) if last else {}
        self._in_force = ids_in_force(options, bundle.policies)
        self._saying = cache(lambda used: frozenset(_problems_of_exemptions(options, bundle, used)))

    def resumed(
        self, sources: Iterable[PartSource | Collected]
    ) -> Iterator[PartSource | Collected | Resumed | EvaluatedPart]:
        """Yield the parts of an estate in order, with the reusable evaluations.

        Raises:
            StoreError: a reused content is not what was stored.
        """
        for batch in in_batches(sources, _BATCH):
            earlier = {source.name: found for source in batch if (found := self._find_stored(source))}
            heads = contents_of(self._store, [row.evaluation for row, _ in earlier.values()]) if earlier else {}
            again = [heads[row.evaluation] for row, basis in earlier.values() if self._is_again(basis, row, heads)]
            findings = contents_of(self._store, [head_of(head).findings for head in again]) if again else {}
            for source in batch:
                found = earlier.get(source.name) if isinstance(source, PartSource) else None
                head = heads.get(found[0].evaluation) if found else None
                yield (self._taken(source, *found, head, findings) if found and head else None) or source

    def _find_stored(self, source: PartSource | Collected) -> tuple[PartRow, ReuseKey] | None:
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
    ) -> Resumed | EvaluatedPart | None:
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
        return EvaluatedPart(row.name, entry, summary, (), self._saying(tuple(basis.used)), basis)

    def _is_same_clock(self, basis: ReuseKey) -> bool:
        """Check whether the policies that read the clock have the same results, and the same evidence is active."""
        now = self._options.as_of
        return self._as_of == now or (basis.unchanged is not None and basis.unchanged.includes(now))


def _problems_of_exemptions(options: EvaluationOptions, bundle: Bundle, used: Sequence[str]) -> Iterator[Problem]:
    active, problems = in_force_of(options.exemptions, bundle.policies, options.as_of, bundle.idle)
    yield from (*problems, *unused(active, used))


def digest_grounds(policies: bytes, options: EvaluationOptions) -> str:
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


#: So many parts are requested ahead, for each process: work for as long as the store takes to write a batch.
_AHEAD = 8


def evaluate_parts(
    sources: Iterable[PartSource | Collected | Resumed | EvaluatedPart],
    bundle: Bundle,
    policies: bytes,
    options: EvaluationOptions,
    jobs: int,
) -> Iterator[EvaluatedPart]:
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
            yield source if isinstance(source, EvaluatedPart) else read_and_evaluate(source, bundle, options)
        return
    waiting: deque[Task[EvaluatedPart] | EvaluatedPart] = deque()
    # New processes and no forks: this one may have threads, such as those of a schedule.
    with processes(_PartEvaluator(policies, options), jobs, ahead=_AHEAD, is_sent=True) as spread:
        for source in sources:
            waiting.append(
                source if isinstance(source, EvaluatedPart) else spread.submit(_PartEvaluator.evaluate, source)
            )
            if len(waiting) > _AHEAD * jobs:
                yield _evaluate(spread, waiting.popleft())
        while waiting:
            yield _evaluate(spread, waiting.popleft())


class _PartEvaluator(Struct, frozen=True, dict=True):
    """What a process evaluates parts with, from its start."""

    policies: bytes
    options: EvaluationOptions

    @cached_property
    def bundle(self) -> Bundle:
        return unpack_bundle(self.policies)

    def evaluate(self, source: PartSource | Collected | Resumed) -> EvaluatedPart:
        return read_and_evaluate(source, self.bundle, self.options)


def _evaluate(spread: Processes[_PartEvaluator], part: Task[EvaluatedPart] | EvaluatedPart) -> EvaluatedPart:
    return part if isinstance(part, EvaluatedPart) else spread.result(part)


class PartTotals:
    """The totals of the parts of a run.

    Attributes:
        parts: the number of parts.
        problems: of parts that could not be evaluated.
        summaries: of each part.
        ledger: what was not read, except of parts that were evaluated.
    """

    def __init__(self) -> None:
        self.parts = 0
        self.summaries: list[Summary] = []
        self.problems: list[Problem] = []
        self.ledger: list[LedgerEntry] = []
        self._exit_code = 0
        self._exempting: frozenset[Problem] | None = None

    def add(self, part: EvaluatedPart) -> None:
        """Add a part."""
        self.problems += part.problems
        self.ledger += part.ledger
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

    def exit_code(self, problems: Iterable[Problem], criteria: FailureCriteria) -> int:
        """Return the exit code of the run, as of `check` of all parts."""
        is_undecided = leaves_undecided(self.ledger, criteria)
        return max(self._exit_code, 2 * any(problem.level == "error" for problem in problems), int(is_undecided))


def run_estate(
    store: Store,
    estate: EstateSettings,
    setup: EvaluationSetup,
    options: EvaluationOptions,
    *,
    jobs: int = 1,
    full: bool = False,
    all_files: bool = False,
) -> AuditRun:
    """Audit an estate: read and evaluate its parts, and store them as one run.

    Args:
        store: the store of the run.
        estate: the estate.
        setup: the policies, exemptions and settings.
        options: of the evaluations, each of which uses one process.
        jobs: the number of processes.
        full: whether to evaluate unchanged parts again.
        all_files: whether to read everything in directories, as `FileWalk.all_files`.

    Raises:
        StoreError: the estate is being audited already, or the store reports an error.
        EngineError: the bundle does not compile, or the engine does not answer.
    """
    started, options = datetime.now(UTC), replace(options, as_of=options.moment)
    policies, tally = pack_bundle(setup.bundle), PartTotals()
    with start_run(store, estate.name, policies) as draft:
        last = next(iter(store.runs(estate.name, last=1)), None)
        before = {part.name for part in store.parts(last)} if last else set()
        earlier = EarlierRun(store, None if full else last, setup.bundle, digest_grounds(policies, options), options)
        sources = sources_of(estate, walk_of(setup.settings, all_files=all_files))
        for part in counted(evaluate_parts(earlier.resumed(sources), setup.bundle, policies, options, jobs)):
            if last and part.entry is None and part.name in before:
                part = missed(part, last.number)
            tally.add(part)
            if part.entry is not None:
                draft.add(part.entry._replace(holding=decode_key(part.basis, earlier.grounds)))
        warnings = [*_missing_heads(store, setup.settings.expect), *_warn_about_earlier_clock(last, options.as_of)]
        return draft.finish(_run(estate, setup, options, tally, started, warnings))


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
    setup: EvaluationSetup,
    options: EvaluationOptions,
    tally: PartTotals,
    started: datetime,
    warnings: Sequence[Problem],
) -> AuditRun:
    """Return the run, without its number, content, previous hash and hash."""
    problems = (*tally.run_problems(setup.problems), *warnings)
    bundle = setup.bundle
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
        exit_code=tally.exit_code(problems, options),
        summary=added(tally.summaries),
        parts=tally.parts,
        problems=problems,
        ledger=tuple(tally.ledger),
        settings=setup.applied,
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
