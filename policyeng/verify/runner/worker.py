"""What one process does of a run: try laws on examples, replay kept ones, make counterexamples small."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from policyeng.bundle import Bundle
from policyeng.errors import BundleError
from policyeng.models import Outcome, Snapshot
from policyeng.verify.example_documents import read
from policyeng.verify.generators.examples import Example, Examples
from policyeng.verify.laws.law import Law, LawContext, Trial, Violation, WholeRun
from policyeng.verify.shrink_example import NOT_AGAIN, Smallest, smallest


@dataclass(frozen=True)
class FailingExample:
    """A violation and the example that shows it; `chance` is what the law drew from."""

    law: str
    violation: Violation
    example: Example
    chance: str

    @property
    def kind(self) -> tuple[str, str, str]:
        """The law, the policy and the message: violations of one kind are reported once."""
        return self.law, self.violation.policy, self.violation.message


@dataclass(frozen=True)
class BrokenLaw:
    """A law that could not be decided, and where; `reason` is what was raised."""

    law: str
    chance: str
    reason: str


@dataclass
class ExampleCounts:
    """What became of examples; that of several processes is added up.

    Attributes:
        examples: how many were judged.
        findings: how many findings they had.
        tried: by law, on how many of them it was tried.
        seconds: by law, how long that took; judging the examples as they are stands under the empty name.
        outcomes: by policy id, how many findings ended in which outcome.
        blamed: the first violation of each kind.
        broken: the first failure of each law to decide.
    """

    examples: int = 0
    findings: int = 0
    tried: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    outcomes: dict[str, Counter[Outcome]] = field(default_factory=dict)
    blamed: dict[tuple[str, str, str], FailingExample] = field(default_factory=dict)
    broken: dict[str, BrokenLaw] = field(default_factory=dict)
    remarks: Counter[str] = field(default_factory=Counter)

    def add(self, other: ExampleCounts) -> None:
        """Add what became of examples that come after those here."""
        self.examples += other.examples
        self.findings += other.findings
        self.tried.update(other.tried)
        self.remarks.update(other.remarks)
        for law, seconds in other.seconds.items():
            self.seconds[law] += seconds
        for policy, counts in other.outcomes.items():
            self.outcomes.setdefault(policy, Counter()).update(counts)
        self.blamed = other.blamed | self.blamed
        self.broken = other.broken | self.broken


class LawRunner:
    """The bundle and the laws of a run in one process, which keeps what laws make once.

    `policyeng.verify.runner.run` asks it in processes that inherit it: policies in Python need not be pickled.
    """

    def __init__(self, bundle: Bundle, laws: Sequence[Law], seed: int) -> None:
        self._laws = {law.name: law for law in laws}
        self._seed = seed
        self._source = Examples(bundle)
        self._grounds = LawContext(bundle)

    def warmed(self) -> None:
        """Make what every process needs, before there are several."""
        self._source.numbered(self._seed, 0)

    def tried(self, numbers: Iterable[int]) -> ExampleCounts:
        """Try the laws on the examples of these numbers."""
        tally = ExampleCounts()
        for number in numbers:
            chance = f"{self._seed}/{number}"
            try:
                example = self._source.numbered(self._seed, number)
            except Exception as error:  # a fault of the drawing itself: said with the number, never a traceback
                tally.broken.setdefault("", BrokenLaw("", chance, _spelled(error)))
                continue
            self._try(tally, Trial(self._grounds, example, chance), number)
        tally.remarks, self._grounds.remarks = self._grounds.remarks, Counter()
        return tally

    def _try(self, tally: ExampleCounts, trial: Trial, number: int) -> None:
        started = time.perf_counter()
        judged = _is_judged(trial)
        tally.seconds[""] += time.perf_counter() - started
        tally.examples += 1
        for finding in trial.evaluation.findings if judged else ():
            tally.findings += 1
            tally.outcomes.setdefault(finding.policy, Counter())[finding.outcome] += 1
        for law in self._laws.values():
            # One number in so many, another one for each law, so that what costs much does not come together.
            if law.whole is not None or (number + law.number) % law.every or not (judged or law.number == _TOTAL):
                continue
            started = time.perf_counter()
            self._ask(tally, law, trial)
            tally.tried[law.name] += 1
            tally.seconds[law.name] += time.perf_counter() - started
        if not judged and not any(law.number == _TOTAL for law in self._laws.values()):
            reason = "judging raises; `--law total` says how"
            tally.broken.setdefault("", BrokenLaw("", trial.chance, reason))

    def _ask(self, tally: ExampleCounts, law: Law, trial: Trial) -> None:
        try:
            violation = law.violated(trial)
        except Exception as error:  # a fault of the law itself: said with the number, never a traceback
            tally.broken.setdefault(law.name, BrokenLaw(law.name, trial.chance, _spelled(error)))
            return
        if violation is not None:
            blamed = FailingExample(law.name, violation, trial.example, trial.chance)
            tally.blamed.setdefault(blamed.kind, blamed)

    def again(self, law: str, policy: str, example: Example, chance: str) -> Violation | BrokenLaw | None:
        """Try a law on one example, through the reader if that reads it: as it was made small."""
        said = self._on(self._grounds, law, example, chance)
        if said is None and (anew := self._anew(policy)) is not None:
            said = self._on(anew, law, example, chance)
        return said

    def _on(self, grounds: LawContext, law: str, example: Example, chance: str) -> Violation | BrokenLaw | None:
        tally = ExampleCounts()
        snapshot = read(example.document, self._grounds.bundle)
        self._ask(tally, self._laws[law], Trial(grounds, example, chance, snapshot))
        found = next(iter(tally.blamed.values()), None)
        return found.violation if found else tally.broken.get(law)

    def smallest(self, blamed: FailingExample, most: int) -> Smallest[Violation]:
        """Make the example of a violation small while the same law blames the same policy.

        What is found once and not again comes of a policy that keeps something from one judgement to the next. Then
        its module is run anew for every smaller example.
        """
        left = self._smallest(blamed, most, lambda: self._grounds)
        lasts = left.note != NOT_AGAIN and (
            left.note or self._on(self._grounds, blamed.law, left.example, blamed.chance)
        )
        if lasts:
            return left
        policy = blamed.violation.policy
        made = self._smallest(blamed, most // _ANEW_COSTS, lambda: self._anew(policy))
        if made.note == NOT_AGAIN:
            return made
        return replace(made, note="; ".join(filter(None, (_KEEPS, made.note))))

    def _smallest(
        self, blamed: FailingExample, most: int, grounds: Callable[[], LawContext | None]
    ) -> Smallest[Violation]:
        def ask(example: Example, snapshot: Snapshot) -> Violation | None:
            tally, tried_on = ExampleCounts(), grounds()
            if tried_on is not None:
                self._ask(tally, self._laws[blamed.law], Trial(tried_on, example, blamed.chance, snapshot))
            found = tally.blamed.get(blamed.kind)
            return found.violation if found else None

        return smallest(self._grounds.bundle, blamed.example, blamed.violation, ask, most=most)

    def _anew(self, policy: str) -> LawContext | None:
        """A policy in Python alone, its module run anew, so that it has kept nothing of what was judged before.

        None where nothing can be kept, or it cannot be run anew.
        """
        named = next((entry for entry in self._grounds.bundle.policies if entry.id == policy), None)
        if named is None or named.rules or named.python is None:
            return None
        try:
            again = replace(named, python=named.python.again())
        except BundleError:  # it ran once: now that fails because of what it did then
            return None
        return LawContext(self._grounds.bundle.only([again]))

    def concluded(self, law: str, examples: int, outcomes: dict[str, Counter[Outcome]]) -> Conclusion:
        """What a law of the whole run says of it."""
        started = time.perf_counter()
        broken = None
        violations: list[Violation] = []
        try:
            violations = list(self._violations(law, WholeRun(self._grounds, examples, outcomes)))
        except Exception as error:  # a fault of the law itself: never a traceback
            broken = BrokenLaw(law, "", _spelled(error))
        remarks, self._grounds.remarks = self._grounds.remarks, Counter()
        return Conclusion(law, violations, broken, remarks, time.perf_counter() - started)

    def _violations(self, law: str, whole: WholeRun) -> Iterator[Violation]:
        asked = self._laws[law].whole
        yield from asked(whole) if asked else ()


@dataclass(frozen=True)
class Conclusion:
    """What a law of the whole run says."""

    law: str
    violations: Sequence[Violation]
    broken: BrokenLaw | None
    remarks: Counter[str]
    seconds: float


#: One trial with a module that is run anew costs about as much as so many others.
_ANEW_COSTS = 5
_KEEPS = "the policy keeps something from one judgement to the next: its module was run anew for each smaller example"

#: The law that says what becomes of an example that cannot be judged at all.
_TOTAL = 4


def _is_judged(trial: Trial) -> bool:
    try:
        return bool(trial.evaluation)
    except Exception:  # law 4 says so
        return False


def _spelled(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
