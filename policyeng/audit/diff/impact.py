"""What other policies or parameters would have found in a run that is stored, beside what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import AwareDatetime

from policyeng.audit.diff.comparison import compared
from policyeng.audit.diff.inputs import State, Stored, judged
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
    """A flip that the other policies would have made.

    Attributes:
        owner: whose the resource is; empty where no tag says so.
    """

    part: str
    owner: str
    shift: Shift
    flip: Flip


class FlipCounts(ValidatedModel):
    """How many flips of each sort there are under a name, which is a policy's id or an owner."""

    name: str
    failing: int = 0
    passing: int = 0
    undecided: int = 0
    unjudged: int = 0
    otherwise: int = 0


class Impact(ValidatedModel):
    """What one run would have found.

    Attributes:
        total: how often each shift would have been. `newly failing` is a failure without an exemption where there was
            none; `newly passing` a pass of what did not; `newly undecided` an unknown or an error of what was decided;
            `judged no more` is what no policy would have said.
        by_policy, by_owner: the counts, most new failures first; the owner without a name is nobody.
        listed: the first flips, one by one; `omitted` says how many there are besides.
        problems: parts that could not be judged again, and why.
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
    """What is tried on the history; what is None stays as it was in each run."""

    bundle: Bundle
    parameters: Mapping[str, JsonObject]
    exemptions: Sequence[Exemption] | None = None
    owner_tag: str = OWNER_TAG
    opa: OpaOptions | None = None


def impact_on(history: History, run: AuditRun, proposed: Proposed) -> Impact:
    """Judge the parts of a run with other policies, one part after the other, at the clock of the run.

    Raises:
        UsageError: a parameter does not fit.
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
        later = judged(after)
        comparison = compared(before, after, found=(found, later), with_causes=False)
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
    """What is known while the parts go by."""

    parts: int = 0
    total: Counter[Shift] = field(default_factory=Counter)
    by_policy: dict[str, Counter[Shift]] = field(default_factory=dict)
    by_owner: dict[str, Counter[Shift]] = field(default_factory=dict)
    listed: list[Shifted] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def add(self, part: str, comparison: Comparison, owners: Mapping[str, str]) -> None:
        """Take one part."""
        self.parts += 1
        for flip in comparison.flips:
            owner, shift = owners.get(flip.finding.resource, ""), shift_of(flip)
            self.total[shift] += 1
            self.by_policy.setdefault(flip.finding.policy, Counter())[shift] += 1
            self.by_owner.setdefault(owner, Counter())[shift] += 1
            if len(self.listed) < LISTED:
                self.listed.append(Shifted(part=part, owner=owner, shift=shift, flip=flip))

    def impact(self, run: AuditRun, would_be: BundleRef) -> Impact:
        """All of it."""
        return Impact(
            estate=run.estate,
            run=run.number,
            as_of=run.as_of,
            was=run.bundle,
            would_be=would_be,
            parts=self.parts,
            total=_tally("", self.total),
            by_policy=_tallies(self.by_policy),
            by_owner=_tallies(self.by_owner),
            listed=tuple(self.listed),
            omitted=self.total.total() - len(self.listed),
            problems=tuple(self.problems),
        )


def shift_of(flip: Flip) -> Shift:
    """Of what sort a flip is."""
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


def _tally(name: str, counts: Counter[Shift]) -> FlipCounts:
    return FlipCounts(
        name=name,
        failing=counts["newly failing"],
        passing=counts["newly passing"],
        undecided=counts["newly undecided"],
        unjudged=counts["judged no more"],
        otherwise=counts["otherwise changed"],
    )


def _tallies(counted: Mapping[str, Counter[Shift]]) -> tuple[FlipCounts, ...]:
    tallies = [_tally(name, counts) for name, counts in counted.items()]
    return tuple(sorted(tallies, key=lambda tally: (-tally.failing, -tally.undecided, tally.name)))


def exceeds(impacts: Sequence[Impact], most: int | None) -> bool:
    """Whether a run would have had more new failures than may be."""
    return most is not None and any(impact.total.failing > most for impact in impacts)
