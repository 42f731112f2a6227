"""Run laws over the examples of a seed, and say what holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from policyeng.bundle import Bundle
from policyeng.engines import embedded
from policyeng.errors import EngineError, InputError
from policyeng.processes import Processes, processes, processors
from policyeng.verify.drawing.examples import Example
from policyeng.verify.laws.law import Law, Violation
from policyeng.verify.running.kept import Kept, keep, kept_in, require_usable
from policyeng.verify.running.trying import Blamed, Broken, Conclusion, Court, Tally

#: Examples that a process tries at a time.
_CHUNK = 20
#: Violations of more kinds than this have few causes; making each of them small would only take time.
_MOST_SHRUNK = 20
#: How often a law is tried on ever smaller examples.
_MOST_TRIALS = 1500


@dataclass(frozen=True)
class Found:
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
class Run:
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
    tally: Tally
    found: Sequence[Found]
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
) -> Run:
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
    court = Court(bundle, laws, seed)
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
    return Run(bundle, laws, seed, tally, found, kept.dropped, kept.left_alone, kept.unkept, spent)


def _tally(spread: Processes[Court], examples: int, progress: Callable[[int], None]) -> Tally:
    chunks = [range(start, min(start + _CHUNK, examples)) for start in range(0, examples, _CHUNK)]
    tally = Tally()
    for chunk, part in zip(chunks, spread.each(Court.tried, [(chunk,) for chunk in chunks]), strict=True):
        tally.add(part)
        progress(chunk.stop)
    return tally


def _shrunk(spread: Processes[Court], laws: Sequence[Law], blamed: Sequence[Blamed]) -> Iterator[Found]:
    by_name = {law.name: law for law in laws}
    small = spread.each(Court.smallest, [(entry, _MOST_TRIALS) for entry in blamed[:_MOST_SHRUNK]])
    for entry, left in zip(blamed, small, strict=False):
        yield Found(by_name[entry.law], left.found, left.example, entry.chance, left.note)
    for entry in blamed[_MOST_SHRUNK:]:
        note = f"only the first {_MOST_SHRUNK} violations are made small"
        yield Found(by_name[entry.law], entry.violation, entry.example, entry.chance, note)


def _concluded(spread: Processes[Court], laws: Sequence[Law], tally: Tally) -> Iterator[Found]:
    """What laws of the whole run find; their time and remarks are added to the tally."""
    asked = [(law.name, tally.examples, tally.outcomes) for law in laws if law.whole is not None]
    by_name = {law.name: law for law in laws}
    for said in spread.each(Court.concluded, asked):
        _count(tally, said)
        yield from (Found(by_name[said.law], violation) for violation in said.violations)


def _count(tally: Tally, said: Conclusion) -> None:
    tally.tried[said.law] = tally.examples
    tally.seconds[said.law] += said.seconds
    tally.remarks.update(said.remarks)
    if said.broken:
        tally.broken[said.law] = said.broken


def _kept(found: Found, folder: Path, bundle: Bundle, unkept: list[str]) -> Found:
    """What was found, with its file; a file that cannot be written loses no report, so the reason is added."""
    if found.kept or found.example is None:
        return found
    blamed = Blamed(found.law.name, found.violation, found.example, found.chance)
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
        self.found: list[Found] = []
        self.dropped: list[Path] = []
        self.left_alone: list[tuple[Path, str]] = []
        self.unkept: list[str] = []
        self.broken: dict[str, Broken] = {}
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

    def tried(self, spread: Processes[Court]) -> None:
        """Try each of them again."""
        tried = [entry.blamed for entry in self._mine]
        asked = [(entry.law, entry.violation.policy, entry.example, entry.chance) for entry in tried]
        for entry, said in zip(self._mine, spread.each(Court.again, asked), strict=True):
            law, blamed = self._laws[entry.blamed.law], entry.blamed
            if isinstance(said, Broken):
                self.broken[law.name] = said
            elif said is not None and said.policy == blamed.violation.policy:
                self.found.append(Found(law, said, blamed.example, blamed.chance, kept=entry.path, again=True))
            else:
                self._drop(entry.path)

    def _drop(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self.unkept.append(f"{path}: holds now, and cannot be removed: {(error.strerror or str(error)).lower()}")
        else:
            self.dropped.append(path)

    def is_new(self, blamed: Blamed) -> bool:
        """Whether a violation is not one of those that still stand."""
        return all(
            (entry.law.name, entry.violation.policy, entry.violation.message) != blamed.kind for entry in self.found
        )
