"""Run laws over the examples of a seed, and say what holds."""

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

_REMEDY = "name another directory with `--database`, or keep none with `--no-database`"


@dataclass(frozen=True)
class Kept:
    """A failure of an earlier run, and its file."""

    path: Path
    bundle: str
    blamed: FailingExample


def require_usable(folder: Path) -> None:
    """Refuse a directory before a long run would find out; it is not made yet where it is missing.

    Raises:
        UsageError: it is none, or cannot be listed, or nothing can be written into it.
    """
    try:
        whole = folder.absolute()
        there = next(path for path in (whole, *whole.parents) if path.exists())
        if there == whole:
            next(whole.iterdir(), None)
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"failures cannot be kept there: {reason}", place=(str(folder),), remedy=_REMEDY) from error


def kept_in(folder: Path) -> Iterator[Kept]:
    """The failures that a directory holds, in the order of their names; none where there is no directory.

    Raises:
        InputError: a file is none of ours, or cannot be read.
    """
    for path in sorted(folder.glob("*.json")):
        try:
            document = json.loads(path.read_bytes())
            law, policy, message = document["law"], document["policy"], document["message"]
            example = example_of(document["example"])
            blamed = FailingExample(law, Violation(message, policy), example, document["chance"])
            yield Kept(path, document["bundle"], blamed)
        except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
            remedy = "remove it, or name another directory with `--database`"
            raise InputError("no failure that a run has kept", place=(str(path),), remedy=remedy) from error


def keep(folder: Path, bundle: str, blamed: FailingExample) -> Path:
    """Write a failure into a directory, which is made where it is missing; its file, whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    digest = hashlib.sha256(json.dumps([bundle, *blamed.kind]).encode()).hexdigest()[:12]
    path = folder / f"{blamed.law}-{digest}.json"
    document = {
        "law": blamed.law,
        "policy": blamed.violation.policy,
        "message": blamed.violation.message,
        "bundle": bundle,
        "chance": blamed.chance,
        "example": document_of(blamed.example),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".part")
        try:
            beside.write_text(text_of(document), encoding="utf-8")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot keep a failure: {reason}", place=(str(path),), remedy=_REMEDY) from error
    return path


#: Examples that a process tries at a time.
_CHUNK = 20
#: Violations of more kinds than this have few causes; making each of them small would only take time.
_MOST_SHRUNK = 20
#: How often a law is tried on ever smaller examples.
_MOST_TRIALS = 1500


@dataclass(frozen=True)
class ReportedViolation:
    """A violation as it is reported.

    Attributes:
        example: the smallest that shows it; None for a law of the whole run.
        chance: the seed and the number of the example that it was found in; empty for a law of the whole run.
        note: why the example is not smaller, or not one that `policyeng check` reads; empty when all is well.
        kept: the file that it is kept in for the next run.
        again: whether it was kept by an earlier run, and still stands.
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
        laws: those that were tried.
        tally: what became of the examples.
        found: a violation of each kind, in the order of the laws.
        dropped: files of failures that no longer stand.
        left_alone: files of failures that this run could not try, with the reason.
        unkept: what could not be written into the database, or removed from it, a line each.
        seconds: the time that it took, everything counted.
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
        """2 when something could not be decided, else 1 when a law is violated, else 0."""
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
    """Try laws on the examples of a seed: the same run for the same seed, however many processes there are.

    Args:
        bundle: the policies on trial.
        laws: tried on every example, or on one in so many, as each says.
        examples: how many; a longer run begins as a shorter one does.
        seed: what the examples, and the chance of laws, are drawn from.
        jobs: processes; 0 is one for each processor.
        progress: hears how many examples are done.
        database: a directory of failures, which are tried first; what is found is kept there, or said to be not kept.

    Raises:
        EngineError: the bundle has no policy or does not compile, or a process was ended.
        UsageError: the database is no directory, or cannot be read or written.
        InputError: a file of the database is none of ours.
    """
    if not bundle.policies:
        raise EngineError("the bundle has no policy, so no law can be tried", place=(bundle.name,))
    if database:
        require_usable(database)
    started = time.monotonic()
    embedded.compile_rego(bundle)  # compiled before there are several processes
    court = LawRunner(bundle, laws, seed)
    court.warmed()
    with processes(court, jobs or processors()) as spread:
        kept = _Replay(bundle, laws, list(kept_in(database)) if database else [])
        kept.tried(spread)
        tally = _tally(spread, examples, progress)
        found = [*kept.found, *_shrunk(spread, laws, [entry for entry in tally.blamed.values() if kept.is_new(entry)])]
        found += _concluded(spread, laws, tally)
    tally.broken |= kept.broken
    if database:
        found = [_kept(entry, database, bundle, kept.unkept) for entry in found]
    found.sort(key=lambda entry: (entry.law.number, entry.violation.policy, entry.violation.message))
    spent = time.monotonic() - started
    return LawRun(bundle, laws, seed, tally, found, kept.dropped, kept.left_alone, kept.unkept, spent)


def _tally(spread: Processes[LawRunner], examples: int, progress: Callable[[int], None]) -> ExampleCounts:
    chunks = [range(start, min(start + _CHUNK, examples)) for start in range(0, examples, _CHUNK)]
    tally = ExampleCounts()
    for chunk, part in zip(chunks, spread.each(LawRunner.tried, [(chunk,) for chunk in chunks]), strict=True):
        tally.add(part)
        progress(chunk.stop)
    return tally


def _shrunk(
    spread: Processes[LawRunner], laws: Sequence[Law], blamed: Sequence[FailingExample]
) -> Iterator[ReportedViolation]:
    by_name = {law.name: law for law in laws}
    small = spread.each(LawRunner.smallest, [(entry, _MOST_TRIALS) for entry in blamed[:_MOST_SHRUNK]])
    for entry, left in zip(blamed, small, strict=False):
        yield ReportedViolation(by_name[entry.law], left.found, left.example, entry.chance, left.note)
    for entry in blamed[_MOST_SHRUNK:]:
        note = f"only the first {_MOST_SHRUNK} violations are made small"
        yield ReportedViolation(by_name[entry.law], entry.violation, entry.example, entry.chance, note)


def _concluded(spread: Processes[LawRunner], laws: Sequence[Law], tally: ExampleCounts) -> Iterator[ReportedViolation]:
    """What laws of the whole run find; their time and remarks are added to the tally."""
    asked = [(law.name, tally.examples, tally.outcomes) for law in laws if law.whole is not None]
    by_name = {law.name: law for law in laws}
    for said in spread.each(LawRunner.concluded, asked):
        _count(tally, said)
        yield from (ReportedViolation(by_name[said.law], violation) for violation in said.violations)


def _count(tally: ExampleCounts, said: Conclusion) -> None:
    tally.tried[said.law] = tally.examples
    tally.seconds[said.law] += said.seconds
    tally.remarks.update(said.remarks)
    if said.broken:
        tally.broken[said.law] = said.broken


def _kept(found: ReportedViolation, folder: Path, bundle: Bundle, unkept: list[str]) -> ReportedViolation:
    """What was found, with its file; a file that cannot be written loses no report, so the reason is added."""
    if found.kept or found.example is None:
        return found
    blamed = FailingExample(found.law.name, found.violation, found.example, found.chance)
    try:
        return replace(found, kept=keep(folder, bundle.name, blamed))
    except InputError as error:
        unkept.append(str(error))
        return found


class _Replay:
    """The failures of earlier runs, tried first: what still stands is found again, what holds now is dropped."""

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
        blamed = entry.blamed
        if entry.bundle != self._bundle.name:
            reason = f"it is of the bundle `{entry.bundle}`"
        elif blamed.law not in self._laws:
            reason = f"the law `{blamed.law}` is not tried"
        elif blamed.violation.policy and blamed.violation.policy not in self._ids:
            reason = f"`{blamed.violation.policy}` is not in force"
        else:
            return True
        self.left_alone.append((entry.path, reason))
        return False

    def tried(self, spread: Processes[LawRunner]) -> None:
        """Try each of them again."""
        tried = [entry.blamed for entry in self._mine]
        asked = [(entry.law, entry.violation.policy, entry.example, entry.chance) for entry in tried]
        for entry, said in zip(self._mine, spread.each(LawRunner.again, asked), strict=True):
            law, blamed = self._laws[entry.blamed.law], entry.blamed
            if isinstance(said, BrokenLaw):
                self.broken[law.name] = said
            elif said is not None and said.policy == blamed.violation.policy:
                self.found.append(
                    ReportedViolation(law, said, blamed.example, blamed.chance, kept=entry.path, again=True)
                )
            else:
                self._drop(entry.path)

    def _drop(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self.unkept.append(f"{path}: holds now, and cannot be removed: {(error.strerror or str(error)).lower()}")
        else:
            self.dropped.append(path)

    def is_new(self, blamed: FailingExample) -> bool:
        """Whether a violation is not one of those that still stand."""
        return all(
            (entry.law.name, entry.violation.policy, entry.violation.message) != blamed.kind for entry in self.found
        )
