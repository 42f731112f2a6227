"""The impact of other policies or parameters on the findings of a stored run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import AwareDatetime

from policyeng.audit.diff.comparison import compare_states
from policyeng.audit.diff.inputs import State, Stored, evaluate_state
from policyeng.audit.diff.records import Comparison, Flip
from policyeng.audit.records import AuditRun, History
from policyeng.bundle import Bundle
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError
from policyeng.models import BundleRef, Evaluation, Exemption, JsonObject, Outcome, Problem
from policyeng.models.validated import ValidatedModel
from policyeng.report.context import OWNER_TAG, owners_of

#: No more flips than these are listed one by one; the counts are of all.
LISTED = 1000

Shift = Literal["newly failing", "newly passing", "newly undecided", "judged no more", "otherwise changed"]


class Shifted(ValidatedModel):
    """A flip that the proposed policies cause.

    Attributes:
        owner: of the resource; empty without a tag.
    """

    part: str
    owner: str
    shift: Shift
    flip: Flip


class FlipCounts(ValidatedModel):
    """The numbers of flips of a policy or an owner."""

    name: str
    failing: int = 0
    passing: int = 0
    undecided: int = 0
    unjudged: int = 0
    otherwise: int = 0


class Impact(ValidatedModel):
    """The impact on one run.

    Attributes:
        total: the number of each shift. `newly failing` is a new failure without exemption, `newly passing` a new pass,
            `newly undecided` a new unknown or error, and `judged no more` a finding that no policy would have.
        by_policy, by_owner: the counts, most new failures first; the empty name is for no owner.
        listed: the first flips; `omitted` is the number of others.
        problems: of parts that could not be evaluated again.
    """

    estate: str
    run: int
    as_of: AwareDatetime
    was: BundleRef
    would_be: BundleRef
    parts: int = 0
    total: FlipCounts
    by_policy: tuple[FlipCounts, ...] = ()
    by_owner: tuple[FlipCounts, ...] = ()
    listed: tuple[Shifted, ...] = ()
    omitted: int = 0
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposed:
    """The proposed policies, parameters and exemptions; None leaves those of each run."""

    bundle: Bundle
    parameters: Mapping[str, JsonObject]
    exemptions: Sequence[Exemption] | None = None
    owner_tag: str = OWNER_TAG
    opa: OpaOptions | None = None


def evaluate_impact(history: History, run: AuditRun, proposed: Proposed) -> Impact:
    """Evaluate the parts of a run with other policies, one by one, at the clock of the run.

    Raises:
        UsageError: a parameter is invalid.
        EngineError: the bundle does not compile, or the OPA server does not answer.
    """
    stored, counted = Stored(history, run, proposed.opa), _Counted()
    for part in history.parts(run):
        try:
            before, found = stored.state(part.name)
        except UsageError as error:
            counted.problems.append(Problem(level="warning", message=str(error), place=part.name))
            continue
        after = _with(before, proposed)
        later = evaluate_state(after)
        comparison = compare_states(before, after, found=(found, later), with_causes=False)
        counted.problems += _new_errors(found, later, part.name)
        counted.add(part.name, comparison, owners_of(before.snapshot, proposed.owner_tag))
    bundle = proposed.bundle
    would_be = BundleRef(name=bundle.name, revision=bundle.revision, digest=bundle.digest)
    return counted.impact(run, would_be)


def _with(before: State, proposed: Proposed) -> State:
    exemptions = before.exemptions if proposed.exemptions is None else proposed.exemptions
    return replace(before, bundle=proposed.bundle, parameters=proposed.parameters, exemptions=exemptions)


def _new_errors(before: Evaluation, after: Evaluation, part: str) -> Iterator[Problem]:
    for problem in after.problems:
        if problem.level == "error" and problem not in before.problems:
            place = f"{part}: {problem.place}".removesuffix(": ")
            yield problem.model_copy(update={"message": f"after: {problem.message}", "place": place})


@dataclass
class _Counted:
    """The counts of all parts."""

    parts: int = 0
    total: Counter[Shift] = field(default_factory=Counter)
    by_policy: dict[str, Counter[Shift]] = field(default_factory=dict)
    by_owner: dict[str, Counter[Shift]] = field(default_factory=dict)
    listed: list[Shifted] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def add(self, part: str, comparison: Comparison, owners: Mapping[str, str]) -> None:
        """Add a part."""
        self.parts += 1
        for flip in comparison.flips:
            owner, shift = owners.get(flip.finding.resource, ""), shift_of(flip)
            self.total[shift] += 1
            self.by_policy.setdefault(flip.finding.policy, Counter())[shift] += 1
            self.by_owner.setdefault(owner, Counter())[shift] += 1
            if len(self.listed) < LISTED:
                self.listed.append(Shifted(part=part, owner=owner, shift=shift, flip=flip))

    def impact(self, run: AuditRun, would_be: BundleRef) -> Impact:
        """Return the impact."""
        return Impact(
            estate=run.estate,
            run=run.number,
            as_of=run.as_of,
            was=run.bundle,
            would_be=would_be,
            parts=self.parts,
            total=_count("", self.total),
            by_policy=_tallies(self.by_policy),
            by_owner=_tallies(self.by_owner),
            listed=tuple(self.listed),
            omitted=self.total.total() - len(self.listed),
            problems=tuple(self.problems),
        )


def shift_of(flip: Flip) -> Shift:
    """Return the kind of a flip."""
    failed = flip.before is Outcome.FAIL and not flip.exempt_before
    if flip.after is Outcome.FAIL and not flip.exempt_after:
        return "otherwise changed" if failed else "newly failing"
    if flip.after is None:
        return "judged no more"
    if flip.after is Outcome.PASS:
        return "newly passing"
    undecided = (Outcome.UNKNOWN, Outcome.ERROR)
    if flip.after in undecided and flip.before not in undecided:
        return "newly undecided"
    return "otherwise changed"


def _count(name: str, counts: Counter[Shift]) -> FlipCounts:
    return FlipCounts(
        name=name,
        failing=counts["newly failing"],
        passing=counts["newly passing"],
        undecided=counts["newly undecided"],
        unjudged=counts["judged no more"],
        otherwise=counts["otherwise changed"],
    )


def _tallies(counted: Mapping[str, Counter[Shift]]) -> tuple[FlipCounts, ...]:
    tallies = [_count(name, counts) for name, counts in counted.items()]
    return tuple(sorted(tallies, key=lambda tally: (-tally.failing, -tally.undecided, tally.name)))


def exceeds(impacts: Sequence[Impact], most: int | None) -> bool:
    """Check whether a run would have had more new failures than allowed."""
    return most is not None and any(impact.total.failing > most for impact in impacts)
