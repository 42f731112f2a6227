"""Test laws on the examples of a seed, and report the violations."""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from policyeng.bundle import Bundle
from policyeng.engines import embedded
from policyeng.errors import EngineError, InputError, UsageError
from policyeng.processes import Processes, processes, processors
from policyeng.verify.example_documents import document_of, example_of, text_of
from policyeng.verify.generators.examples import Example
from policyeng.verify.laws.law import Law, Violation
from policyeng.verify.runner.worker import BrokenLaw, Conclusion, ExampleCounts, FailingExample, LawRunner

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
#: Violations of more kinds than this have few causes; shrinking each of them would only take time.
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
        """Test each of them again."""
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
