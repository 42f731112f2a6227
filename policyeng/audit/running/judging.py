"""One part: read, brought into the form in which it is stored, judged as it is stored, and made ready to be kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from policyeng.audit.collecting.parts import Collected, Source, read
from policyeng.audit.running.holding import Basis
from policyeng.audit.store.contents import packed
from policyeng.audit.store.drafting import Entry
from policyeng.audit.store.kept_evaluations import kept_evaluation, standing_in
from policyeng.audit.store.kept_snapshots import kept_snapshot, snapshot_of
from policyeng.bundle import Bundle, Policy
from policyeng.engines import OpaOptions, judge
from policyeng.errors import InputError
from policyeng.evaluation import EvaluationOptions, Prepared, concluded, evaluate, prepare
from policyeng.evaluation.findings import findings_of, order_of
from policyeng.exemptions import in_force_of
from policyeng.in_force import Held
from policyeng.models import Evaluation, Exemption, Finding, JsonObject, Outcome, Problem, Severity, Snapshot, Summary
from policyeng.sources.problems import problem_of
from policyeng.sources.witness import Asked

#: How the place of what is said of an exemption begins.
_EXEMPTION = "exemption "


@dataclass(frozen=True, slots=True)
class Terms:
    """What every part of a run is judged with, beside the policies."""

    exemptions: Sequence[Exemption]
    parameters: Mapping[str, JsonObject]
    as_of: datetime
    engine: str
    opa: OpaOptions | None
    fail_on: Severity
    strict_unknown: bool

    def with_problems(self, problems: Sequence[Problem]) -> EvaluationOptions:
        """The same for one snapshot, with what went wrong on the way to it."""
        return EvaluationOptions(
            self.as_of,
            self.exemptions,
            self.engine,
            self.opa,
            fail_on=self.fail_on,
            strict_unknown=self.strict_unknown,
            problems=problems,
        )


@dataclass(frozen=True, slots=True)
class JudgedPart:
    """What came of a part.

    Attributes:
        entry: ready to be kept; None when nothing in the part can be judged.
        problems: those of the run.
        exempting: place and message of what the part says of exemptions; None when it was not judged.
        basis: on what it rests, but for what is the same for all parts; None when it was not judged.
    """

    name: str
    entry: Entry | None
    summary: Summary
    problems: tuple[Problem, ...] = ()
    exempting: frozenset[tuple[str, str]] | None = None
    basis: Basis | None = None


def terms_of(in_force: Held, as_of: datetime, engine: str, opa: OpaOptions | None) -> Terms:
    """What every part is judged with, at a clock; one without a zone is in UTC."""
    moment = as_of.astimezone(UTC) if as_of.tzinfo else as_of.replace(tzinfo=UTC)
    settings = in_force.settings
    return Terms(
        in_force.exemptions, in_force.parameters, moment, engine, opa, settings.fail_on, settings.strict_unknown
    )


class Before(NamedTuple):
    """The evaluation of a part at another clock, and the ids of the policies that are evaluated again at this one."""

    evaluation: Evaluation
    again: Set[str]


@dataclass(frozen=True, slots=True)
class Resumed:
    """A part that is as it was, of which some policies have to be judged again.

    Attributes:
        asked: what was asked of files to read it.
        before: what was found of it.
    """

    source: Source
    asked: Sequence[Asked]
    before: Before


def read_and_judged(source: Source | Collected | Resumed, bundle: Bundle, terms: Terms) -> JudgedPart:
    """Read a part, if that has not been done, and judge it, or what of it has to be judged again.

    Raises:
        EngineError: the bundle does not compile, or the engine does not answer.
    """
    if not isinstance(source, Resumed):
        return judged_part(read(source, bundle.wanted), bundle, terms)
    part = read(source.source, bundle.wanted)
    is_same = list(part.asked) == list(source.asked)  # it may have changed since it was compared
    return judged_part(part, bundle, terms, source.before if is_same else None)


def judged_part(part: Collected, bundle: Bundle, terms: Terms, before: Before | None = None) -> JudgedPart:
    """Evaluate a part that was read; of one that was evaluated before only the policies that read the clock.

    Raises:
        EngineError: the bundle does not compile, or the engine does not answer.
    """
    if part.snapshot is None:
        fault = any(problem.level == "error" for problem in part.problems)
        return unread(part.name, part.problems) if fault else JudgedPart(part.name, None, Summary(), (*part.problems,))
    try:
        kept = kept_snapshot(part.snapshot)
    except InputError as error:
        return unread(part.name, [problem_of(InputError(error.message, place=(part.name,), remedy=error.remedy))])
    snapshot = snapshot_of(kept.contents[kept.digest], kept.contents)
    prepared, given = prepare(bundle, snapshot, terms.parameters), terms.with_problems(part.problems)
    part_of = prepared.only(lambda policy, _: policy.id in before.again) if before else prepared
    found = findings_of(part_of, judge(part_of.work(given.moment, given.threads), given.engine, given.opa))
    again = _clocked(prepared, found) | (before.again if before else frozenset())
    if before:
        kept_findings = (one for one in before.evaluation.findings if one.policy not in before.again)
        found = sorted((*kept_findings, *found), key=order_of)
    evaluation, exempting = apart(concluded(prepared, found, given))
    stored = kept_evaluation(evaluation, len(part.problems))
    entry = Entry(
        name=part.name,
        snapshot=kept.digest,
        evaluation=stored.digest,
        contents={digest: packed(content) for digest, content in (*kept.contents.items(), *stored.contents.items())},
        standing=standing_in(stored.contents[stored.findings]),
        exit_code=evaluation.exit_code,
        summary=evaluation.summary.model_dump_json(by_alias=True),
    )
    in_force, used = ids_in_force(terms, bundle.policies), used_of(terms, bundle, exempting)
    basis = Basis("", part.asked, in_force, sorted(again), used)
    return JudgedPart(part.name, entry, evaluation.summary, (), exempting, basis)


def _clocked(prepared: Prepared, found: Iterable[Finding]) -> frozenset[str]:
    """The ids of the policies whose findings another clock may change: errors may come from a want of time."""
    bundle = prepared.bundle
    reading = {entry.pair.policy for entry in prepared.planned if bundle.clocked[entry.pair.policy]}
    failing = (finding.policy for finding in found if finding.outcome is Outcome.ERROR)
    return frozenset((*(bundle.policies[number].id for number in reading), *failing))


def ids_in_force(terms: Terms, policies: Sequence[Policy]) -> tuple[str, ...]:
    """The ids of the exemptions that are in force at the clock."""
    return tuple(one.id for one in in_force_of(terms.exemptions, policies, terms.as_of)[0])


def used_of(terms: Terms, bundle: Bundle, exempting: Collection[tuple[str, str]]) -> tuple[str, ...]:
    """The ids of the exemptions that cover something in a part, by what it says of exemptions."""
    idle = {place for place, _ in exempting}
    in_force, _ = in_force_of(terms.exemptions, bundle.policies, terms.as_of)
    return tuple(sorted(entry.id for entry in in_force if f"{_EXEMPTION}{entry.id}" not in idle))


def judged(
    snapshot: Snapshot, bundle: Bundle, terms: Terms, problems: Sequence[Problem]
) -> tuple[Evaluation, frozenset[tuple[str, str]]]:
    """Judge a snapshot as it is stored, so that it can be judged again, and what that says of exemptions.

    What is said of an exemption is said of the run and not of each part: one that covers nothing here covers something
    in another.
    """
    evaluation = evaluate(
        bundle,
        snapshot,
        as_of=terms.as_of,
        exemptions=terms.exemptions,
        parameters=terms.parameters,
        engine=terms.engine,
        opa=terms.opa,
        fail_on=terms.fail_on,
        strict_unknown=terms.strict_unknown,
        problems=problems,
    )
    return apart(evaluation)


def apart(evaluation: Evaluation) -> tuple[Evaluation, frozenset[tuple[str, str]]]:
    """An evaluation without what it says of exemptions, and that."""
    said = [problem for problem in evaluation.problems if problem.place.startswith(_EXEMPTION)]
    rest = tuple(problem for problem in evaluation.problems if not problem.place.startswith(_EXEMPTION))
    exempting = frozenset((problem.place, problem.message) for problem in said)
    return evaluation.model_copy(update={"problems": rest}), exempting


def unread(name: str, problems: Sequence[Problem]) -> JudgedPart:
    """A part that could not be read, which is a problem of the run."""
    counts = Summary()
    entry = Entry(name, "", "", {}, [], 2, counts.model_dump_json(by_alias=True))
    return JudgedPart(name, entry, counts, tuple(problems))


def missed(part: JudgedPart, number: int) -> JudgedPart:
    """A part that holds nothing to judge, and did in the last run of the estate: what was found there is not mended."""
    message = f"it was part of run {number}, and holds nothing to judge now; if that is right, take it away"
    return unread(part.name, [*part.problems, Problem(level="error", message=message, place=part.name)])
