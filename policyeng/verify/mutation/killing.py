"""Whether the cases of a policy, its absent tests or the laws notice a fault in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.header import Verdict
from policyeng.bundle.parameters import parameters_of
from policyeng.engines import Judgement, Work, judge
from policyeng.errors import PolicyengError
from policyeng.evaluation.estate import Estate, estate_of
from policyeng.evaluation.marking import markings_of
from policyeng.evaluation.plan import Planned, plan
from policyeng.models import JsonObject, lowered
from policyeng.verify.agreement.differential import outcome_of
from policyeng.verify.case_runs import PreparedCase, absences_of, prepared_absence, prepared_cases
from policyeng.verify.cases import Baselines, required_cases
from policyeng.verify.drawing.examples import Examples
from policyeng.verify.laws.law import Grounds, Law, Trial

#: What tells most faults comes first.
_ORDER = ("fail", "unknown", "not_judged", "pass")


@dataclass(frozen=True)
class _Ready:
    """A case with its estate, and what the unchanged header makes of it."""

    prepared: PreparedCase
    estate: Estate
    parameters: list[JsonObject]
    planned: list[Planned]
    judgement: Judgement


class Examination:
    """The cases and absent tests of one policy, put to its mutants one after the other."""

    def __init__(self, bundle: Bundle, baselines: Baselines) -> None:
        """Make the cases of the policy in force ready.

        Raises:
            BundleError: they are not well formed, or there are none.
            EngineError: the bundle does not compile.
        """
        self._bundle = bundle
        self._baselines = baselines
        self._policy = bundle.policies[0]
        self._file = required_cases(self._policy)
        prepared = prepared_cases(self._policy, self._file, baselines)
        ordered = sorted(prepared, key=lambda case: _ORDER.index(case.expected))
        self._cases = [self._ready(case) for case in ordered]
        self._absences: dict[str, _Ready] = {}

    def killer(self, mutant: Bundle) -> str:
        """The case or absent test that does not hold of a mutant, the policy in force of its bundle; empty if none.

        Raises:
            PolicyengError: the mutant does not compile.
        """
        for place, ready in enumerate(self._cases):
            if self._differs(mutant, ready, ready.prepared.expected):
                # What noticed one fault is likely to notice the next one.
                self._cases.insert(0, self._cases.pop(place))
                return ready.prepared.name
        for pointer, expected in absences_of(self._policy, self._file).items():
            ready = self._absence(mutant.policies[0], pointer, expected)
            if self._differs(mutant, ready, expected):
                return ready.prepared.name
        return ""

    def _absence(self, policy: Policy, pointer: str, expected: Verdict) -> _Ready:
        """The absent test of a pointer, which another mutant may have asked for."""
        if pointer not in self._absences:
            prepared = prepared_absence(self._bundle, policy, pointer, expected, self._file, self._baselines)
            self._absences[pointer] = self._ready(prepared)
        return self._absences[pointer]

    def _ready(self, prepared: PreparedCase) -> _Ready:
        estate = estate_of(prepared.snapshot, self._bundle.facts)
        parameters = parameters_of(self._bundle, {self._policy.id: prepared.case.parameters})
        planned = _planned(self._bundle, estate, prepared.identity)
        judgement = _judged(self._bundle, estate, prepared.as_of, parameters, planned)
        return _Ready(prepared, estate, parameters, planned, judgement)

    def _differs(self, mutant: Bundle, ready: _Ready, expected: str) -> bool:
        """Whether a mutant says something else of a case than it must."""
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
            judgement = _judged(mutant, ready.estate, prepared.as_of, parameters, planned)
        if _outcome(judgement) != expected:
            return True
        paths = [denial.path for denial in judgement.denials]
        return expected == "fail" and prepared.case.path is not None and prepared.case.path not in paths


def _planned(bundle: Bundle, estate: Estate, identity: str) -> list[Planned]:
    """The pairs that a case is about, in the order of their findings."""
    subjects = estate.subjects
    entries = [
        entry
        for entry in plan(bundle, estate)
        if lowered(subjects[entry.pair.subject].reported_id) == lowered(identity)
    ]
    return sorted(entries, key=lambda entry: subjects[entry.pair.subject].reported_id)


def _outcome(judgement: Judgement) -> str:
    return outcome_of(judgement).replace("not applicable", "not_judged")


def _judged(
    mutant: Bundle, estate: Estate, as_of: datetime, parameters: list[JsonObject], planned: Sequence[Planned]
) -> Judgement:
    """What a mutant says first of what a case is about."""
    for entry in planned:
        if entry.unknowns:
            return Judgement(unknowns=entry.unknowns)
        judgement = _asked(mutant, estate, as_of, parameters, entry)
        if judgement.applies:
            return judgement
    return Judgement(applies=False)


def _asked(mutant: Bundle, estate: Estate, as_of: datetime, parameters: list[JsonObject], entry: Planned) -> Judgement:
    work = Work(
        bundle=mutant,
        snapshot=replace(estate.view),  # what policies keep in it, they work out anew
        subjects=[subject.document for subject in estate.subjects],
        document=estate.document,
        pairs=[entry.pair],
        parameters=parameters,
        as_of=as_of,
        **markings_of(mutant, estate)._asdict(),
    )
    return judge(work)[0]


class LawTrials:
    """Examples on which the laws hold of a policy as it is, to see whether they do of its mutants."""

    def __init__(self, bundle: Bundle, laws: Sequence[Law], examples: int, seed: int) -> None:
        """Draw examples for the policy in force, and try the laws on them as it is."""
        source, policy = Examples(bundle), bundle.policies[0]
        self._examples = [
            source.drawn(Random(f"{seed}/{policy.id}/{number}"), policy)  # noqa: S311  # nothing here is secret
            for number in range(examples if laws else 0)
        ]
        self._laws = [law for law in laws if not self._violated(law, bundle)]

    def killer(self, mutant: Bundle) -> str:
        """The law that does not hold of a mutant, the policy in force of its bundle; empty if none."""
        return next((f"law {law.number} {law.name}" for law in self._laws if self._violated(law, mutant)), "")

    def _violated(self, law: Law, bundle: Bundle) -> bool:
        grounds = Grounds(bundle)
        return any(
            law.violated(Trial(grounds, example, str(number)))
            for number, example in enumerate(self._examples)
            if number % law.every == 0
        )
