"""The work of one process of a run: test laws on examples, replay stored failures, shrink counterexamples."""

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

    `policyeng.verify.runner.run` calls it in forked processes, because policies in Python cannot be pickled.
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
        judged = _can_evaluate(trial)
        tally.seconds[""] += time.perf_counter() - started
        tally.examples += 1
        for finding in trial.evaluation.findings if judged else ():
            tally.findings += 1
            tally.outcomes.setdefault(finding.policy, Counter())[finding.outcome] += 1
        for law in self._laws.values():
            # The numbers differ by law, so the costly laws do not all run on the same examples.
            if law.whole is not None or (number + law.number) % law.every or not (judged or law.number == _TOTAL):
                continue
            started = time.perf_counter()
            self._test_law(tally, law, trial)
            tally.tried[law.name] += 1
            tally.seconds[law.name] += time.perf_counter() - started
        if not judged and not any(law.number == _TOTAL for law in self._laws.values()):
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
        def ask(example: Example, snapshot: Snapshot) -> Violation | None:
            tally, fresh_context = ExampleCounts(), grounds()
            if fresh_context is not None:
                self._test_law(tally, self._laws[failing.law], Trial(fresh_context, example, failing.chance, snapshot))
            found = tally.failing.get(failing.kind)
            return found.violation if found else None

        return shrink_example(self._grounds.bundle, failing.example, failing.violation, ask, most=most)

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
