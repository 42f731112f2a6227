"""A law: one sentence that holds of every bundle, snapshot, parameters and clock, and how an example is tried on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any, TypeVar

from policyeng.bundle import Bundle
from policyeng.evaluation import EvaluationContext, EvaluationOptions, evaluate_prepared, prepare
from policyeng.models import Evaluation, Exemption, Finding, JsonObject, Outcome, Snapshot, lowered
from policyeng.verify.generators.examples import Example

_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Violation:
    """What shows that a law does not hold.

    Attributes:
        policy: the id of the policy that breaks it; empty where it is no single one.
        resource: what is judged otherwise than the law says; empty where it is no single one.
        message: what the law says and what was found instead; constant text, so that one fault is reported once.
        lines: what was found, a line each.
    """

    message: str
    policy: str = ""
    resource: str = ""
    lines: tuple[str, ...] = ()


@dataclass
class LawContext:
    """A bundle on trial, with what laws make of it once and use for every example.

    Attributes:
        made: by name, what a law keeps: other orders of the policies, engines, sessions.
        remarks: what is said aloud of the run, whatever comes out of it: by text, how many there were, or zero where
            it is no number. Those of several processes are added.
    """

    bundle: Bundle
    made: dict[str, Any] = field(default_factory=dict)
    remarks: Counter[str] = field(default_factory=Counter)

    def once(self, name: str, make: Callable[[], _Made]) -> _Made:
        """What `make` gave when it was first asked for under this name."""
        if name not in self.made:
            self.made[name] = make()
        made: _Made = self.made[name]
        return made

    def remark(self, law: str, text: str, number: int = 0) -> None:
        """Have something said of the run: what a law could not try, or with a number how much of it was tried."""
        self.remarks[f"{law}: {text}"] += number


@dataclass
class Trial:
    """One example on trial; laws share the evaluation of it as it is.

    Attributes:
        chance: what the draws of laws begin from, so that the same example is tried in the same way again.
        given: the snapshot, where it was read by a reader rather than built from the example.
    """

    grounds: LawContext
    example: Example
    chance: str = ""
    given: Snapshot | None = None

    @property
    def bundle(self) -> Bundle:
        """The policies on trial."""
        return self.grounds.bundle

    @cached_property
    def snapshot(self) -> Snapshot:
        """What is judged."""
        return self.given or self.example.snapshot

    @cached_property
    def prepared(self) -> EvaluationContext:
        """The example made ready: what laws judge again as it is, they do not make ready again."""
        return self.ready(self.snapshot)

    @cached_property
    def evaluation(self) -> Evaluation:
        """The example as it is judged, with nothing changed."""
        return self.judged()

    def judged(
        self,
        snapshot: Snapshot | None = None,
        bundle: Bundle | None = None,
        *,
        parameters: Mapping[str, JsonObject] | None = None,
        exemptions: Sequence[Exemption] = (),
    ) -> Evaluation:
        """The evaluation with something else in place of what the example has, or with exemptions."""
        is_as_it_is = snapshot is None and bundle is None and parameters is None
        prepared = self.prepared if is_as_it_is else self.ready(snapshot or self.snapshot, bundle, parameters)
        return evaluate_prepared(prepared, EvaluationOptions(self.example.as_of, exemptions))

    def said(self, prepared: EvaluationContext) -> Evaluation:
        """The evaluation of what `ready` gave, or of a part of it, at the clock of the example."""
        return evaluate_prepared(prepared, EvaluationOptions(self.example.as_of))

    def ready(
        self, snapshot: Snapshot, bundle: Bundle | None = None, parameters: Mapping[str, JsonObject] | None = None
    ) -> EvaluationContext:
        """A snapshot made ready, with the bundle and the parameters of the example or others."""
        return prepare(bundle or self.bundle, snapshot, self.example.parameters if parameters is None else parameters)

    def random(self, law: str) -> Random:
        """Chance for a law, the same every time that it is asked for."""
        return Random(f"{law}/{self.chance}")  # noqa: S311  # nothing here is secret


@dataclass(frozen=True)
class WholeRun:
    """A run whose examples are all tried, for laws that no single example can break.

    Attributes:
        examples: how many were judged.
        outcomes: by policy id, how many findings ended in which outcome.
    """

    grounds: LawContext
    examples: int
    outcomes: Mapping[str, Counter[Outcome]]


def unbroken(_: Trial) -> Violation | None:
    """What a law of the whole run says of an example."""
    return None


@dataclass(frozen=True)
class Law:
    """A law of `docs/laws.md`.

    Attributes:
        number: it stays; the numbers that are missing were laws of the engine, which its tests try.
        name: one word, or several joined by hyphens, for `--law`.
        sentence: what holds.
        reference: where the law, or the way of proving it, comes from.
        violated: why an example breaks it, None where it holds.
        every: one example in so many is tried, for a law that costs much more than judging does.
        whole: why a whole run breaks it, asked once at its end; a law has this or `violated`.
    """

    number: int
    name: str
    sentence: str
    reference: str
    violated: Callable[[Trial], Violation | None] = unbroken
    every: int = 1
    whole: Callable[[WholeRun], Iterable[Violation]] | None = None


def by_pair(evaluation: Evaluation) -> Mapping[tuple[str, str, str], Finding]:
    """The findings by policy, type and id, which is what one finding there is for."""
    return {
        (finding.policy, lowered(finding.resource_type), lowered(finding.resource)): finding
        for finding in evaluation.findings
    }


def first_difference(before: Evaluation, after: Evaluation, said: Callable[[Finding], object]) -> Violation | None:
    """The first pair of which two evaluations say different things, `said` being what is compared; None if none."""
    ours, theirs = by_pair(before), by_pair(after)
    for pair in sorted({*ours, *theirs}):
        one, other = ours.get(pair), theirs.get(pair)
        if (one is None) != (other is None) or (one and other and said(one) != said(other)):
            lines = (f"before: {spelled(one)}", f"after:  {spelled(other)}")
            shown = one or other
            return Violation("", pair[0], shown.resource if shown else pair[2], lines)
    return None


def remarked(remarks: Mapping[str, int]) -> list[str]:
    """The remarks of a run, a line each."""
    return [f"{text}: {number:,}" if number else text for text, number in sorted(remarks.items())]


def spelled(finding: Finding | None) -> str:
    """A finding in one line."""
    if finding is None:
        return "no finding"
    reasons: Sequence[str] = [f"{denial.msg} ({denial.path}: {denial.actual!r})" for denial in finding.denials]
    reasons = [*reasons, *(f"{unknown.msg} ({unknown.path})" for unknown in finding.unknowns)]
    return f"{finding.outcome}{'; '.join(['', *reasons])}"
