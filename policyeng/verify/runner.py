"""Test laws on the examples of a seed, in several processes, and report the violations."""

from __future__ import annotations

import hashlib
import json
import shlex
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

from policyeng.bundle import Bundle
from policyeng.engines import embedded
from policyeng.errors import BundleError, EngineError, InputError, UsageError
from policyeng.models import JsonObject, Outcome, Snapshot
from policyeng.processes import Processes, processes, processors
from policyeng.report.junit import add_case, junit_text, set_counts
from policyeng.report.phrases import count
from policyeng.testing.reports import bundle_object, text_of_lines
from policyeng.verify.example_documents import command, document_of, example_of, list_other_parts, native, read, text_of
from policyeng.verify.generators.examples import Example, Examples
from policyeng.verify.laws.law import Law, LawContext, Trial, Violation, WholeRun, format_remarks
from policyeng.verify.shrinking import NOT_AGAIN, Smallest, shrink_example


@dataclass(frozen=True)
class FailingExample:
    """A violation and its example; `chance` is the seed of the random draws of the law."""

    law: str
    violation: Violation
    example: Example
    chance: str

    @property
    def kind(self) -> tuple[str, str, str]:
        """The law, the policy and the message; violations of one kind are reported once."""
        return self.law, self.violation.policy, self.violation.message


@dataclass(frozen=True)
class BrokenLaw:
    """A law that could not be decided, and where; `reason` is the exception."""

    law: str
    chance: str
    reason: str


@dataclass
class ExampleCounts:
    """The results of examples, which can be added up over processes.

    Attributes:
        examples: the number of evaluated examples.
        findings: the number of findings.
        tried: the number of examples on which each law was tested.
        seconds: the time for each law; the evaluation of the unchanged examples is under the empty name.
        outcomes: the number of findings with each outcome, by policy id.
        failing: the first violation of each kind.
        broken: the first failure of each law to decide.
    """

    examples: int = 0
    findings: int = 0
    tried: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    outcomes: dict[str, Counter[Outcome]] = field(default_factory=dict)
    failing: dict[tuple[str, str, str], FailingExample] = field(default_factory=dict)
    broken: dict[str, BrokenLaw] = field(default_factory=dict)
    remarks: Counter[str] = field(default_factory=Counter)

    def add(self, other: ExampleCounts) -> None:
        """Add the results of later examples."""
        self.examples += other.examples
        self.findings += other.findings
        self.tried.update(other.tried)
        self.remarks.update(other.remarks)
        for law, seconds in other.seconds.items():
            self.seconds[law] += seconds
        for policy, counts in other.outcomes.items():
            self.outcomes.setdefault(policy, Counter()).update(counts)
        self.failing = other.failing | self.failing
        self.broken = other.broken | self.broken


class LawRunner:
    """The bundle and the laws of a run in one process, with the values that laws compute once.

    `policyeng.verify.runner` calls it in forked processes, because policies in Python cannot be pickled.
    """

    def __init__(self, bundle: Bundle, laws: Sequence[Law], seed: int) -> None:
        self._laws = {law.name: law for law in laws}
        self._seed = seed
        self._source = Examples(bundle)
        self._grounds = LawContext(bundle)

    def warmed(self) -> None:
        """Compute what every process needs, before they start."""
        self._source.numbered(self._seed, 0)

    def tried(self, numbers: Iterable[int]) -> ExampleCounts:
        """Test the laws on the examples with these numbers."""
        tally = ExampleCounts()
        for number in numbers:
            chance = f"{self._seed}/{number}"
            try:
                example = self._source.numbered(self._seed, number)
            except Exception as error:  # a fault of a generator is reported with the number, not as a traceback
                tally.broken.setdefault("", BrokenLaw("", chance, _describe_error(error)))
                continue
            self._test_laws(tally, Trial(self._grounds, example, chance), number)
        tally.remarks, self._grounds.remarks = self._grounds.remarks, Counter()
        return tally

    def _test_laws(self, tally: ExampleCounts, trial: Trial, number: int) -> None:
        started = time.perf_counter()
        evaluated = _can_evaluate(trial)
        tally.seconds[""] += time.perf_counter() - started
        tally.examples += 1
        for finding in trial.evaluation.findings if evaluated else ():
            tally.findings += 1
            tally.outcomes.setdefault(finding.policy, Counter())[finding.outcome] += 1
        for law in self._laws.values():
            # The numbers differ by law, so the costly laws do not all run on the same examples.
            if law.whole is not None or (number + law.number) % law.every or not (evaluated or law.number == _TOTAL):
                continue
            started = time.perf_counter()
            self._test_law(tally, law, trial)
            tally.tried[law.name] += 1
            tally.seconds[law.name] += time.perf_counter() - started
        if not evaluated and not any(law.number == _TOTAL for law in self._laws.values()):
            reason = "the evaluation raises an exception; run `--law total` for details"
            tally.broken.setdefault("", BrokenLaw("", trial.chance, reason))

    def _test_law(self, tally: ExampleCounts, law: Law, trial: Trial) -> None:
        try:
            violation = law.violated(trial)
        except Exception as error:  # a fault of the law is reported with the number, not as a traceback
            tally.broken.setdefault(law.name, BrokenLaw(law.name, trial.chance, _describe_error(error)))
            return
        if violation is not None:
            failing = FailingExample(law.name, violation, trial.example, trial.chance)
            tally.failing.setdefault(failing.kind, failing)

    def again(self, law: str, policy: str, example: Example, chance: str) -> Violation | BrokenLaw | None:
        """Test a law on one example, through the reader if it accepts the example, as in shrinking."""
        answer = self._test_example(self._grounds, law, example, chance)
        if answer is None and (fresh := self._reload_policy(policy)) is not None:
            answer = self._test_example(fresh, law, example, chance)
        return answer

    def _test_example(
        self, grounds: LawContext, law: str, example: Example, chance: str
    ) -> Violation | BrokenLaw | None:
        tally = ExampleCounts()
        snapshot = read(example.document, self._grounds.bundle)
        self._test_law(tally, self._laws[law], Trial(grounds, example, chance, snapshot))
        found = next(iter(tally.failing.values()), None)
        return found.violation if found else tally.broken.get(law)

    def smallest(self, failing: FailingExample, most: int) -> Smallest[Violation]:
        """Shrink the example of a violation while the same law blames the same policy.

        A violation that does not recur comes from a policy that keeps state between evaluations. Then its module is
        loaded again for every smaller example.
        """
        first = self._smallest(failing, most, lambda: self._grounds)
        lasts = first.note != NOT_AGAIN and (
            first.note or self._test_example(self._grounds, failing.law, first.example, failing.chance)
        )
        if lasts:
            return first
        policy = failing.violation.policy
        reloaded = self._smallest(failing, most // _RELOAD_COST, lambda: self._reload_policy(policy))
        if reloaded.note == NOT_AGAIN:
            return reloaded
        return replace(reloaded, note="; ".join(filter(None, (_KEEPS_STATE, reloaded.note))))

    def _smallest(
        self, failing: FailingExample, most: int, grounds: Callable[[], LawContext | None]
    ) -> Smallest[Violation]:
        def find(example: Example, snapshot: Snapshot) -> Violation | None:
            tally, fresh_context = ExampleCounts(), grounds()
            if fresh_context is not None:
                self._test_law(tally, self._laws[failing.law], Trial(fresh_context, example, failing.chance, snapshot))
            found = tally.failing.get(failing.kind)
            return found.violation if found else None

        return shrink_example(self._grounds.bundle, failing.example, failing.violation, find, most=most)

    def _reload_policy(self, policy: str) -> LawContext | None:
        """Return the context of one policy in Python, its module loaded again without state from earlier evaluations.

        None if it cannot keep state, or cannot be loaded again.
        """
        named = next((entry for entry in self._grounds.bundle.policies if entry.id == policy), None)
        if named is None or named.rules or named.python is None:
            return None
        try:
            again = replace(named, python=named.python.again())
        except BundleError:  # it loaded once, so its own state causes the error
            return None
        return LawContext(self._grounds.bundle.only([again]))

    def concluded(self, law: str, examples: int, outcomes: dict[str, Counter[Outcome]]) -> Conclusion:
        """Return the result of a law of the complete run."""
        started = time.perf_counter()
        broken = None
        violations: list[Violation] = []
        try:
            violations = list(self._violations(law, WholeRun(self._grounds, examples, outcomes)))
        except Exception as error:  # a fault of the law is reported, not raised
            broken = BrokenLaw(law, "", _describe_error(error))
        remarks, self._grounds.remarks = self._grounds.remarks, Counter()
        return Conclusion(law, violations, broken, remarks, time.perf_counter() - started)

    def _violations(self, law: str, whole: WholeRun) -> Iterator[Violation]:
        check = self._laws[law].whole
        yield from check(whole) if check else ()


@dataclass(frozen=True)
class Conclusion:
    """The result of a law of the complete run."""

    law: str
    violations: Sequence[Violation]
    broken: BrokenLaw | None
    remarks: Counter[str]
    seconds: float


#: A test with a module that is loaded again costs about as much as this many others.
_RELOAD_COST = 5
_KEEPS_STATE = "the policy keeps state between evaluations; its module was loaded again for each smaller example"

#: The law that reports examples that cannot be evaluated.
_TOTAL = 4


def _can_evaluate(trial: Trial) -> bool:
    try:
        return bool(trial.evaluation)
    except Exception:  # law 4 reports it
        return False


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


_REMEDY = "name another directory with `--database`, or store none with `--no-database`"


@dataclass(frozen=True)
class Kept:
    """A stored failure of an earlier run, and its file."""

    path: Path
    bundle: str
    failing: FailingExample


def require_usable(folder: Path) -> None:
    """Check that a directory for failures is usable, before a long run; it is not created yet.

    Raises:
        UsageError: it is not a directory, cannot be listed, or cannot be written.
    """
    try:
        absolute_path = folder.absolute()
        nearest = next(path for path in (absolute_path, *absolute_path.parents) if path.exists())
        if nearest == absolute_path:
            next(absolute_path.iterdir(), None)
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"failures cannot be stored there: {reason}", place=(str(folder),), remedy=_REMEDY) from error


def load_failures(folder: Path) -> Iterator[Kept]:
    """Yield the failures that are stored in a directory, by file name; none if there is no directory.

    Raises:
        InputError: a file is not a stored failure, or cannot be read.
    """
    for path in sorted(folder.glob("*.json")):
        try:
            document = json.loads(path.read_bytes())
            law, policy, message = document["law"], document["policy"], document["message"]
            example = example_of(document["example"])
            failing = FailingExample(law, Violation(message, policy), example, document["chance"])
            yield Kept(path, document["bundle"], failing)
        except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
            remedy = "remove it, or name another directory with `--database`"
            raise InputError("not a failure that a run has stored", place=(str(path),), remedy=remedy) from error


def store_failure(folder: Path, bundle: str, failing: FailingExample) -> Path:
    """Write a failure into a directory, which is created if necessary; return its file, which is written atomically.

    Raises:
        InputError: the file cannot be written.
    """
    digest = hashlib.sha256(json.dumps([bundle, *failing.kind]).encode()).hexdigest()[:12]
    path = folder / f"{failing.law}-{digest}.json"
    document = {
        "law": failing.law,
        "policy": failing.violation.policy,
        "message": failing.violation.message,
        "bundle": bundle,
        "chance": failing.chance,
        "example": document_of(failing.example),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial_file = path.with_suffix(".part")
        try:
            partial_file.write_text(text_of(document), encoding="utf-8")
            partial_file.replace(path)
        finally:
            partial_file.unlink(missing_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot store a failure: {reason}", place=(str(path),), remedy=_REMEDY) from error
    return path


#: The number of examples that a process tests at a time.
_CHUNK = 20
#: Violations of more kinds than this have few causes; shrinking them all would only take time.
_MOST_SHRUNK = 20
#: How often a law is tested while an example is shrunk.
_MOST_TRIALS = 1500


@dataclass(frozen=True)
class ReportedViolation:
    """A violation as reported.

    Attributes:
        example: the smallest example of the violation; None for a law of the complete run.
        chance: the seed and the number of the original example; empty for a law of the complete run.
        note: why the example is not smaller, or why `policyeng check` cannot read it; empty if neither applies.
        kept: the file in which it is stored for the next run.
        again: whether an earlier run stored it, and it still fails.
    """

    law: Law
    violation: Violation
    example: Example | None = None
    chance: str = ""
    note: str = ""
    kept: Path | None = None
    again: bool = False


@dataclass(frozen=True)
class LawRun:
    """A finished run.

    Attributes:
        laws: the tested laws.
        tally: the counts of examples and findings.
        found: one violation of each kind, in the order of the laws.
        dropped: files of failures that no longer fail.
        left_alone: files of failures that this run could not test, with the reason.
        unkept: errors of writing to or removing from the database, one line each.
        seconds: the total time.
    """

    bundle: Bundle
    laws: Sequence[Law]
    seed: int
    tally: ExampleCounts
    found: Sequence[ReportedViolation]
    dropped: Sequence[Path]
    left_alone: Sequence[tuple[Path, str]]
    unkept: Sequence[str]
    seconds: float

    @property
    def exit_code(self) -> int:
        """Return 2 if something could not be decided, 1 if a law is violated, else 0."""
        return 2 if self.tally.broken or not self.tally.findings else int(bool(self.found))


def run(
    bundle: Bundle,
    laws: Sequence[Law],
    *,
    examples: int,
    seed: int,
    jobs: int = 0,
    progress: Callable[[int], None] = lambda _: None,
    database: Path | None = None,
) -> LawRun:
    """Test laws on the examples of a seed. The result depends on the seed, not on the number of processes.

    Args:
        bundle: the policies to test.
        laws: the laws, each tested on every example or on one in a number of its own.
        examples: the number of examples; a longer run starts like a shorter one.
        seed: the seed of the examples and of the random draws of laws.
        jobs: the number of processes; 0 for one per processor.
        progress: called with the number of finished examples.
        database: a directory of failures, which are tested first; new failures are stored there or reported.

    Raises:
        EngineError: the bundle has no policy or does not compile, or a process ended.
        UsageError: the database is not a directory, or cannot be read or written.
        InputError: a file of the database is not a stored failure.
    """
    if not bundle.policies:
        raise EngineError("the bundle has no policy, so no law can be tested", place=(bundle.name,))
    if database:
        require_usable(database)
    started = time.monotonic()
    embedded.compile_rego(bundle)  # before the processes start, so they share it
    law_runner = LawRunner(bundle, laws, seed)
    law_runner.warmed()
    with processes(law_runner, jobs or processors()) as spread:
        kept = _Replay(bundle, laws, list(load_failures(database)) if database else [])
        kept.tried(spread)
        tally = _test_examples(spread, examples, progress)
        found = [
            *kept.found,
            *_shrink_violations(spread, laws, [entry for entry in tally.failing.values() if kept.is_new(entry)]),
        ]
        found += _test_complete_run(spread, laws, tally)
    tally.broken |= kept.broken
    if database:
        found = [_store_failure(entry, database, bundle, kept.unkept) for entry in found]
    found.sort(key=lambda entry: (entry.law.number, entry.violation.policy, entry.violation.message))
    duration = time.monotonic() - started
    return LawRun(bundle, laws, seed, tally, found, kept.dropped, kept.left_alone, kept.unkept, duration)


def _test_examples(spread: Processes[LawRunner], examples: int, progress: Callable[[int], None]) -> ExampleCounts:
    chunks = [range(start, min(start + _CHUNK, examples)) for start in range(0, examples, _CHUNK)]
    tally = ExampleCounts()
    for chunk, part in zip(chunks, spread.each(LawRunner.tried, [(chunk,) for chunk in chunks]), strict=True):
        tally.add(part)
        progress(chunk.stop)
    return tally


def _shrink_violations(
    spread: Processes[LawRunner], laws: Sequence[Law], failing: Sequence[FailingExample]
) -> Iterator[ReportedViolation]:
    by_name = {law.name: law for law in laws}
    small = spread.each(LawRunner.smallest, [(entry, _MOST_TRIALS) for entry in failing[:_MOST_SHRUNK]])
    for entry, result in zip(failing, small, strict=False):
        yield ReportedViolation(by_name[entry.law], result.found, result.example, entry.chance, result.note)
    for entry in failing[_MOST_SHRUNK:]:
        note = f"only the first {_MOST_SHRUNK} violations are shrunk"
        yield ReportedViolation(by_name[entry.law], entry.violation, entry.example, entry.chance, note)


def _test_complete_run(
    spread: Processes[LawRunner], laws: Sequence[Law], tally: ExampleCounts
) -> Iterator[ReportedViolation]:
    """Yield the violations of laws of the complete run; add their time and remarks to the counts."""
    arguments = [(law.name, tally.examples, tally.outcomes) for law in laws if law.whole is not None]
    by_name = {law.name: law for law in laws}
    for answer in spread.each(LawRunner.concluded, arguments):
        _count(tally, answer)
        yield from (ReportedViolation(by_name[answer.law], violation) for violation in answer.violations)


def _count(tally: ExampleCounts, answer: Conclusion) -> None:
    tally.tried[answer.law] = tally.examples
    tally.seconds[answer.law] += answer.seconds
    tally.remarks.update(answer.remarks)
    if answer.broken:
        tally.broken[answer.law] = answer.broken


def _store_failure(found: ReportedViolation, folder: Path, bundle: Bundle, unkept: list[str]) -> ReportedViolation:
    """Return the violation with its file. If the file cannot be written, the error and the violation are reported."""
    if found.kept or found.example is None:
        return found
    failing = FailingExample(found.law.name, found.violation, found.example, found.chance)
    try:
        return replace(found, kept=store_failure(folder, bundle.name, failing))
    except InputError as error:
        unkept.append(str(error))
        return found


class _Replay:
    """The failures of earlier runs, tested first: those that still fail are reported, and the others are removed."""

    def __init__(self, bundle: Bundle, laws: Sequence[Law], kept: Sequence[Kept]) -> None:
        self._laws = {law.name: law for law in laws}
        self._ids = {policy.id for policy in bundle.policies}
        self._bundle = bundle
        self.found: list[ReportedViolation] = []
        self.dropped: list[Path] = []
        self.left_alone: list[tuple[Path, str]] = []
        self.unkept: list[str] = []
        self.broken: dict[str, BrokenLaw] = {}
        self._mine = [entry for entry in kept if self._concerns(entry)]

    def _concerns(self, entry: Kept) -> bool:
        failing = entry.failing
        if entry.bundle != self._bundle.name:
            reason = f"the bundle is `{entry.bundle}`"
        elif failing.law not in self._laws:
            reason = f"the law `{failing.law}` is not tested"
        elif failing.violation.policy and failing.violation.policy not in self._ids:
            reason = f"`{failing.violation.policy}` is not active"
        else:
            return True
        self.left_alone.append((entry.path, reason))
        return False

    def tried(self, spread: Processes[LawRunner]) -> None:
        """Test them again."""
        tried = [entry.failing for entry in self._mine]
        arguments = [(entry.law, entry.violation.policy, entry.example, entry.chance) for entry in tried]
        for entry, answer in zip(self._mine, spread.each(LawRunner.again, arguments), strict=True):
            law, failing = self._laws[entry.failing.law], entry.failing
            if isinstance(answer, BrokenLaw):
                self.broken[law.name] = answer
            elif answer is not None and answer.policy == failing.violation.policy:
                self.found.append(
                    ReportedViolation(law, answer, failing.example, failing.chance, kept=entry.path, again=True)
                )
            else:
                self._drop(entry.path)

    def _drop(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self.unkept.append(
                f"{path}: no longer fails, but cannot be removed: {(error.strerror or str(error)).lower()}"
            )
        else:
            self.dropped.append(path)

    def is_new(self, failing: FailingExample) -> bool:
        """Check whether a violation is not one of those that still fail."""
        return all(
            (entry.law.name, entry.violation.policy, entry.violation.message) != failing.kind for entry in self.found
        )


def as_text(run: LawRun, given: Sequence[str] = (), written: Sequence[Path | None] = ()) -> str:
    """Return the run as text.

    Args:
        run: a finished run.
        given: the options of the command line that name the policies, to repeat.
        written: the file of the snapshot of each violation, None if it has none.
    """
    return text_of_lines(_lines(run, given, written))


def _lines(run: LawRun, given: Sequence[str], written: Sequence[Path | None]) -> Iterator[str]:
    yield f"{'law':19}{'examples':>10}{'seconds':>10}  outcome"
    for law in run.laws:
        tried = f"{run.tally.tried[law.name]:,}"
        yield f"{law.number:2} {law.name:16}{tried:>10}{run.tally.seconds[law.name]:10.1f}  {_state(run, law)}"
    for found, path in zip(run.found, [*written, *[None] * len(run.found)], strict=False):
        yield ""
        yield from _explain(found, given, path)
    for broken in run.tally.broken.values():
        yield ""
        where = f", in example {_example(broken.chance)}" if broken.chance else ""
        yield f"not decided: {f'law {broken.law}' if broken.law else 'the examples'}{where}"
        yield f"  {broken.reason}"
    yield ""
    yield from (f"remark: {line}" for line in _render_remarks(run))
    tally = run.tally
    rate = f"{run.seconds:.1f} s, {tally.examples / run.seconds:.1f} examples/s"
    yield f"seed {run.seed}: {tally.examples:,} examples with {tally.findings:,} findings in {rate}"
    yield _conclude(run)


def _render_remarks(run: LawRun) -> Iterator[str]:
    yield from (f"{path} no longer fails and was removed" for path in run.dropped)
    yield from (f"{path} was not tested: {reason}" for path, reason in run.left_alone)
    yield from run.unkept
    yield from format_remarks(run.tally.remarks)


def _state(run: LawRun, law: Law) -> str:
    if law.name in run.tally.broken:
        return "not decided"
    number = sum(found.law is law for found in run.found)
    if number:
        return f"violated, {number} kind{'s' if number > 1 else ''}"
    return "holds" if run.tally.tried[law.name] else "not tried"


def _conclude(run: LawRun) -> str:
    violated = len({found.law.number for found in run.found})
    summary = f"{violated} of {len(run.laws)} laws violated" if violated else "no law is violated"
    if run.tally.broken:
        return f"exit 2: not everything could be decided; {summary}"
    if not run.tally.findings:
        return "exit 2: no example has anything that the policies evaluate; add cases, or narrow `judges` less"
    if violated:
        return f"exit 1: {summary}"
    untested = sum(not run.tally.tried[law.name] for law in run.laws)
    holding = len(run.laws) - untested
    rest = f"; {count(untested, 'law')} not tested on so few examples" if untested else ""
    return f"exit 0: {count(holding, 'law')} {'holds' if holding == 1 else 'hold'}{rest}"


def _explain(found: ReportedViolation, given: Sequence[str], path: Path | None) -> Iterator[str]:
    violation, law = found.violation, found.law
    yield f"violated: law {law.number}, {law.name}: {law.sentence}"
    for label, text in (("policy", violation.policy), ("resource", violation.resource), ("found", violation.message)):
        if text:
            yield f"  {label:12} {text}"
    yield from (f"  {'':12} {line}" for line in violation.lines)
    if found.note:
        yield f"  {'note':12} {found.note}"
    if found.example is None:
        return
    if found.again:
        yield f"  {'still fails':12} stored by an earlier run in {found.kept}"
    else:
        yield f"  {'drawn as':12} example {_example(found.chance)}"
    for label, words in _commands(found, given, path):
        yield f"  {label:12} {shlex.join(words)}"
    yield from (f"  {line}" for line in list_other_parts(found.example, path))


def _commands(found: ReportedViolation, given: Sequence[str], path: Path | None) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the command that shows the finding, and the one that tests the law again."""
    if found.example is None:
        return
    yield "see it", command(found.example, found.violation.policy, given, path)
    seed, _, number = found.chance.partition("/")
    again = ["--law", found.law.name, "--seed", seed, "--examples", str(int(number) + 1)]
    yield "try again", ["policyeng", "verify", *given, *again]


def _example(chance: str) -> str:
    seed, _, number = chance.partition("/")
    return f"{int(number):,} of seed {seed}"


def as_json(run: LawRun) -> str:
    """Return the run as a JSON object."""
    tally = run.tally
    document = {
        "seed": run.seed,
        "examples": tally.examples,
        "findings": tally.findings,
        "seconds": round(run.seconds, 3),
        "bundle": bundle_object(run.bundle),
        "laws": [_law(run, law) for law in run.laws],
        "violations": [_violation(found) for found in run.found],
        "undecided": [
            {"law": broken.law, "example": broken.chance, "reason": broken.reason} for broken in tally.broken.values()
        ],
        "remarks": list(_render_remarks(run)),
        "exitCode": run.exit_code,
    }
    return text_of(document).rstrip("\n")


def _law(run: LawRun, law: Law) -> JsonObject:
    return {
        "number": law.number,
        "name": law.name,
        "sentence": law.sentence,
        "reference": law.reference,
        "examples": run.tally.tried[law.name],
        "seconds": round(run.tally.seconds[law.name], 3),
        "state": _state(run, law).partition(",")[0],
    }


def _violation(found: ReportedViolation) -> JsonObject:
    violation = found.violation
    result: JsonObject = {
        "law": found.law.name,
        "policy": violation.policy,
        "resource": violation.resource,
        "message": violation.message,
        "lines": list(violation.lines),
        "note": found.note,
        "example": found.chance,
        "again": found.again,
        "kept": str(found.kept) if found.kept else None,
    }
    if found.example is None:
        return result
    shown = document_of(found.example)
    return {**result, **shown, "snapshot": native(shown["snapshot"])}


def as_junit(run: LawRun, given: Sequence[str] = ()) -> str:
    """Return the run as JUnit XML: one suite with a test case for each law; `given` as in `as_text`."""
    root = Element("testsuites", name="policyeng verify")
    suite = SubElement(root, "testsuite", name="policyeng verify")
    for law in run.laws:
        found = [entry for entry in run.found if entry.law is law]
        broken = run.tally.broken.get(law.name) or run.tally.broken.get("")
        result, message, text = "", "", ""
        if broken:
            result, message = "error", broken.reason
        elif found:
            result, message = "failure", _describe(found[0])
            text = text_of_lines(line for entry in found for line in _explain(entry, given, None))
        elif not run.tally.findings:
            result, message = "error", "no policy evaluates any example"
        elif not run.tally.tried[law.name]:
            result, message = "skipped", "not tested on so few examples"
        seconds = f"{run.tally.seconds[law.name]:.3f}"
        add_case(suite, "policyeng.laws", f"{law.number} {law.name}", result, message, text, time=seconds)
    set_counts(suite, "failures", "errors", "skipped")
    if remarks := list(_render_remarks(run)):
        SubElement(suite, "system-out").text = "\n".join(remarks)
    return junit_text(root)


def _describe(found: ReportedViolation) -> str:
    where = " on ".join(filter(None, (found.violation.policy, found.violation.resource)))
    return f"{where}: {found.violation.message}" if where else found.violation.message
