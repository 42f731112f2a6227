"""What a bundle says of one estate at many moments: which policies do not pass, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from policyeng.bundle import Bundle
from policyeng.bundle.header import Judged
from policyeng.bundle.parameters import parameters_of
from policyeng.engines import Judgement, Work, judge
from policyeng.errors import BundleError
from policyeng.evaluation.estate import Estate, Subject, estate_of
from policyeng.evaluation.plan import Planned, plan
from policyeng.evaluation.pointers import value_at
from policyeng.models import Denial, JsonObject, Snapshot, Unknown, lowered
from policyeng.verify.satisfiability.clock import timeless


@dataclass(frozen=True)
class Reason:
    """One reason why a policy does not pass on a subject; an error has a message alone."""

    policy: str
    resource: str
    judged_type: str
    said: Denial | Unknown

    @property
    def words(self) -> str:
        """The reason in one line."""
        shown = f" ({self.said.path}: {self.said.actual!r})" if isinstance(self.said, Denial) else f" ({self.said.path})"
        return f"{self.policy}: {self.said.msg}{shown}"


@dataclass(frozen=True)
class Judge:
    """A bundle with the parameters in force."""

    bundle: Bundle
    given: Mapping[str, JsonObject]

    @cached_property
    def parameters(self) -> list[JsonObject]:
        """By position of the policy, what it judges with."""
        return parameters_of(self.bundle, self.given)

    @cached_property
    def timeless(self) -> frozenset[str]:
        """The ids of the policies that surely do not look at the clock."""
        return timeless(self.bundle)

    def of(self, snapshot: Snapshot, place: str) -> JudgedEstate:
        """The estate of a snapshot, ready to be judged.

        Raises:
            BundleError: something of it cannot be judged; `place` names it.
        """
        estate = estate_of(snapshot, self.bundle.facts)
        for problem in estate.problems:
            if problem.level == "error":
                raise BundleError(problem.message, place=(place, problem.place))
        return JudgedEstate(self, estate, tuple(plan(self.bundle, estate, self.parameters)))


@dataclass(frozen=True)
class Verdicts:
    """What was said of an estate at one moment.

    Attributes:
        failing: by id, the policies with a finding that is not a pass, and why.
        judged: the positions of the subjects that have a finding.
    """

    failing: Mapping[str, Sequence[Reason]]
    judged: frozenset[int]


@dataclass(frozen=True)
class JudgedEstate:
    """An estate and the pairs of policy and subject in it."""

    judge: Judge
    estate: Estate
    planned: Sequence[Planned]

    def subjects_of(self, about: Judged) -> frozenset[int]:
        """The positions of the subjects that surely are of a kind."""
        return frozenset(index for index, subject in enumerate(self.estate.subjects) if _is_one(about, subject))

    def verdicts(self, as_of: datetime, *, clocked_alone: bool = False) -> Verdicts:
        """What all policies say, or only those that may look at the clock."""
        policies = self.judge.bundle.policies
        entries = [
            entry
            for entry in self.planned
            if not clocked_alone or policies[entry.pair.policy].id not in self.judge.timeless
        ]
        failing: dict[str, list[Reason]] = {}
        judged = set()
        for entry, judgement in self._judged(entries, as_of):
            if judgement.applies:
                judged.add(entry.pair.subject)
                subject, policy = self.estate.subjects[entry.pair.subject], policies[entry.pair.policy].id
                if said := _reasons(judgement):
                    reasons = [Reason(policy, subject.reported_id, subject.judged_type, reason) for reason in said]
                    failing.setdefault(policy, []).extend(reasons)
        return Verdicts(failing, frozenset(judged))

    def passes(self, as_of: datetime) -> bool:
        """Whether an estate that passes all policies that do not look at the clock passes the others at a moment."""
        return not self.verdicts(as_of, clocked_alone=True).failing

    def _judged(self, entries: Sequence[Planned], as_of: datetime) -> list[tuple[Planned, Judgement]]:
        asked = [entry for entry in entries if not entry.unknowns]
        work = Work(
            bundle=self.judge.bundle,
            snapshot=replace(self.estate.view),  # what policies keep in it may hang on the clock
            subjects=[subject.document for subject in self.estate.subjects],
            document=self.estate.document,
            pairs=[entry.pair for entry in asked],
            parameters=self.judge.parameters,
            as_of=as_of,
        )
        decided = [(entry, Judgement(unknowns=entry.unknowns)) for entry in entries if entry.unknowns]
        return [*decided, *zip(asked, judge(work), strict=True)]


def _reasons(judgement: Judgement) -> Sequence[Denial | Unknown]:
    if judgement.error is not None:
        return [Unknown(msg=f"the policy broke: {judgement.error}")]
    return judgement.denials or judgement.unknowns


def _is_one(judged: Judged, subject: Subject) -> bool:
    """Whether a subject surely is of the kind: its type, and at every pointer one of the values."""
    return lowered(judged.type) == subject.judged_type and all(
        any(_alike(value_at(subject.document, pointer), value) for value in allowed)
        for pointer, allowed in judged.where.items()
    )


def _alike(found: object, wanted: object) -> bool:
    if isinstance(found, str) and isinstance(wanted, str):
        return lowered(found) == lowered(wanted)
    return type(found) is type(wanted) and found == wanted
