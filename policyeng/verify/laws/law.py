"""Laws: properties of every bundle, snapshot, parameters and clock, and the context in which an example is tested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any, TypeVar

from policyeng.bundle import Bundle
from policyeng.evaluation import EvaluationContext, EvaluationOptions, evaluate_prepared, prepare
from policyeng.evaluation.summary import by_pair
from policyeng.models import Evaluation, Exemption, Finding, JsonObject, Outcome, Snapshot
from policyeng.verify.generators.examples import Example

_T = TypeVar("_T")


@dataclass(frozen=True)
class Violation:
    """A violation of a law.

    Attributes:
        policy: the id of the policy that violates the law; empty if it is not a single one.
        resource: the resource with the wrong finding; empty if it is not a single one.
        message: what is wrong; constant text, so that one fault is reported once.
        lines: the details.
    """

    message: str
    policy: str = ""
    resource: str = ""
    lines: tuple[str, ...] = ()


@dataclass
class LawContext:
    """The bundle that is tested, with values that laws compute once and use for every example.

    Attributes:
        made: the values that laws store, by name: other orders of the policies, engines, sessions.
        remarks: the remarks of the report, with a count, or zero for a remark without a number. The counts of several
        processes are added.
    """

    bundle: Bundle
    made: dict[str, Any] = field(default_factory=dict)
    remarks: Counter[str] = field(default_factory=Counter)

    def once(self, name: str, make: Callable[[], _T]) -> _T:
        """Return the value for a name, computed by `make` at the first call."""
        if name not in self.made:
            self.made[name] = make()
        made: _T = self.made[name]
        return made

    def remark(self, law: str, text: str, number: int = 0) -> None:
        """Add a remark to the report: what a law could not test, or, with a number, how much of it was tested."""
        self.remarks[f"{law}: {text}"] += number


@dataclass
class Trial:
    """The test of laws on one example; laws share its evaluation.

    Attributes:
        chance: the seed for random draws of laws, so that an example is always tested in the same way.
        given: the snapshot, if it was read by a reader rather than built from the example.
    """

    grounds: LawContext
    example: Example
    chance: str = ""
    given: Snapshot | None = None

    @property
    def bundle(self) -> Bundle:
        """The bundle that is tested."""
        return self.grounds.bundle

    @cached_property
    def snapshot(self) -> Snapshot:
        """The evaluated snapshot."""
        return self.given or self.example.snapshot

    @cached_property
    def prepared(self) -> EvaluationContext:
        """The prepared example, which laws that evaluate it unchanged share."""
        return self.ready(self.snapshot)

    @cached_property
    def evaluation(self) -> Evaluation:
        """The evaluation of the unchanged example."""
        return self.evaluate()

    def evaluate(
        self,
        snapshot: Snapshot | None = None,
        bundle: Bundle | None = None,
        *,
        parameters: Mapping[str, JsonObject] | None = None,
        exemptions: Sequence[Exemption] = (),
    ) -> Evaluation:
        """Return the evaluation of the example with other parts in place of its own, or with exemptions."""
        is_unchanged = snapshot is None and bundle is None and parameters is None
        prepared = self.prepared if is_unchanged else self.ready(snapshot or self.snapshot, bundle, parameters)
        return evaluate_prepared(prepared, EvaluationOptions(self.example.as_of, exemptions))

    def evaluate_prepared(self, prepared: EvaluationContext) -> Evaluation:
        """Return the evaluation of a prepared snapshot, or of a part of it, at the clock of the example."""
        return evaluate_prepared(prepared, EvaluationOptions(self.example.as_of))

    def ready(
        self, snapshot: Snapshot, bundle: Bundle | None = None, parameters: Mapping[str, JsonObject] | None = None
    ) -> EvaluationContext:
        """Prepare a snapshot with the bundle and the parameters of the example or others."""
        return prepare(bundle or self.bundle, snapshot, self.example.parameters if parameters is None else parameters)

    def random(self, law: str) -> Random:
        """Return the random generator of a law; it always starts in the same state."""
        return Random(f"{law}/{self.chance}")  # noqa: S311  # nothing here is secret


@dataclass(frozen=True)
class WholeRun:
    """A run whose examples are all tested, for laws that no single example can violate.

    Attributes:
        examples: the number of evaluated examples.
        outcomes: the number of findings with each outcome, by policy id.
    """

    grounds: LawContext
    examples: int
    outcomes: Mapping[str, Counter[Outcome]]


def find_nothing(_: Trial) -> Violation | None:
    """Return no violation, for laws that only a complete run can violate."""
    return None


@dataclass(frozen=True)
class Law:
    """A law of `docs/laws.md`.

    Attributes:
        number: never changes; missing numbers were laws of the engine, which its own tests cover.
        name: one word, or several joined by hyphens, for `--law`.
        sentence: the property.
        reference: the source of the law, or of the way to test it.
        violated: returns why an example violates the law, or None.
        every: one in this many examples is tested, for a law that costs much more than an evaluation.
        whole: returns why a complete run violates the law, called once at its end; a law has this or `violated`.
    """

    number: int
    name: str
    sentence: str
    reference: str
    violated: Callable[[Trial], Violation | None] = find_nothing
    every: int = 1
    whole: Callable[[WholeRun], Iterable[Violation]] | None = None


def find_first_difference(
    before: Evaluation, after: Evaluation, describe: Callable[[Finding], object]
) -> Violation | None:
    """Return the first pair for which `describe` returns something else in two evaluations; None if there is none."""
    ours, theirs = by_pair(before), by_pair(after)
    for pair in sorted({*ours, *theirs}):
        one, other = ours.get(pair), theirs.get(pair)
        if (one is None) != (other is None) or (one and other and describe(one) != describe(other)):
            lines = (f"before: {format_finding(one)}", f"after:  {format_finding(other)}")
            shown = one or other
            return Violation("", pair[0], shown.resource if shown else pair[2], lines)
    return None


def format_remarks(remarks: Mapping[str, int]) -> list[str]:
    """Return the remarks of a run, one line each."""
    return [f"{text}: {number:,}" if number else text for text, number in sorted(remarks.items())]


def format_finding(finding: Finding | None) -> str:
    """Return a finding in one line."""
    if finding is None:
        return "no finding"
    reasons: Sequence[str] = [f"{denial.msg} ({denial.path}: {denial.actual!r})" for denial in finding.denials]
    reasons = [*reasons, *(f"{unknown.msg} ({unknown.path})" for unknown in finding.unknowns)]
    return f"{finding.outcome}{'; '.join(['', *reasons])}"
