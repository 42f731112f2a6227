"""Test the mutants of every policy of a bundle, in several processes if the platform can fork."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from random import Random
from typing import Annotated, NamedTuple
from xml.etree.ElementTree import Element, SubElement

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from policyeng import cache
from policyeng.bundle import Bundle, Policy
from policyeng.bundle.cases import Baselines, baselines_of, read_cases, required_cases
from policyeng.bundle.header import Verdict
from policyeng.bundle.manifest import bundle_yaml
from policyeng.bundle.parameters import parameters_of
from policyeng.engines import Judgement, evaluate_pairs
from policyeng.engines.embedded import checked_types
from policyeng.engines.request import SKIPPED
from policyeng.errors import BundleError, PolicyengError
from policyeng.evaluation.context import request_evaluation
from policyeng.evaluation.matching import PlannedColumn, plan
from policyeng.evaluation.prepared_snapshot import PreparedSnapshot, estate_of
from policyeng.evaluation.unknown_markers import mark_for_bundle
from policyeng.models import JsonObject, Unknown, lowered
from policyeng.processes import processes, processors
from policyeng.report.junit import add_case, junit_text, set_counts
from policyeng.testing.reports import text_of_lines
from policyeng.testing.runner import PreparedCase, absences_of, prepared_absence, prepared_cases
from policyeng.verify.differential import outcome_of
from policyeng.verify.generators.examples import Examples
from policyeng.verify.laws.law import Law, LawContext, Trial
from policyeng.verify.mutation.mutants import Written
from policyeng.verify.mutation.rego import Mutant, rank

#: The laws that kill the most mutants come first.
_ORDER = ("fail", "unknown", "not_judged", "pass")


class _PlannedPair(NamedTuple):
    """A policy and a subject by position; it is not evaluated if it has unknowns."""

    policy: int
    subject: int
    unknowns: tuple[Unknown, ...]


@dataclass(frozen=True)
class _PreparedTest:
    """A case with its prepared snapshot, and the pairs of the unchanged header."""

    prepared: PreparedCase
    estate: PreparedSnapshot
    parameters: list[JsonObject]
    planned: list[_PlannedPair]
    judgement: Judgement


class Examination:
    """The cases and absent tests of one policy, which are run on its mutants."""

    def __init__(self, bundle: Bundle, baselines: Baselines) -> None:
        """Prepare the cases of the active policy.

        Raises:
            BundleError: the cases are not well formed, or there are none.
            EngineError: the bundle does not compile.
        """
        self._bundle = bundle
        self._baselines = baselines
        self._policy = bundle.policies[0]
        self._file = required_cases(self._policy)
        prepared = prepared_cases(self._policy, self._file, baselines)
        ordered = sorted(prepared, key=lambda case: _ORDER.index(case.expected))
        self._cases = [self._ready(case) for case in ordered]
        self._absences: dict[str, _PreparedTest] = {}

    def killer(self, mutant: Bundle) -> str:
        """Return the case or absent test that a mutant fails, as the active policy of its bundle; empty if none.

        Raises:
            PolicyengError: the mutant does not compile.
        """
        for place, ready in enumerate(self._cases):
            if self._differs(mutant, ready, ready.prepared.expected):
                # A test that kills one mutant probably kills the next one.
                self._cases.insert(0, self._cases.pop(place))
                return ready.prepared.name
        for pointer, expected in absences_of(self._policy, self._file).items():
            ready = self._absence(mutant.policies[0], pointer, expected)
            if self._differs(mutant, ready, expected):
                return ready.prepared.name
        return ""

    def _absence(self, policy: Policy, pointer: str, expected: Verdict) -> _PreparedTest:
        """Return the absent test of a pointer, cached for other mutants."""
        if pointer not in self._absences:
            prepared = prepared_absence(self._bundle, policy, pointer, expected, self._file, self._baselines)
            self._absences[pointer] = self._ready(prepared)
        return self._absences[pointer]

    def _ready(self, prepared: PreparedCase) -> _PreparedTest:
        estate = estate_of(prepared.snapshot, self._bundle.facts)
        parameters = parameters_of(self._bundle, {self._policy.id: prepared.case.parameters})
        planned = _planned(self._bundle, estate, prepared.identity)
        judgement = _evaluate_pairs(self._bundle, estate, prepared.as_of, parameters, planned)
        return _PreparedTest(prepared, estate, parameters, planned, judgement)

    def _differs(self, mutant: Bundle, ready: _PreparedTest, expected: str) -> bool:
        """Check whether a mutant has another outcome for a case than expected."""
        parameters, planned, prepared = ready.parameters, ready.planned, ready.prepared
        if mutant.policies[0].header != self._policy.header:
            try:
                parameters = parameters_of(mutant, {mutant.policies[0].id: prepared.case.parameters})
            except PolicyengError:
                return True
            planned = _planned(mutant, ready.estate, prepared.identity)
        same = mutant.digest == self._bundle.digest and (parameters, planned) == (ready.parameters, ready.planned)
        judgement = ready.judgement
        if not same:
            judgement = _evaluate_pairs(mutant, ready.estate, prepared.as_of, parameters, planned)
        if _outcome(judgement) != expected:
            return True
        paths = [denial.path for denial in judgement.denials]
        return expected == "fail" and prepared.case.path is not None and prepared.case.path not in paths


def _planned(bundle: Bundle, estate: PreparedSnapshot, identity: str) -> list[_PlannedPair]:
    """Return the pairs that a case is about, in the order of their findings."""
    subjects = estate.subjects
    entries = [
        _PlannedPair(column.policy, position, column.undecided.get(position, ()))
        for column in plan(bundle, estate)
        for position in column.all()
        if lowered(subjects[position].reported_id) == lowered(identity)
    ]
    return sorted(entries, key=lambda entry: subjects[entry.subject].reported_id)


def _outcome(judgement: Judgement) -> str:
    return outcome_of(judgement).replace("not applicable", "not_judged")


def _evaluate_pairs(
    mutant: Bundle,
    estate: PreparedSnapshot,
    as_of: datetime,
    parameters: list[JsonObject],
    planned: Sequence[_PlannedPair],
) -> Judgement:
    """Return the first judgement of a mutant on the resource of a case."""
    for entry in planned:
        if entry.unknowns:
            return Judgement(unknowns=entry.unknowns)
        judgement = _evaluate_pair(mutant, estate, as_of, parameters, entry)
        if judgement.applies:
            return judgement
    return SKIPPED


def _evaluate_pair(
    mutant: Bundle, estate: PreparedSnapshot, as_of: datetime, parameters: list[JsonObject], entry: _PlannedPair
) -> Judgement:
    planned = [PlannedColumn(entry.policy, [entry.subject])]
    request = request_evaluation(mutant, estate, planned, parameters, as_of, mark_for_bundle(mutant, estate))
    return evaluate_pairs(request)[entry.policy][0]


class LawTrials:
    """Examples on which the unchanged policy satisfies the laws, to test its mutants."""

    def __init__(self, bundle: Bundle, laws: Sequence[Law], examples: int, seed: int) -> None:
        """Draw examples for the active policy, and select those on which it satisfies the laws."""
        source, policy = Examples(bundle), bundle.policies[0]
        self._examples = [
            source.drawn(Random(f"{seed}/{policy.id}/{number}"), policy)  # noqa: S311  # nothing here is secret
            for number in range(examples if laws else 0)
        ]
        self._laws = [law for law in laws if not self._violated(law, bundle)]

    def killer(self, mutant: Bundle) -> str:
        """Return the law that a mutant violates, as the active policy of its bundle; empty if none."""
        return next((f"law {law.number} {law.name}" for law in self._laws if self._violated(law, mutant)), "")

    def _violated(self, law: Law, bundle: Bundle) -> bool:
        grounds = LawContext(bundle)
        return any(
            law.violated(Trial(grounds, example, str(number)))
            for number, example in enumerate(self._examples)
            if number % law.every == 0
        )


_Text = Annotated[str, Field(min_length=1, pattern=r"\S")]


class Justified(BaseModel):
    """A mutant that is equivalent to the policy.

    Attributes:
        line: the text of the line, as in the report.
        mutation: the same with the fault.
        reason: why no case can distinguish them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    line: _Text
    mutation: _Text
    reason: _Text

    def means(self, mutant: Mutant) -> bool:
        """Check whether a mutant is this one, at any line."""
        return _space_evenly(self.line) == _space_evenly(mutant.before) and _space_evenly(
            self.mutation
        ) == _space_evenly(mutant.after)


_LIST = TypeAdapter(list[Justified])


def read_survivors(policy: Policy) -> list[Justified]:
    """Return the justified survivors of a policy; none without a file.

    Raises:
        BundleError: the file is not a list of `line`, `mutation` and `reason`, or has a duplicate.
    """
    path = policy.cases.with_name("survivors.yaml") if policy.cases else None
    if path is None or not path.is_file():
        return []
    try:
        document = bundle_yaml(path.read_text(encoding="utf-8"), str(path))
        entries = _LIST.validate_python(document)
    except UnicodeDecodeError as error:
        raise BundleError("not UTF-8", place=(str(path),)) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = "/".join(str(part) for part in first["loc"])
        remedy = "write a list of `line`, `mutation` and `reason`"
        raise BundleError(first["msg"].lower(), place=(str(path), place), remedy=remedy) from error
    seen = set()
    for entry in entries:
        key = (_space_evenly(entry.line), _space_evenly(entry.mutation))
        if key in seen:
            raise BundleError(f"the mutation `{entry.mutation}` is stated twice", place=(str(path),))
        seen.add(key)
    return entries


def _space_evenly(text: str) -> str:
    return " ".join(text.split())


#: The number of examples on which each survivor is tested for every law.
LAW_EXAMPLES = 25


@dataclass(frozen=True)
class Survivor:
    """A mutant that no test killed; with a `reason` it is justified as equivalent to the policy."""

    mutant: Mutant
    reason: str = ""


@dataclass
class MutantCounts:
    """The results of the mutants of one policy.

    Attributes:
        killers: the number of mutants that each case, absent test or law killed first.
        by_laws: the number of mutants that a law and no case killed.
        invalid: the number of mutants that do not compile and are not counted.
        stale: justified survivors that do not survive.
    """

    policy: str
    file: str
    killers: Counter[str] = field(default_factory=Counter)
    by_laws: int = 0
    invalid: int = 0
    survivors: list[Survivor] = field(default_factory=list)
    stale: list[Justified] = field(default_factory=list)

    @property
    def killed(self) -> int:
        """The number of killed mutants."""
        return self.killers.total()

    @property
    def survived(self) -> int:
        """The number of mutants that survived without a justification."""
        return sum(not entry.reason for entry in self.survivors)


@dataclass(frozen=True)
class MutationRun:
    """A finished run.

    Attributes:
        without_cases: the policies without cases, which are not tested.
        sample: the maximum number of mutants per policy; 0 for all.
    """

    seed: int
    sample: int
    tallies: Sequence[MutantCounts]
    without_cases: Sequence[str]
    laws: Sequence[Law]

    @property
    def score(self) -> float:
        """The percentage of killed mutants."""
        return score(self.tallies)

    @property
    def is_tried(self) -> bool:
        """Whether there was any mutant; without one the score has no meaning."""
        return any(tally.killed or tally.survivors for tally in self.tallies)


def score(tallies: Sequence[MutantCounts]) -> float:
    """Return the percentage of killed mutants, from 0 to 100; justified survivors are not counted."""
    killed = sum(tally.killed for tally in tallies)
    return 100 * killed / max(1, killed + sum(tally.survived for tally in tallies))


@dataclass(frozen=True)
class _Plan:
    bundle: Bundle
    baselines: Baselines
    seed: int
    sample: int
    laws: Sequence[Law]


def run(
    bundle: Bundle,
    *,
    seed: int = 0,
    sample: int = 0,
    laws: Sequence[Law] = (),
    jobs: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> MutationRun:
    """Test every mutant of every policy with cases, or `sample` of each, on its cases and the laws.

    The result depends only on the bundle, the seed and the sample, not on the number of processes (`jobs`; 0 is one for
    each processor). `progress` is called with the number of finished policies.

    Raises:
        BundleError: cases or justified survivors are not well formed.
        EngineError: the bundle does not compile.
    """
    tried = [policy for policy in bundle.policies if read_cases(policy) is not None]
    settings = _Plan(bundle, baselines_of(bundle), seed, sample, laws)
    tallies: list[MutantCounts] = []
    for tally in _each(partial(_test_policy, settings), tried, jobs):
        tallies.append(tally)
        progress(len(tallies))
    without = [policy.id for policy in bundle.policies if policy not in tried]
    return MutationRun(seed, sample, sorted(tallies, key=lambda tally: tally.policy), without, laws)


def _each(examined: Callable[[Policy], MutantCounts], policies: Sequence[Policy], jobs: int) -> Iterator[MutantCounts]:
    # Policies in Python cannot be pickled, so a forked process inherits them.
    with processes((examined, policies), max(1, min(jobs or processors(), len(policies)))) as spread:
        yield from spread.each(_count, [(number,) for number in range(len(policies))])


def _count(worker: tuple[Callable[[Policy], MutantCounts], Sequence[Policy]], number: int) -> MutantCounts:
    examined, policies = worker
    return examined(policies[number])


def _test_policy(settings: _Plan, policy: Policy) -> MutantCounts:
    with cache.switched_off(), checked_types():  # mutants are used only once
        return _test_mutants(settings, policy)


def _test_mutants(settings: _Plan, policy: Policy) -> MutantCounts:
    written = Written(settings.bundle, policy)
    examination = Examination(written.bundle, settings.baselines)
    broken = examination.killer(written.bundle)
    if broken:
        raise _unchanged_fails(policy, broken)
    every = written.mutants()
    justified = read_survivors(policy)
    chosen = _sample_mutants(every, settings, policy)
    tally = MutantCounts(policy.id, policy.file)
    surviving = [(mutant, bundle) for mutant in chosen if (bundle := _survives(written, examination, mutant, tally))]
    trials = LawTrials(written.bundle, settings.laws if surviving else (), LAW_EXAMPLES, settings.seed)
    for mutant, bundle in surviving:
        law = trials.killer(bundle)
        if law:
            tally.killers[law] += 1
            tally.by_laws += 1
        else:
            reason = next((entry.reason for entry in justified if entry.means(mutant)), "")
            tally.survivors.append(Survivor(mutant, reason))
    tally.stale = [entry for entry in justified if _is_stale(entry, every, chosen, tally)]
    return tally


def _unchanged_fails(policy: Policy, name: str) -> BundleError:
    what = f"the unchanged policy `{policy.id}` fails the case `{name}`"
    return BundleError(what, place=(str(policy.cases),), remedy="fix it first; run `policyeng test` for details")


def _survives(written: Written, examination: Examination, mutant: Mutant, tally: MutantCounts) -> Bundle | None:
    """Return the bundle of a mutant that no case kills; None if one does."""
    try:
        bundle = written.bundle_of(mutant)
        killer = examination.killer(bundle)
    except PolicyengError:
        tally.invalid += 1
        return None
    if killer:
        tally.killers[killer] += 1
        return None
    return bundle


def _sample_mutants(every: list[Mutant], settings: _Plan, policy: Policy) -> list[Mutant]:
    if not settings.sample or len(every) <= settings.sample:
        return every
    chosen = set(
        sorted(range(len(every)), key=lambda number: rank(settings.seed, policy.id, number))[: settings.sample]
    )
    return [mutant for number, mutant in enumerate(every) if number in chosen]


def _is_stale(entry: Justified, every: Sequence[Mutant], chosen: Sequence[Mutant], tally: MutantCounts) -> bool:
    """Check whether a justified survivor is not a mutant, or all mutants that it can mean were killed."""
    meant = [mutant for mutant in every if entry.means(mutant)]
    untried = any(mutant not in chosen for mutant in meant)
    return not untried and not any(entry.means(survivor.mutant) for survivor in tally.survivors)


def as_text(run: MutationRun) -> str:
    """Return the run as text: a table, then each survivor as a difference of one line."""
    return text_of_lines(_lines(run))


def _lines(run: MutationRun) -> Iterator[str]:
    yield f"{'policy':14}{'mutants':>10}{'by cases':>10}{'by laws':>10}{'justified':>11}{'survived':>10}{'score':>9}"
    for tally in run.tallies:
        yield _row(tally.policy, [tally])
    yield _row("all", run.tallies)
    for tally in run.tallies:
        for survivor in tally.survivors:
            yield ""
            yield from _explain(tally, survivor)
        for entry in tally.stale:
            yield ""
            yield f"{tally.policy}: survivors.yaml has an entry that is killed, or is not a mutant"
            yield f"  - {entry.line}"
            yield f"  + {entry.mutation}"
    yield ""
    yield from _render_remarks(run)


def _row(name: str, tallies: Sequence[MutantCounts]) -> str:
    killed, survived = sum(tally.killed for tally in tallies), sum(tally.survived for tally in tallies)
    by_laws = sum(tally.by_laws for tally in tallies)
    justified = sum(len(tally.survivors) for tally in tallies) - survived
    counts = f"{killed + justified + survived:10,}{killed - by_laws:10,}{by_laws:10,}{justified:11,}{survived:10,}"
    share = f"{score(tallies):.1f}%" if killed + justified + survived else "-"
    return f"{name:14}{counts}{share:>9}"


def _explain(tally: MutantCounts, survivor: Survivor) -> Iterator[str]:
    mutant = survivor.mutant
    what = "justified" if survivor.reason else "survived"
    yield f"{tally.policy}: {mutant.file}:{mutant.line}: {what}: {mutant.kind}"
    yield f"  - {mutant.before}"
    yield f"  + {mutant.after}"
    if survivor.reason:
        yield f"  because {survivor.reason}"


def _render_remarks(run: MutationRun) -> Iterator[str]:
    invalid = sum(tally.invalid for tally in run.tallies)
    yield f"{invalid:,} more mutants do not compile and are not counted"
    if run.sample:
        yield f"seed {run.seed}: a sample of at most {run.sample:,} mutants of each policy"
    if run.laws:
        yield f"laws: {', '.join(law.name for law in run.laws)}"
    if run.without_cases:
        yield f"not tested, because they have no cases:  {', '.join(run.without_cases)}"


def as_json(run: MutationRun) -> str:
    """Return the run as a JSON object."""
    document = {
        "score": round(run.score, 2),
        "seed": run.seed,
        "sample": run.sample,
        "laws": [law.name for law in run.laws],
        "withoutCases": list(run.without_cases),
        "policies": [_policy(tally) for tally in run.tallies],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def _policy(tally: MutantCounts) -> JsonObject:
    return {
        "id": tally.policy,
        "file": tally.file,
        "score": round(score([tally]), 2),
        "killed": tally.killed,
        "killedByLaws": tally.by_laws,
        "survived": tally.survived,
        "invalid": tally.invalid,
        "killers": dict(sorted(tally.killers.items())),
        "survivors": [_render_survivor(survivor) for survivor in tally.survivors],
        "stale": [entry.model_dump() for entry in tally.stale],
    }


def _render_survivor(survivor: Survivor) -> JsonObject:
    mutant = survivor.mutant
    rendered = {"kind": mutant.kind, "line": mutant.line, "before": mutant.before, "after": mutant.after}
    return {**rendered, "reason": survivor.reason} if survivor.reason else rendered


def as_junit(run: MutationRun) -> str:
    """Return the run as JUnit XML: a suite per policy, a test case for each killing test and for each survivor."""
    root = Element("testsuites", name="policyeng verify --mutation")
    for tally in run.tallies:
        suite = SubElement(root, "testsuite", name=tally.policy)
        for killer, count in sorted(tally.killers.items()):
            add_case(suite, tally.policy, f"{killer}: {count} mutants killed")
        for survivor in tally.survivors:
            mutant = survivor.mutant
            name = f"{mutant.file}:{mutant.line}: {mutant.kind}: {mutant.after}"
            if survivor.reason:
                add_case(suite, tally.policy, name, "skipped", survivor.reason)
            else:
                add_case(
                    suite, tally.policy, name, "failure", "the mutant survives", f"- {mutant.before}\n+ {mutant.after}"
                )
        for entry in tally.stale:
            name, message = f"survivors.yaml: {entry.mutation}", "the entry is killed, or is not a mutant"
            add_case(suite, tally.policy, name, "failure", message)
        set_counts(suite, "failures", "skipped")
    return junit_text(root)
