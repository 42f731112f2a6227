"""The impact of other policies or parameters on the findings of a stored run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import AwareDatetime

from policyeng.audit.diff.comparison import compare_states
from policyeng.audit.diff.inputs import Comparison, Flip, State, Stored, evaluate_state
from policyeng.audit.diff.report import flip_words, problem_item
from policyeng.audit.records import AuditRun, History
from policyeng.bundle import Bundle
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError
from policyeng.models import BundleRef, Evaluation, Exemption, JsonObject, Outcome, Problem
from policyeng.models.validated import ValidatedModel
from policyeng.ownership import OWNER_TAG
from policyeng.report.context import owners_of
from policyeng.report.escaping import fold, markdown_code, markdown_text, table, visible
from policyeng.report.forms import table_forms
from policyeng.report.layout import BLANK, Line, finding_head, heading, labelled
from policyeng.report.phrases import count, format_name, problem_sentence, shorten_id, to_the_second

#: At most so many flips are listed one by one; the counts are of all.
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
    exemptions = before.options.exemptions if proposed.exemptions is None else proposed.exemptions
    after = replace(before, bundle=proposed.bundle)
    return after.with_options(parameters=proposed.parameters, exemptions=exemptions)


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


_TITLES = ("newly failing", "newly passing", "newly undecided", "judged no more", "otherwise")
_NO_OWNER = "(no owner)"
#: How many flips the text names; the other forms have more.
_NAMED = 20


def _lines(impact: Impact, width: int) -> Iterator[Line]:
    """Yield the counts by policy and by owner, and the most severe flips."""
    yield from heading(visible(f"{impact.estate}, run {impact.run} of {to_the_second(impact.as_of)}"))
    for title, tallies in (("policy", impact.by_policy), ("owner", impact.by_owner)):
        if tallies:
            yield from _table(title, tallies)
            yield BLANK
    failing = [one for one in impact.listed if one.shift == "newly failing"]
    for one in sorted(failing, key=lambda one: -one.flip.finding.severity.rank)[:_NAMED]:
        yield from _render_shift(one)
    if len(failing) > _NAMED or impact.omitted:
        yield (("  and more, which --format csv and json list", "dim"),)
    if failing:
        yield BLANK
    for problem in impact.problems:
        yield from labelled(problem.level, problem_sentence(problem), width, indent=2)
    for label, bundle in (("was", impact.was), ("would be", impact.would_be)):
        yield from labelled(label, visible(f"{format_name(bundle)} ({bundle.digest[:12]})"), width, indent=2)
    yield from labelled("in all", in_all(impact), width, indent=2)
    yield BLANK


def _table(title: str, tallies: Sequence[FlipCounts]) -> Iterator[Line]:
    names = [_name(title, tally) for tally in tallies]
    width = max(len(title), *map(len, names))
    yield ((f"  {title:<{width}}  {'  '.join(_TITLES)}", "dim"),)
    for name, tally in zip(names, tallies, strict=True):
        cells = (f"{number or '-':>{len(one)}}" for one, number in zip(_TITLES, _numbers(tally), strict=True))
        yield ((f"  {name:<{width}}  {'  '.join(cells)}", ""),)


def _name(title: str, tally: FlipCounts) -> str:
    return visible(tally.name) or (_NO_OWNER if title == "owner" else "")


def _numbers(tally: FlipCounts) -> tuple[int, ...]:
    return tally.failing, tally.passing, tally.undecided, tally.unjudged, tally.otherwise


def _render_shift(one: Shifted) -> Iterator[Line]:
    finding = one.flip.finding
    words = f"  {shorten_id(finding.resource)}, {visible(one.part)}: {flip_words(one.flip)}: {visible(finding.title)}"
    yield *finding_head(finding, lead="  "), (words, "")


def in_all(impact: Impact) -> str:
    """Return the counts of a run as a sentence."""
    words = [f"{number} {title}" for title, number in zip(_TITLES, _numbers(impact.total), strict=True) if number]
    return f"{', '.join(words) or 'nothing would change'}, in {count(impact.parts, 'part')}"


def _markdown(impact: Impact) -> str:
    return "\n".join(f"{part}\n" for part in _parts(impact))


def _parts(impact: Impact) -> Iterator[str]:
    """Yield tables by policy and by owner, with folded flips."""
    yield f"## {markdown_text(impact.estate)}, run {impact.run}: {in_all(impact)}\n"
    for title, tallies in (("policy", impact.by_policy), ("owner", impact.by_owner)):
        rows = ([markdown_text(_name(title, tally)), *map(str, _numbers(tally))] for tally in tallies)
        yield f"{table((title.capitalize(), *map(str.capitalize, _TITLES)), rows)}\n"
    if impact.listed:
        rows = ([one.shift, *map(markdown_code, _cells(one)[2:])] for one in impact.listed)
        more = f", and {impact.omitted} more" if impact.omitted else ""
        titles = ("Shift", "Severity", "Policy", "Owner", "Part", "Resource", "Flip")
        yield f"{fold(f'{len(impact.listed)} findings{more}', table(titles, rows))}\n"
    yield from map(problem_item, impact.problems)


def _cells(one: Shifted) -> list[str]:
    finding = one.flip.finding
    where = [one.owner or _NO_OWNER, one.part, finding.resource]
    return [one.shift, finding.title, str(finding.severity), finding.policy, *where, flip_words(one.flip)]


def _rows(impact: Impact) -> Iterator[Sequence[str]]:
    return ([impact.estate, str(impact.run), *_cells(one)] for one in impact.listed)


_COLUMNS = ("estate", "run", "shift", "title", "severity", "policy", "owner", "part", "resource", "flip")
FORMS = table_forms("impacts", _lines, _markdown, _COLUMNS, _rows)
