"""The answer for a class of workloads: a witness, or the minimal conflicts, and their dates."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Literal
from xml.etree.ElementTree import Element, SubElement

import orjson

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.cases import STATED
from policyeng.bundle.header import WORKSPACE
from policyeng.bundle.moments import PossibleSpan, day, describe_spans, moments, samples, spans
from policyeng.errors import EngineError
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.evaluation.pointers import has_value, overlap
from policyeng.facts.ids import workspace_of
from policyeng.models import Denial, JsonObject, Outcome, Snapshot
from policyeng.parsing.json_pointer import escaped
from policyeng.report.junit import add_case, junit_text, set_counts
from policyeng.report.phrases import count
from policyeng.testing.observed_reads import observe
from policyeng.testing.reports import bundle_object, text_of_lines
from policyeng.verify.generators.estates import EstateGenerator as DrawnEstates
from policyeng.verify.generators.vocabulary import Words
from policyeng.verify.satisfiability.classes import (
    REMOVED,
    Assignment,
    ClassEstates,
    EstateEdit,
    Expected,
    WorkloadClass,
    described,
)
from policyeng.verify.satisfiability.search import (
    BlockingReason,
    EstateSearch,
    Evaluator,
    Tried,
    find_smallest_hitting_sets,
)

#: Fields that identify a resource; no policy requires other values.
_KEPT = ("/id", "/type", "/name")
_MOST_VALUES, _MOST_CONSTANTS = 12, 6
#: The maximum number of additional snapshots, and how often their denials are used for more.
_MOST, _ROUNDS = 4000, 3
#: The candidate values by place of a resource: descriptions and edits.
_Places = dict[tuple[str, str], dict[str, object]]


@dataclass
class Extension:
    """The values that were tried beyond the choices of a class.

    Attributes:
        choices: the additional choices, such as `workspace /tags/owner`, in order.
        begun: how many snapshots they were added to: one for each minimal set of failing policies.
        tried: the number of evaluated snapshots.
        left_out: the number of values that were not tried, because there would be too many snapshots.
    """

    choices: list[str] = field(default_factory=list)
    begun: int = 0
    tried: int = 0
    left_out: int = 0


def extend(search: EstateSearch) -> Extension:
    """Try what the denials expect on the snapshots that fail least, until one passes or there are no new values."""
    source, extension = _Source(search.estates), Extension()
    bases, places = search.least(), _Places()
    before = len(search.tried)
    for _ in range(_ROUNDS):
        known = {place: len(values) for place, values in places.items()}
        for tried in search.least():
            source.collect(tried, places)
        if {place: len(values) for place, values in places.items()} == known:
            break
        taken, extension.left_out = _limit_places(places, len(bases))
        extension.choices = [f"{stem} {pointer}" for stem, pointer in taken]
        seen = {_key(tried.assignment) for tried in search.tried}
        search.walk(edited for edited in _combine_values(bases, taken) if _key(edited) not in seen)
        if search.is_possible:
            break
    extension.begun, extension.tried = len(bases), len(search.tried) - before
    return extension


def _key(assignment: Assignment) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(assignment.chosen.items()))


def _combine_values(bases: Sequence[Tried], places: _Places) -> Iterator[Assignment]:
    """Yield each combination of values, those with the fewest changes first."""
    offered = [[None, *values.items()] for values in places.values()]
    combinations = sorted(product(*offered), key=lambda chosen: sum(value is not None for value in chosen))
    for chosen in combinations:
        for base in bases:
            assignment = base.assignment
            for (stem, pointer), value in zip(places, chosen, strict=True):
                if value is not None and stem in assignment.stems:
                    assignment = assignment.edited(f"{stem} {pointer}", value[0], EstateEdit(stem, pointer, value[1]))
            yield assignment


def _limit_places(places: _Places, bases: int) -> tuple[_Places, int]:
    """Return the places with as many values as can be tried, and the number of values left out."""
    kept = {place: list(values.items()) for place, values in places.items()}
    left_out = 0
    while bases * prod(len(values) + 1 for values in kept.values()) > _MOST:
        longest = max(kept, key=lambda place: len(kept[place]))
        kept[longest].pop()
        left_out += 1
    return {place: dict(values) for place, values in kept.items() if values}, left_out


@dataclass(frozen=True)
class _Source:
    """The source of the values."""

    estates: ClassEstates

    @cached_property
    def _words(self) -> Mapping[str, Words]:
        return DrawnEstates(self.estates.bundle).vocabulary.words

    @cached_property
    def _policies(self) -> Mapping[str, Policy]:
        return {policy.id: policy for policy in self.estates.bundle.policies}

    def collect(self, tried: Tried, places: _Places) -> None:
        """Add what the reasons of a snapshot expect."""
        for policy, reasons in sorted(tried.failing.items()):
            for reason in reasons:
                for stem, pointer, values in self._expected_values(self._policies[policy], reason, tried.assignment):
                    known = places.setdefault((stem, pointer), {})
                    for value in values:
                        words = "removed" if value is REMOVED else orjson.dumps(value).decode()
                        if len(known) < _MOST_VALUES:
                            known.setdefault(words, value)

    def _expected_values(
        self, policy: Policy, reason: BlockingReason, assignment: Assignment
    ) -> Iterator[tuple[str, str, list[object]]]:
        pointers = (
            [reason.statement.path] if reason.statement.path else list(observe(self.estates.bundle, policy).pointers)
        )
        patches = [patch for patch in _patches(policy) if patch["path"] not in pointers]
        for pointer in (*pointers, *(patch["path"] for patch in patches)):
            identity = workspace_of(reason.resource) if pointer.startswith(WORKSPACE) else reason.resource
            if reason.target_type in ("workload", "approval") and not pointer.startswith(WORKSPACE):
                continue  # workloads are derived, and approvals are stated
            stem, own = self.estates.stem_of(assignment, identity or ""), pointer.removeprefix(WORKSPACE)
            if stem is not None and self._is_free(assignment, stem, own):
                yield stem, own, list(self._values(policy, reason, pointer, self.estates.standing(assignment, stem)))

    def _is_free(self, assignment: Assignment, stem: str, pointer: str) -> bool:
        """Check whether neither the class nor its choices set a place."""
        stated = [known for part in assignment.parts if stem in part.with_ for known in _list_leaves(part.with_[stem])]
        stated += [
            known
            for choice in self.estates.subject.choices.values()
            for holder, known, _ in choice.places()
            if holder == stem
        ]
        return (
            pointer.startswith("/")
            and "*" not in pointer
            and pointer not in _KEPT
            and not any(overlap(pointer, known) for known in stated)
        )

    def _values(self, policy: Policy, reason: BlockingReason, pointer: str, resource: JsonObject) -> Iterator[object]:
        yield from (patch["value"] for patch in _patches(policy) if patch["path"] == pointer and "value" in patch)
        if isinstance(reason.statement, Denial) and reason.statement.path == pointer:
            expected = reason.statement.expected
            yield from expected if isinstance(expected, list) else [] if expected is None else [expected]
            if isinstance(expected, list):
                yield expected
        words = self._words[policy.id]
        standing = words.standing.get(pointer, ())
        yield from standing
        yield from (True, False) if any(isinstance(value, bool) for value in standing) else ()
        yield from words.own[:_MOST_CONSTANTS]
        if has_value(resource, pointer.removeprefix(WORKSPACE)):
            yield REMOVED


def _patches(policy: Policy) -> list[JsonObject]:
    """Return the operations of a remediation that write a value."""
    patches = policy.header.remediation.patches if policy.header.remediation else ()
    return [step for entry in patches for step in entry.patch if step["op"] in ("add", "replace")]


def _list_leaves(patch: object, above: str = "") -> Iterator[str]:
    """Yield the JSON Pointers of the leaves of a merge patch."""
    if isinstance(patch, dict) and patch:
        for key, value in patch.items():
            yield from _list_leaves(value, f"{above}/{escaped(key)}")
    else:
        yield above


Status = Literal["possible", "impossible", "not judged"]


@dataclass(frozen=True)
class Remainder:
    """A snapshot that passes all but one of a conflicting set of policies, with all its failures."""

    policy: str
    assignment: Assignment
    failing: Mapping[str, Sequence[BlockingReason]]

    @property
    def reason(self) -> str:
        """The reason why it does not pass that policy, in one line."""
        return self.failing[self.policy][0].words


@dataclass(frozen=True)
class Conflict:
    """A minimal set of policies that no snapshot of the class passes together.

    Attributes:
        at: a moment at which they conflict.
        remainders: for each of the policies, in order, a snapshot that passes all the others.
    """

    at: datetime
    remainders: tuple[Remainder, ...]

    @property
    def policies(self) -> tuple[str, ...]:
        """The ids, sorted."""
        return tuple(remainder.policy for remainder in self.remainders)


@dataclass(frozen=True)
class Witness:
    """A snapshot of the class that passes every policy."""

    assignment: Assignment
    snapshot: Snapshot

    @cached_property
    def document(self) -> JsonObject:
        """Return the snapshot as a native document."""
        stated = {
            kind: [
                entry.model_dump(mode="json", by_alias=True, exclude_none=True)
                for entry in getattr(self.snapshot, kind)
            ]
            for kind in STATED
        }
        return {"snapshotVersion": 1, "resources": list(self.snapshot.resources), **stated}


@dataclass(frozen=True)
class SatisfiabilityResult:
    """The answer for a class.

    Attributes:
        spans: the periods in which it is possible and impossible, in order; a single one if only the clock was checked.
        endings: the reasons for the end of a possible period, by the beginning of the impossible one.
        conflicts: all minimal sets of conflicting policies, at the clock or in the next impossible period.
        tried: the number of evaluated snapshots.
        outside: how many combinations lack the resources of the class.
        extension: the values tried beyond the choices of the class; None if that was not needed.
    """

    subject: WorkloadClass
    as_of: datetime
    status: Status
    tried: int = 0
    outside: int = 0
    witness: Witness | None = None
    spans: tuple[PossibleSpan, ...] = ()
    endings: Mapping[datetime, tuple[str, ...]] | None = None
    conflicts: tuple[Conflict, ...] = ()
    extension: Extension | None = None

    @property
    def is_as_expected(self) -> bool:
        """Check whether it is possible, or impossible since the date that the class expects."""
        expected = self.subject.expected
        return (
            self.status != "impossible"
            if expected is None
            else self.status == "not judged" or _fits(expected, self.spans)
        )


def answer(
    subject: WorkloadClass,
    bundle: Bundle,
    as_of: datetime,
    parameters: Mapping[str, JsonObject] | None = None,
    *,
    timeline: bool = True,
) -> SatisfiabilityResult:
    """Search for a snapshot of a class that passes every policy of a bundle.

    Args:
        subject: the class.
        bundle: the active policies.
        as_of: the clock; the caller must consider the clock of the class.
        parameters: values that replace the defaults, by policy id.
        timeline: answer for all dates; otherwise only for the clock, which is faster.

    Raises:
        BundleError: the class does not fit the baselines and facts, or a snapshot of it cannot be evaluated.
        UsageError: a parameter does not exist or does not fit.
        EngineError: the bundle does not compile.
    """
    clock = as_of.astimezone(UTC)
    if all(policy.input_form != "policy" for policy in bundle.policies):  # they evaluate documents, not resources
        return SatisfiabilityResult(subject, clock, "not judged")
    estates, evaluator = ClassEstates(bundle, subject), Evaluator(bundle, parameters or {})
    known = moments(bundle, evaluator.parameters, estates.documents(), estates.types()) if timeline else []
    sampled = samples(known, clock) if timeline else [clock]
    search = EstateSearch(estates, evaluator, clock, sampled)
    search.walk(estates.assignments())
    if not search.tried:
        return SatisfiabilityResult(subject, clock, "not judged", outside=search.outside + search.unevaluated)
    extension = None if search.is_possible else extend(search)
    possible = [number not in search.open for number in range(len(sampled))]
    found = tuple(spans(sampled, possible, search.holds))
    broken = clock if not search.is_possible else _next_impossible(found, clock)
    return SatisfiabilityResult(
        subject,
        clock,
        "possible" if search.is_possible else "impossible",
        tried=len(search.tried),
        outside=search.outside + search.unevaluated,
        witness=_witness(search, parameters or {}) if search.is_possible else None,
        spans=found,
        endings=_list_endings(search, found),
        conflicts=_conflicts(search, broken) if broken else (),
        extension=extension,
    )


def _fits(expected: Expected, found: Sequence[PossibleSpan]) -> bool:
    last = found[-1]
    if expected.impossible == "always" or last.begins is None:
        return len(found) == 1 and not last.possible and expected.impossible == "always"
    return not last.possible and last.begins.date() == expected.impossible


def _next_impossible(found: Iterable[PossibleSpan], clock: datetime) -> datetime | None:
    return next((span.begins for span in found if span.begins and span.begins > clock and not span.possible), None)


def _witness(search: EstateSearch, parameters: Mapping[str, JsonObject]) -> Witness:
    """Return the first passing snapshot, evaluated again as by `policyeng check`.

    Raises:
        EngineError: it does not pass again.
    """
    tried = next(tried for tried, _ in search.survivors if not tried.failing)
    snapshot = search.estates.snapshot(tried.assignment)
    options = EvaluationOptions(search.as_of, parameters=parameters)
    evaluation = evaluate(search.evaluator.bundle, snapshot, options)
    failed = [finding.policy for finding in evaluation.findings if finding.outcome is not Outcome.PASS]
    if failed or evaluation.exit_code:
        raise EngineError(
            f"the witness does not pass `{', '.join(failed)}` a second time", place=(search.estates.place,)
        )
    return Witness(tried.assignment, snapshot)


def _list_endings(search: EstateSearch, found: Sequence[PossibleSpan]) -> dict[datetime, tuple[str, ...]]:
    endings = {}
    for span in found:
        if span.begins and not span.possible:
            before = span.begins - timedelta(seconds=1)
            reasons = [
                reason.brief
                for _, estate in search.survivors
                if estate.passes(before)
                for of_policy in estate.verdicts(span.begins, clocked_alone=True).failing.values()
                for reason in of_policy
            ]
            endings[span.begins] = tuple(dict.fromkeys(reasons))
    return endings


def _conflicts(search: EstateSearch, at: datetime) -> tuple[Conflict, ...]:
    if at == search.as_of:
        failing = [(tried.assignment, tried.failing) for tried in search.tried]
    else:
        failing = [(tried.assignment, verdicts) for tried, verdicts in search.failing_at(at)]
    sets = find_smallest_hitting_sets(frozenset(verdicts) for _, verdicts in failing)
    failing.sort(key=lambda entry: len(entry[1]))
    return tuple(
        Conflict(
            at,
            tuple(
                Remainder(policy, *next(entry for entry in failing if conflicting & entry[1].keys() == {policy}))
                for policy in sorted(conflicting)
            ),
        )
        for conflicting in sets
    )


#: The maximum number of reasons and sets in the text report; JSON has all of them.
_MOST_SHOWN = 3


@dataclass(frozen=True)
class SatisfiabilityRun:
    """The results for some classes.

    Attributes:
        profile: the profile of parameters.
        written: the file of the witness, by class.
        naming: the options that name the policies.
    """

    bundle: Bundle
    answers: Sequence[SatisfiabilityResult]
    profile: str | None
    written: Mapping[str, Path]
    seconds: float
    naming: Sequence[str] = ()

    @property
    def exit_code(self) -> int:
        """0 if every class is possible, 1 if one is not, 2 if there is no answer for one."""
        text = {answer.status for answer in self.answers}
        return 2 if "not judged" in text or not text else int("impossible" in text)


def as_text(run: SatisfiabilityRun) -> str:
    """Return the results as text."""
    return text_of_lines([*(line for answer in run.answers for line in (*_lines(answer, run), "")), _conclude(run)])


def _lines(answer: SatisfiabilityResult, run: SatisfiabilityRun) -> Iterator[str]:
    subject = answer.subject
    yield f"{subject.id}: {subject.title}"
    if answer.status == "not judged":
        yield "  not judged: no policy evaluates the resources of the class, in any of its snapshots"
        return
    yield f"  {answer.status} as of {answer.as_of:%Y-%m-%dT%H:%M:%SZ}; {describe_spans(answer.spans)}"
    if subject.expected and not run.profile:  # expectations are about the defaults
        text = "as the class expects" if answer.is_as_expected else f"the class expects {_expectation(answer)}"
        yield f"  {text}: {' '.join(subject.expected.because.split())}"
    for begins, reasons in (answer.endings or {}).items():
        yield from (f"    {day(begins)}  {reason}" for reason in reasons[:_MOST_SHOWN])
        if len(reasons) > _MOST_SHOWN:
            yield f"    and {count(len(reasons) - _MOST_SHOWN, 'reason')} more"
    if answer.witness:
        yield f"  witness: {described(answer.witness.assignment)}"
        if subject.id in run.written:
            yield f"    policyeng check {run.written[subject.id]} --as-of {answer.as_of.isoformat()}{_options(run)}"
    if answer.conflicts:
        yield from _conflicting(answer)
    yield f"  {_describe_search(answer)}"


def _options(run: SatisfiabilityRun) -> str:
    """Return the options with which `check` evaluates as this run did."""
    options = [*run.naming, *(["--profile", run.profile] if run.profile else [])]
    return f" {shlex.join(options)}" if options else ""


def _expectation(answer: SatisfiabilityResult) -> str:
    since = answer.subject.expected.impossible if answer.subject.expected else ""
    return "that it is always impossible" if since == "always" else f"that it is impossible since {since}"


def _conflicting(answer: SatisfiabilityResult) -> Iterator[str]:
    first, *others = answer.conflicts
    when = "" if first.at == answer.as_of else f" from {day(first.at)} on"
    yield f"  the fewest policies that conflict{when}: {', '.join(first.policies)}"
    for rest in first.remainders:
        alone = len(first.policies) == 1
        text = f"no snapshot passes {rest.policy}, such as one" if alone else f"of these, all but {rest.policy} pass"
        yield f"    {text} with {described(rest.assignment)}"
        yield f"      {rest.reason}"
        if also := sorted(rest.failing.keys() - {rest.policy}):
            yield f"      it also fails {', '.join(also)}"
    if others:
        sets = " · ".join(", ".join(one.policies) for one in others[:_MOST_SHOWN])
        more = f" · and {len(others) - _MOST_SHOWN} more" if len(others) > _MOST_SHOWN else ""
        yield f"  as few conflict in {count(len(others), 'other set')}: {sets}{more}"


def _describe_search(answer: SatisfiabilityResult) -> str:
    choices, further = answer.subject.choices, answer.extension
    if all(span.possible for span in answer.spans):
        text = f"judged {count(answer.tried, 'estate')}, until each date had a witness"
    else:
        text = f"exact over {count(answer.tried - (further.tried if further else 0), 'estate')}"
    text += f"; {count(len(choices), 'choice')}: {', '.join(choices)}" if choices else "; without a choice"
    if answer.outside:
        text += f"; {count(answer.outside, 'combination')} lack the resources of the class, or no policy evaluates them"
    if further and further.choices:
        text += f"; and over {further.tried} more: {count(further.begun, 'estate')} that fail least, with what denials"
        text += f" ask for at {', '.join(further.choices)}"
        text += f" ({count(further.left_out, 'value')} left out)" if further.left_out else ""
    return text


def _conclude(run: SatisfiabilityRun) -> str:
    impossible = [answer for answer in run.answers if answer.status == "impossible"]
    expected = [one for one in impossible if one.subject.expected and one.is_as_expected and not run.profile]
    unevaluated = [answer for answer in run.answers if answer.status == "not judged"]
    possible = len(run.answers) - len(impossible) - len(unevaluated)
    text = f"{len(run.answers)} {'class' if len(run.answers) == 1 else 'classes'}: {possible} possible"
    text += f", {len(impossible)} impossible" if impossible else ""
    text += f" ({len(expected)} as expected)" if expected else ""
    text += f", {len(unevaluated)} not judged" if unevaluated else ""
    profile = f", profile {run.profile}" if run.profile else ""
    return f"exit {run.exit_code}: {text}; {count(len(run.bundle.policies), 'policy')}{profile}, {run.seconds:.1f} s"


def as_json(run: SatisfiabilityRun) -> str:
    """Return the results as a JSON object."""
    document = {
        "bundle": bundle_object(run.bundle),
        "profile": run.profile,
        "exitCode": run.exit_code,
        "seconds": round(run.seconds, 3),
        "classes": [_answer(answer, run) for answer in run.answers],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def _answer(answer: SatisfiabilityResult, run: SatisfiabilityRun) -> JsonObject:
    subject, further, witness = answer.subject, answer.extension, answer.witness
    written = run.written.get(subject.id)
    return {
        "id": subject.id,
        "title": subject.title,
        "source": subject.source,
        "asOf": answer.as_of.isoformat(),
        "status": answer.status,
        "expected": subject.expected.model_dump(mode="json") if subject.expected else None,
        "asExpected": None if run.profile else answer.is_as_expected,
        "timeline": [
            {
                "from": _time(span.begins),
                "possible": span.possible,
                "because": list((answer.endings or {}).get(span.begins, ())) if span.begins else [],
            }
            for span in answer.spans
        ],
        "witness": {
            "choices": dict(witness.assignment.chosen),
            "file": str(written) if written else None,
            "snapshot": witness.document,
        }
        if witness
        else None,
        "conflicts": [_conflict(conflict) for conflict in answer.conflicts],
        "estates": answer.tried,
        "outside": answer.outside,
        "choices": list(subject.choices),
        "further": {"choices": further.choices, "estates": further.tried, "leftOut": further.left_out}
        if further
        else None,
    }


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _conflict(conflict: Conflict) -> JsonObject:
    return {
        "asOf": conflict.at.isoformat(),
        "policies": list(conflict.policies),
        "withoutOne": [
            {
                "policy": rest.policy,
                "choices": dict(rest.assignment.chosen),
                "failing": {policy: [reason.words for reason in text] for policy, text in sorted(rest.failing.items())},
            }
            for rest in conflict.remainders
        ],
    }


def as_junit(run: SatisfiabilityRun) -> str:
    """Return the results as one JUnit suite with a test case for each class; impossible classes fail."""
    root = Element("testsuites", name="policyeng verify")
    suite = SubElement(root, "testsuite", name="satisfiable", time=f"{run.seconds:.3f}")
    for answer in run.answers:
        lines = list(_lines(answer, run))[1:]
        text, result = "\n".join(lines), {"impossible": "failure", "not judged": "error"}.get(answer.status, "")
        case = add_case(suite, "satisfiable", answer.subject.id, result, lines[0].strip(), text)
        if not result:
            SubElement(case, "system-out").text = text
    set_counts(suite, "failures", "errors")
    return junit_text(root)
