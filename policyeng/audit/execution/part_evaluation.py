"""The key for reusing the evaluation of a part, stored with the part and compared at the next run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import orjson

from policyeng._performance import uncollected
from policyeng.audit.collection.parts import Collected, PartSource, read
from policyeng.audit.store.codecs import (
    canonical,
    compute_span_states,
    encode_evaluation,
    encode_snapshot,
    pack,
    snapshot_of,
)
from policyeng.audit.store.run_writer import StoredPart
from policyeng.bundle import Bundle, Policy
from policyeng.context import EvaluationSetup
from policyeng.engines import OpaOptions
from policyeng.errors import InputError, StoreError
from policyeng.evaluation import (
    EvaluationContext,
    EvaluationOptions,
    conclude,
    evaluate_pairs,
    evaluate_prepared,
    prepare,
)
from policyeng.evaluation.findings import order_of
from policyeng.exemptions import in_force_of, place_of
from policyeng.frozen import field, frozen, replace
from policyeng.models import Evaluation, Finding, Findings, JsonObject, Outcome, Problem, Snapshot, Summary
from policyeng.rego.clock import Clock, Unchanged
from policyeng.sources.discovery import FileDependency
from policyeng.sources.parsed import problem_of


class ReuseKey(NamedTuple):
    """Everything that an evaluation depends on.

    Attributes:
        grounds: the digest of what all parts share, except for the clock; see `reuse.grounds_of`.
        asked: the file queries for reading the part.
        in_force: the ids of the active exemptions.
        again: the policies to evaluate again at another clock.
        used: the ids of the exemptions that cover a finding of the part.
        unchanged: the range of clocks with the same results; None if it is not known.
    """

    grounds: str
    asked: Sequence[FileDependency]
    in_force: Sequence[str]
    again: Sequence[str]
    used: Sequence[str]
    unchanged: Unchanged | None = None


def encode_key(basis: ReuseKey) -> str:
    """Return a key as JSON; empty if the name of a file is not text, which prevents reuse."""
    try:
        return canonical(
            {
                **basis._asdict(),
                "asked": [(one.question, str(one.path), one.answer) for one in basis.asked],
                "unchanged": basis.unchanged and tuple(basis.unchanged),
            }
        ).decode()
    except TypeError:
        return ""


def read_back(text: str) -> ReuseKey | None:
    """Return the key of its JSON; None for one of an earlier version.

    Raises:
        StoreError: the JSON is not a key.
    """
    try:
        stated = orjson.loads(text)
        if "unchanged" not in stated:
            return None
        asked = [FileDependency(question, Path(path), answer) for question, path, answer in stated["asked"]]
        unchanged = stated["unchanged"] and Unchanged(*stated["unchanged"])
        return ReuseKey(**{**stated, "asked": asked, "unchanged": unchanged})
    except (KeyError, TypeError, ValueError):
        remedy = "`policyeng audit verify-history` reports the affected run"
        raise StoreError("the dependencies of a part were altered", place=("parts",), remedy=remedy) from None


def decode_key(basis: ReuseKey | None, grounds: str) -> str:
    """Return the stored form of a key; empty without one."""
    return encode_key(basis._replace(grounds=grounds)) if basis else ""


@frozen
class RunOptions(EvaluationOptions):
    """The options for evaluating the parts of a run.

    Attributes:
        parameters: by policy id, values that replace the defaults.
    """

    parameters: Mapping[str, JsonObject] = field(default_factory=dict)


@frozen
class JudgedPart:
    """The result of a part.

    Attributes:
        entry: ready to be stored; None if the part has nothing to evaluate.
        problems: problems of the run.
        exempting: problems of exemptions; None if the part was not evaluated.
        basis: the key for reusing the evaluation, without what all parts share; None if the part was not evaluated.
    """

    name: str
    entry: StoredPart | None
    summary: Summary
    problems: tuple[Problem, ...] = ()
    exempting: frozenset[Problem] | None = None
    basis: ReuseKey | None = None


def options_of(in_force: EvaluationSetup, as_of: datetime, engine: str, opa: OpaOptions | None) -> RunOptions:
    """Return the options for evaluating parts at a clock; one without a time zone is in UTC."""
    return RunOptions(
        as_of=as_of.astimezone(UTC) if as_of.tzinfo else as_of.replace(tzinfo=UTC),
        exemptions=in_force.exemptions,
        engine=engine,
        opa=opa,
        fail_on=in_force.settings.fail_on,
        strict_unknown=in_force.settings.strict_unknown,
        parameters=in_force.parameters,
    )


class Before(NamedTuple):
    """The evaluation of a part at another clock.

    Attributes:
        again: the ids of the policies to evaluate again at this clock.
        snapshot: the digest of the stored snapshot.
    """

    evaluation: Evaluation
    again: Set[str]
    snapshot: str


@frozen
class Resumed:
    """An unchanged part with some policies to evaluate again.

    Attributes:
        asked: the file queries for reading it.
        before: its evaluation at another clock.
    """

    source: PartSource
    asked: Sequence[FileDependency]
    before: Before


@uncollected()
def read_and_judged(source: PartSource | Collected | Resumed, bundle: Bundle, options: RunOptions) -> JudgedPart:
    """Read a part if necessary, and evaluate it, or the policies that have to be evaluated again.

    Raises:
        EngineError: the bundle does not compile, or the engine does not answer.
    """
    if not isinstance(source, Resumed):
        return evaluate_part(read(source, bundle.wanted), bundle, options)
    part = read(source.source, bundle.wanted)
    is_same = list(part.asked) == list(source.asked)  # it may have changed since it was compared
    return evaluate_part(part, bundle, options, source.before if is_same else None)


def evaluate_part(part: Collected, bundle: Bundle, options: RunOptions, before: Before | None = None) -> JudgedPart:
    """Evaluate a part; with an earlier evaluation, only the policies that read the clock.

    Raises:
        EngineError: the bundle does not compile, or the engine does not answer.
    """
    if part.snapshot is None:
        fault = any(problem.level == "error" for problem in part.problems)
        return unread(part.name, part.problems) if fault else JudgedPart(part.name, None, Summary(), (*part.problems,))
    try:
        kept = encode_snapshot(part.snapshot)
    except InputError as error:
        return unread(part.name, [problem_of(InputError(error.message, place=(part.name,), remedy=error.remedy))])
    snapshot = snapshot_of(kept.contents[kept.digest], kept.contents)
    prepared, given = prepare(bundle, snapshot, options.parameters), replace(options, problems=part.problems)
    part_of = prepared.only(lambda policy, _: policy.id in before.again) if before else prepared
    clock = Clock(given.moment)
    found = evaluate_pairs(part_of, given, clock)
    again = _find_clock_policies(prepared, found) | (before.again if before else frozenset())
    if before:
        kept_findings = (one for one in before.evaluation.findings if one.policy not in before.again)
        together: list[Finding] = sorted((*kept_findings, *found), key=order_of)
        found = Findings(together)
    evaluation, exempting = separate_exemption_problems(conclude(prepared, found, given))
    stored = encode_evaluation(evaluation, len(part.problems))
    read_anew = {} if before and before.snapshot == kept.digest else kept.contents
    entry = StoredPart(
        name=part.name,
        snapshot=kept.digest,
        evaluation=stored.digest,
        contents={digest: pack(content) for digest, content in (*read_anew.items(), *stored.contents.items())},
        standing=compute_span_states(Findings.of(evaluation.findings)),
        exit_code=evaluation.exit_code,
        summary=evaluation.summary.model_dump_json(by_alias=True),
    )
    in_force, used = ids_in_force(options, bundle.policies), find_used_exemptions(options, bundle, exempting)
    unchanged = None if _failing(found) else clock.unchanged
    basis = ReuseKey("", part.asked, in_force, sorted(again), used, unchanged)
    return JudgedPart(part.name, entry, evaluation.summary, (), exempting, basis)


def _failing(found: Findings) -> set[str]:
    """Return the ids of the policies with an error."""
    return {finding.policy for finding in found.others if finding.outcome is Outcome.ERROR}


def _find_clock_policies(prepared: EvaluationContext, found: Findings) -> frozenset[str]:
    """Return the ids of the policies whose findings depend on the clock; errors can be timeouts."""
    bundle = prepared.bundle
    planned = {entry.pair.policy for entry in prepared.planned}
    return frozenset((*(bundle.policies[number].id for number in planned if bundle.clocked[number]), *_failing(found)))


def ids_in_force(options: RunOptions, policies: Sequence[Policy]) -> tuple[str, ...]:
    """Return the ids of the exemptions that are active at the clock."""
    return tuple(one.id for one in in_force_of(options.exemptions, policies, options.as_of)[0])


def find_used_exemptions(options: RunOptions, bundle: Bundle, exempting: Iterable[Problem]) -> tuple[str, ...]:
    """Return the ids of the exemptions that cover a finding of a part, from its problems of exemptions."""
    idle = {problem.place for problem in exempting}
    in_force, _ = in_force_of(options.exemptions, bundle.policies, options.as_of)
    return tuple(sorted(entry.id for entry in in_force if place_of(entry) not in idle))


def evaluate_stored(snapshot: Snapshot, bundle: Bundle, options: RunOptions, problems: Sequence[Problem]) -> Evaluation:
    """Evaluate a stored snapshot. Return the evaluation without the problems of exemptions."""
    prepared = prepare(bundle, snapshot, options.parameters)
    return separate_exemption_problems(evaluate_prepared(prepared, replace(options, problems=problems)))[0]


def separate_exemption_problems(evaluation: Evaluation) -> tuple[Evaluation, frozenset[Problem]]:
    """Separate the problems of exemptions from an evaluation.

    They are problems of the run: an exemption that covers nothing in one part can cover a finding of another.
    """
    exempting = frozenset(problem for problem in evaluation.problems if problem.kind == "exemption")
    rest = tuple(problem for problem in evaluation.problems if problem.kind != "exemption")
    return evaluation.model_copy(update={"problems": rest}), exempting


def unread(name: str, problems: Sequence[Problem]) -> JudgedPart:
    """Return a part that could not be read, with problems of the run."""
    counts = Summary()
    entry = StoredPart(name, "", "", {}, [], 2, counts.model_dump_json(by_alias=True))
    return JudgedPart(name, entry, counts, tuple(problems))


def missed(part: JudgedPart, number: int) -> JudgedPart:
    """Return an error for a part that no longer has anything to evaluate: its findings are not fixed."""
    message = f"it was part of run {number}, but has nothing to evaluate now; if that is expected, delete it"
    return unread(part.name, [*part.problems, Problem(level="error", message=message, place=part.name)])
