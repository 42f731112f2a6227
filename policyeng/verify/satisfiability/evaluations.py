"""Evaluations of one snapshot at many moments: the policies that do not pass, and the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import orjson

from policyeng.bundle import Bundle
from policyeng.bundle.header import TargetType
from policyeng.bundle.parameters import parameters_of
from policyeng.engines import EvaluationRequest, Judgement, run_engine
from policyeng.errors import BundleError
from policyeng.evaluation.plan import PlannedPair, plan
from policyeng.evaluation.pointers import value_at
from policyeng.evaluation.prepared_snapshot import PreparedSnapshot, Resource, estate_of
from policyeng.evaluation.unknown_markers import mark_for_bundle
from policyeng.models import Denial, JsonObject, Snapshot, Unknown, lowered


@dataclass(frozen=True)
class BlockingReason:
    """One reason why a policy does not pass on a subject; an error has only a message."""

    policy: str
    resource: str
    judged_type: str
    said: Denial | Unknown

    @property
    def words(self) -> str:
        """Return the reason in one line."""
        shown = f"{self.said.path}: {_to_text(self.said.actual)}" if isinstance(self.said, Denial) else self.said.path
        return f"{self.policy}: {self.said.msg} ({shown})"

    @property
    def brief(self) -> str:
        """Return the reason without its place, and without why the policy applies."""
        actual = self.said.actual if isinstance(self.said, Denial) else None
        if isinstance(actual, dict):
            actual = {key: value for key, value in actual.items() if key != "because"}
        return f"{self.policy}: {self.said.msg}{f' ({_to_text(actual)})' if actual else ''}"


def _to_text(value: object) -> str:
    """Return a JSON value as text: objects as pairs."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_to_text(member)}" for key, member in value.items())
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


@dataclass(frozen=True)
class Judge:
    """A bundle with its parameters."""

    bundle: Bundle
    given: Mapping[str, JsonObject]

    @cached_property
    def parameters(self) -> list[JsonObject]:
        """The parameters of each policy, by position."""
        return parameters_of(self.bundle, self.given)

    @cached_property
    def timeless(self) -> frozenset[str]:
        """The ids of the policies that certainly do not depend on the clock."""
        policies = zip(self.bundle.policies, self.bundle.clocked, strict=True)
        return frozenset(policy.id for policy, is_clocked in policies if not is_clocked)

    def of(self, snapshot: Snapshot, place: str) -> JudgedEstate:
        """Prepare a snapshot for evaluation.

        Raises:
            BundleError: a part of it cannot be evaluated; `place` is the place of the error.
        """
        estate = estate_of(snapshot, self.bundle.facts)
        for problem in estate.problems:
            if problem.level == "error":
                raise BundleError(problem.message, place=(place, problem.place))
        return JudgedEstate(self, estate, tuple(plan(self.bundle, estate)))


@dataclass(frozen=True)
class Verdicts:
    """The results for a snapshot at one moment.

    Attributes:
        failing: the policies with a finding other than a pass, by id, and the reasons.
        judged: the positions of the subjects that have a finding.
    """

    failing: Mapping[str, Sequence[BlockingReason]]
    judged: frozenset[int]


@dataclass(frozen=True)
class JudgedEstate:
    """A prepared snapshot and its pairs of policy and subject."""

    judge: Judge
    estate: PreparedSnapshot
    planned: Sequence[PlannedPair]
    _made: dict[str, Any] = field(default_factory=dict)
    _failed: list[PlannedPair] = field(default_factory=list)

    def subjects_of(self, about: TargetType) -> frozenset[int]:
        """Return the positions of the subjects that certainly meet an entry of `judges`."""
        return frozenset(index for index, subject in enumerate(self.estate.subjects) if _is_one(about, subject))

    def verdicts(self, as_of: datetime, *, clocked_alone: bool = False) -> Verdicts:
        """Evaluate all policies, or only those that may depend on the clock."""
        return self._evaluate(self._clocked if clocked_alone else self.planned, as_of)

    def passes(self, as_of: datetime) -> bool:
        """Check whether a snapshot that passes all policies without a clock passes the others at a moment."""
        policies = self.judge.bundle.policies
        in_rego = [entry for entry in self._clocked if policies[entry.pair.policy].rules]
        in_python = [entry for entry in self._clocked if not policies[entry.pair.policy].rules]
        # The last failing policy probably fails again, and Python costs less than Rego; the order is only for speed.
        for entries in (self._failed, in_python, in_rego):
            failing = self._evaluate(entries, as_of).failing if entries else {}
            if failing:
                self._failed[:] = [entry for entry in entries if policies[entry.pair.policy].id in failing]
                return False
        return True

    @cached_property
    def _clocked(self) -> list[PlannedPair]:
        """The pairs of the policies that may depend on the clock."""
        policies, timeless = self.judge.bundle.policies, self.judge.timeless
        return [entry for entry in self.planned if policies[entry.pair.policy].id not in timeless]

    def _evaluate(self, entries: Sequence[PlannedPair], as_of: datetime) -> Verdicts:
        failing: dict[str, list[BlockingReason]] = {}
        judged = set()
        for entry, judgement in self._run_policies(entries, as_of):
            if judgement.applies:
                judged.add(entry.pair.subject)
                subject, policy = (
                    self.estate.subjects[entry.pair.subject],
                    self.judge.bundle.policies[entry.pair.policy].id,
                )
                if said := _reasons(judgement):
                    reasons = [
                        BlockingReason(policy, subject.reported_id, subject.judged_type, reason) for reason in said
                    ]
                    failing.setdefault(policy, []).extend(reasons)
        return Verdicts(failing, frozenset(judged))

    def _run_policies(self, entries: Sequence[PlannedPair], as_of: datetime) -> list[tuple[PlannedPair, Judgement]]:
        asked = [entry for entry in entries if not entry.unknowns]
        work = EvaluationRequest(
            bundle=self.judge.bundle,
            snapshot=replace(self.estate.view),  # values that policies cached in it can depend on the clock
            subjects=[subject.document for subject in self.estate.subjects],
            document=self.estate.document,
            pairs=[entry.pair for entry in asked],
            parameters=self.judge.parameters,
            as_of=as_of,
            made=self._made,
            **mark_for_bundle(self.judge.bundle, self.estate)._asdict(),
        )
        decided = [(entry, Judgement(unknowns=entry.unknowns)) for entry in entries if entry.unknowns]
        return [*decided, *zip(asked, run_engine(work), strict=True)]


def _reasons(judgement: Judgement) -> Sequence[Denial | Unknown]:
    if judgement.error is not None:
        return [Unknown(msg=f"the policy failed with an error: {judgement.error}")]
    return judgement.denials or judgement.unknowns


def _is_one(judged: TargetType, subject: Resource) -> bool:
    """Check whether a subject certainly meets an entry of `judges`: its type, and a value at every pointer."""
    return lowered(judged.type) == subject.judged_type and all(
        any(_is_equal(value_at(subject.document, pointer), value) for value in allowed)
        for pointer, allowed in judged.where.items()
    )


def _is_equal(found: object, wanted: object) -> bool:
    if isinstance(found, str) and isinstance(wanted, str):
        return lowered(found) == lowered(wanted)
    return type(found) is type(wanted) and found == wanted
