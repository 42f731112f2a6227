"""Evaluate cases and examples as `policyeng check` reads them, and record the outcomes of each policy."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import orjson

from policyeng.bundle import Bundle
from policyeng.bundle.cases import DEFAULT_AS_OF, Case
from policyeng.evaluation import evaluate
from policyeng.models import Evaluation, JsonObject, Outcome, Snapshot, lowered
from policyeng.sources import read_inputs
from policyeng.verify.example_documents import native
from policyeng.verify.generators.estates import EstateGenerator
from policyeng.verify.generators.examples import Example

#: The number of examples that are stored for each policy and outcome, the smallest ones.
_KEPT = 6


@dataclass(frozen=True)
class Sighting:
    """An outcome of a policy on a resource of an example, which is stored as text to save memory."""

    text: bytes
    parameters: Mapping[str, JsonObject]
    as_of: datetime
    resource: str

    @property
    def example(self) -> Example:
        """The example; the caller may change its document."""
        return Example(orjson.loads(self.text), self.parameters, self.as_of)


@dataclass
class Seen:
    """The observations of one policy.

    Attributes:
        outcomes: the number of findings with each outcome.
        reasons: the messages of its denials and unknowns.
        failing, passing: the smallest examples.
        together: the number of failures of both policies on one resource, by the id of the other one.
        apart: the first failure without a failure of the other policy on the same resource, by its id.
        plainly_together, plainly_apart: the same if both policies have their default parameters.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: set[str] = field(default_factory=set)
    failing: list[Sighting] = field(default_factory=list)
    passing: list[Sighting] = field(default_factory=list)
    together: Counter[str] = field(default_factory=Counter)
    apart: dict[str, Sighting] = field(default_factory=dict)
    plainly_together: Counter[str] = field(default_factory=Counter)
    plainly_apart: dict[str, Sighting] = field(default_factory=dict)

    @property
    def failures(self) -> int:
        """The number of failures."""
        return self.outcomes[Outcome.FAIL]

    @property
    def decided(self) -> set[str]:
        """The outcomes other than error."""
        return {outcome for outcome in self.outcomes if outcome != Outcome.ERROR}


@dataclass
class ObservedOutcomes:
    """The observations of every policy of a bundle.

    Attributes:
        cases, examples: the number of evaluated ones.
        more: the number of additional examples for a policy, by id.
    """

    bundle: Bundle
    seen: dict[str, Seen] = field(default_factory=dict)
    cases: int = 0
    examples: int = 0
    more: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Add an entry for each policy, even if it is never observed."""
        self.seen |= {policy.id: Seen() for policy in self.bundle.policies}

    def judge(self, example: Example, bundle: Bundle | None = None) -> None:
        """Evaluate an example with every policy, or with those of a part of the bundle, and record the findings.

        Raises:
            EngineError: the bundle does not compile.
        """
        text = native_text(example)
        evaluation = evaluate_example(bundle or self.bundle, example, as_read(text))
        for resource, said in by_resource(evaluation).items():
            sighting = Sighting(text, example.parameters, example.as_of, resource)
            failing = {policy for policy, outcome in said.items() if outcome is Outcome.FAIL}
            for policy, outcome in said.items():
                seen = self.seen[policy]
                if outcome is Outcome.FAIL:
                    _store_sighting(seen.failing, sighting)
                    self._compare(policy, failing, sighting)
                elif outcome is Outcome.PASS:
                    _store_sighting(seen.passing, sighting)
        for finding in evaluation.findings:
            seen = self.seen[finding.policy]
            seen.outcomes[finding.outcome] += 1
            seen.reasons.update(reason.msg for reason in (*finding.denials, *finding.unknowns))

    def _compare(self, policy: str, failing: set[str], sighting: Sighting) -> None:
        seen, is_plain = self.seen[policy], policy not in sighting.parameters
        seen.together.update(failing)
        if is_plain:
            seen.plainly_together.update(failing - sighting.parameters.keys())
        for other in self.seen.keys() - failing:
            seen.apart.setdefault(other, sighting)
            if is_plain and other not in sighting.parameters:
                seen.plainly_apart.setdefault(other, sighting)


def cases_of(policy: str, estates: EstateGenerator) -> Iterator[tuple[Case, Example]]:
    """Yield the cases of a policy, each with its example."""
    for case, document in estates.cases.get(policy, ()):
        parameters = {policy: case.parameters} if case.parameters else {}
        yield case, Example(document, parameters, case.as_of or DEFAULT_AS_OF)


def native_text(example: Example) -> bytes:
    """Return the document of an example as a native snapshot; integers beyond 64 bits become the nearest ones."""
    document = native(example.document)
    try:
        return orjson.dumps(document)
    except TypeError:
        return orjson.dumps(json.loads(json.dumps(document), parse_int=float))


def as_read(text: bytes) -> Snapshot:
    """Return the snapshot that `policyeng check` evaluates: the native document without what its reader refuses."""
    return read_inputs(["-"], from_format="native", stdin=text).snapshot


def evaluate_example(bundle: Bundle, example: Example, snapshot: Snapshot) -> Evaluation:
    """Evaluate an example with another snapshot in place of its document."""
    known = {policy.id for policy in bundle.policies}
    parameters = {policy: given for policy, given in example.parameters.items() if policy in known}
    return evaluate(bundle, snapshot, as_of=example.as_of, parameters=parameters)


def by_resource(evaluation: Evaluation) -> dict[str, dict[str, Outcome]]:
    """Return the outcome of each policy by lower-case resource id; a workload has the id of its source resource.

    A policy that selects both fails if it fails on one of them.
    """
    said: dict[str, dict[str, Outcome]] = {}
    for finding in evaluation.findings:
        policies = said.setdefault(lowered(finding.resource), {})
        if policies.get(finding.policy) is not Outcome.FAIL:
            policies[finding.policy] = finding.outcome
    return said


def find_distinguished(evaluation: Evaluation, policy: str, others: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the resources on which a policy fails, with each other policy that does not fail or err there."""
    for resource, said in by_resource(evaluation).items():
        if said.get(policy) is Outcome.FAIL:
            for other in others:
                if said.get(other) not in (Outcome.FAIL, Outcome.ERROR):
                    yield resource, other


def _store_sighting(kept: list[Sighting], sighting: Sighting) -> None:
    """Store a sighting among the smallest, one of each size, so that the stored examples differ."""
    size = len(sighting.text)
    if len(kept) == _KEPT and size >= len(kept[-1].text):
        return
    if all(len(other.text) != size for other in kept):
        kept.append(sighting)
        kept.sort(key=lambda other: (len(other.text), other.text))
        del kept[_KEPT:]
