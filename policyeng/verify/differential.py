"""Differential testing: every engine evaluates the same random pairs, and all results must be equal."""

from __future__ import annotations

import platform
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import orjson

from policyeng.bundle import Bundle
from policyeng.engines import EvaluationRequest, Judgement, OpaOptions, Pair, python
from policyeng.errors import EngineError, UsageError, suggest_nearest
from policyeng.evaluation.context import request_evaluation
from policyeng.evaluation.matching import plan
from policyeng.evaluation.prepared_snapshot import estate_of
from policyeng.evaluation.unknown_markers import mark_for_bundle
from policyeng.models import Denial, JsonObject, Snapshot, Unknown
from policyeng.testing.reports import bundle_object, text_of_lines
from policyeng.verify.example_documents import command, list_other_parts, native
from policyeng.verify.generators.examples import Example, examples_of
from policyeng.verify.shrinking import shrink_example

#: The names of all engines, in order; the first one that covers a policy is the reference.
NAMES = ("embedded", "opa", "python")


@dataclass(frozen=True)
class Contestant:
    """An engine that is compared.

    Attributes:
        evaluate: returns judgements in the order of the pairs, which are all of policies that it covers.
        covers: the ids of the policies that it can evaluate.
    """

    name: str
    version: str
    evaluate: Callable[[EvaluationRequest, Sequence[Pair]], Sequence[Judgement]]
    covers: frozenset[str]


def contestants(bundle: Bundle, *, without: Collection[str] = (), opa: OpaOptions | None = None) -> list[Contestant]:
    """Return the engines that can evaluate policies of the bundle, except for excluded ones.

    Args:
        bundle: the active policies.
        without: names of engines to exclude; a missing engine that is not excluded is an error, so that no run claims
            more than it compared.
        opa: the OPA to use; a private one by default.

    Raises:
        UsageError: `without` has an unknown name, or leaves nothing to compare.
        EngineError: the bundle does not compile, or OPA is missing.
    """
    for name in without:
        if name not in NAMES:
            raise UsageError(
                f"no engine is called `{name}`{suggest_nearest(name, NAMES)}",
                remedy=f"the engines are {', '.join(NAMES)}",
            )
    present = list(_find_engines(bundle, frozenset(without), opa))
    if len(present) < 2:
        left = ", ".join(entry.name for entry in present) or "none"
        raise UsageError(f"nothing to compare: the remaining engines are {left}", remedy="exclude fewer engines")
    return present


def _find_engines(bundle: Bundle, without: frozenset[str], opa: OpaOptions | None) -> Iterator[Contestant]:
    from policyeng.engines import embedded

    embedded.compile_rego(bundle)
    rego = frozenset(policy.id for policy in bundle.policies if policy.rules)
    twins = frozenset(policy.id for policy in bundle.policies if policy.python)
    every: dict[str, Callable[[], Contestant]] = {
        "embedded": lambda: Contestant("embedded", embedded.version(), embedded.evaluate_pairs, rego),
        "opa": lambda: _opa(rego, opa),
        "python": lambda: Contestant("python", platform.python_version(), _by_python, twins),
    }
    yield from (make() for name, make in every.items() if name not in without)


def _opa(covers: frozenset[str], options: OpaOptions | None) -> Contestant:
    from policyeng.engines import opa

    try:
        version = opa.version(options)
    except EngineError as error:
        remedy = f"{error.remedy}; `--without opa` compares the other engines alone".removeprefix("; ")
        raise EngineError(error.message, place=error.place, remedy=remedy) from error
    return Contestant("opa", version, lambda work, pairs: opa.evaluate_with_opa(work, pairs, options), covers)


def _by_python(work: EvaluationRequest, pairs: Sequence[Pair]) -> list[Judgement]:
    evaluator = python.PythonEvaluator(work)
    return [evaluator.evaluate(pair) for pair in pairs]


#: The content of a judgement without order: whether it applies, whether it is an error, its parts, and
#: whether it is exempt.
NormalResult = tuple[bool, bool, tuple[bytes, ...], tuple[bytes, ...], bool]
#: The number of examples without a pair to compare after which the run gives up.
_MOST_BARREN = 300


@dataclass(frozen=True)
class EngineDifference:
    """A pair on which engines differ.

    Attributes:
        judgements: the judgements by engine, in the order of the contestants.
    """

    policy: str
    subject: str
    judgements: tuple[tuple[str, Judgement], ...]
    example: Example

    @cached_property
    def kind(self) -> tuple[str, tuple[str, ...]]:
        """The policy and the engines that differ from the first one; differences of one kind are reported once."""
        first = normalize_result(self.judgements[0][1])
        return self.policy, tuple(name for name, judgement in self.judgements if normalize_result(judgement) != first)


@dataclass
class PairCounts:
    """The counts of a run.

    Attributes:
        pairs: the number of pairs that at least two engines evaluated.
        compared: the number of these pairs by engine.
        outcomes: the number of pass, fail, unknown, error and not applicable, by policy id.
        differing: the number of pairs on which engines differ.
        differences: the first pair of each kind of difference.
    """

    seed: int
    snapshots: int = 0
    pairs: int = 0
    differing: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    differences: list[EngineDifference] = field(default_factory=list)


def normalize_result(judgement: Judgement) -> NormalResult:
    """Return a judgement in comparable form: multisets of JSON, numbers by value and type; errors without text."""
    if judgement.error is not None or not judgement.applies:
        return (judgement.applies, judgement.error is not None, (), (), False)
    return (True, False, _texts(judgement.denials), _texts(judgement.unknowns), judgement.excepted is not None)


def outcome_of(judgement: Judgement) -> str:
    """Return the outcome of the finding of a judgement, or that there is none."""
    if not judgement.applies:
        return "not applicable"
    if judgement.error is not None:
        return "error"
    return "fail" if judgement.denials else "unknown" if judgement.unknowns else "pass"


def build_request(bundle: Bundle, example: Example, snapshot: Snapshot | None = None) -> EvaluationRequest:
    """Return the evaluation request for an example: all pairs, except for those that are uncertain."""
    estate = estate_of(snapshot or example.snapshot, bundle.facts)
    parameters = [{**policy.header.defaults, **example.parameters.get(policy.id, {})} for policy in bundle.policies]
    markings = mark_for_bundle(bundle, estate)
    return request_evaluation(bundle, estate, plan(bundle, estate), parameters, example.as_of, markings)


def evaluate_with_engines(
    work: EvaluationRequest, pairs: Sequence[Pair], contestants: Iterable[Contestant]
) -> list[dict[str, Judgement]]:
    """Return for each pair the judgements of the engines that cover its policy.

    Raises:
        EngineError: an engine fails, or does not answer for every pair.
    """
    judgements: list[dict[str, Judgement]] = [{} for _ in pairs]
    for contestant in contestants:
        numbers = [
            number for number, pair in enumerate(pairs) if work.bundle.policies[pair.policy].id in contestant.covers
        ]
        results = contestant.evaluate(work, [pairs[number] for number in numbers]) if numbers else []
        if len(results) != len(numbers):
            message = f"the engine `{contestant.name}` returned {len(results)} judgements for {len(numbers)} pairs"
            raise EngineError(message)
        for number, judgement in zip(numbers, results, strict=True):
            judgements[number][contestant.name] = judgement
    return judgements


def comparisons(
    bundle: Bundle,
    example: Example,
    contestants: Iterable[Contestant],
    snapshot: Snapshot | None = None,
    only: str = "",
) -> Iterator[EngineDifference]:
    """Yield every pair of an example with the judgement of each engine; with `only`, of the policy with this id.

    Pairs with unknown values are left out: OPA has no markers, and the two forms of a policy may read different fields.

    Raises:
        EngineError: an engine fails.
    """
    work = build_request(bundle, example, snapshot)
    pairs = [pair for pair in work.pairs if not only or bundle.policies[pair.policy].id == only]
    for pair, judgements in zip(pairs, evaluate_with_engines(work, pairs, contestants), strict=True):
        if any(judgement.is_partial for judgement in judgements.values()):
            continue
        evaluated = work.documents[pair.subject]
        subject = str(evaluated.get("id", "")) if isinstance(evaluated, dict) else ""  # a document may be a list
        yield EngineDifference(bundle.policies[pair.policy].id, subject, tuple(judgements.items()), example)


def differs(comparison: EngineDifference) -> bool:
    """Check whether the engines differ."""
    return len({normalize_result(judgement) for _, judgement in comparison.judgements}) > 1


def compare(
    bundle: Bundle,
    contestants: Sequence[Contestant],
    *,
    pairs: int,
    seed: int,
    progress: Callable[[int], None] = lambda _: None,
) -> PairCounts:
    """Compare engines on the examples of a seed until enough pairs were evaluated by two or more of them.

    The examples depend only on the bundle and the seed; the last one is completed. `progress` is called with the number
    of finished pairs after each example.

    Raises:
        EngineError: an engine fails, or the examples have no pair that two engines evaluate.
    """
    tally = PairCounts(seed)
    tally.outcomes = {policy.id: Counter() for policy in bundle.policies}
    kinds = set()
    for example in examples_of(bundle, seed):
        for comparison in comparisons(bundle, example, contestants):
            _count(tally, comparison)
            if differs(comparison):
                tally.differing += 1
                if comparison.kind not in kinds:
                    kinds.add(comparison.kind)
                    tally.differences.append(comparison)
        tally.snapshots += 1
        progress(tally.pairs)
        if tally.pairs >= pairs:
            return tally
        if tally.snapshots == _MOST_BARREN and not tally.pairs:
            raise EngineError(
                f"{_MOST_BARREN} snapshots have no pair that two engines evaluate",
                remedy="the bundle needs policies in Rego for types that resources can have",
            )
    raise AssertionError("examples do not end")


def _count(tally: PairCounts, comparison: EngineDifference) -> None:
    if not comparison.judgements:
        return
    tally.outcomes[comparison.policy][outcome_of(comparison.judgements[0][1])] += 1
    if len(comparison.judgements) > 1:
        tally.pairs += 1
        tally.compared.update(name for name, _ in comparison.judgements)


def _texts(parts: Iterable[Denial | Unknown]) -> tuple[bytes, ...]:
    return tuple(sorted(orjson.dumps(part.model_dump(), option=orjson.OPT_SORT_KEYS) for part in parts))


@dataclass(frozen=True)
class Counterexample:
    """A shrunk difference.

    Attributes:
        comparison: the pair, the judgement of every engine, and the example.
        note: why the snapshot is not smaller, or why `policyeng check` cannot read it; empty if neither applies.
    """

    comparison: EngineDifference
    note: str = ""


def counterexample(
    found: EngineDifference, bundle: Bundle, contestants: Sequence[Contestant], *, most: int = 3000
) -> Counterexample:
    """Shrink a difference, to one that `policyeng check` can read if possible.

    An engine error ends the search with the last difference.
    """
    numbers = [entry for entry in contestants if entry.name in dict(found.judgements)]

    def differing(example: Example, snapshot: Snapshot) -> EngineDifference | None:
        every = comparisons(bundle, example, numbers, snapshot, found.policy)
        return next((entry for entry in every if differs(entry) and entry.kind == found.kind), None)

    left = shrink_example(bundle, found.example, found, differing, most=most)
    return Counterexample(left.found, left.note)


_OUTCOMES = ("pass", "fail", "unknown", "error", "not applicable")


@dataclass(frozen=True)
class DifferentialRun:
    """A finished run; `seconds` is its duration."""

    bundle: Bundle
    contestants: Sequence[Contestant]
    tally: PairCounts
    found: Sequence[Counterexample]
    seconds: float


def as_json(run: DifferentialRun) -> str:
    """Return the run as a JSON object."""
    tally = run.tally
    document = {
        "seed": tally.seed,
        "pairs": tally.pairs,
        "snapshots": tally.snapshots,
        "seconds": round(run.seconds, 3),
        "bundle": bundle_object(run.bundle),
        "engines": [
            {"name": entry.name, "version": entry.version, "pairs": tally.compared[entry.name]}
            for entry in run.contestants
        ],
        "policies": [
            {
                "id": policy,
                "engines": _describe_evaluation(run, policy),
                "outcomes": {outcome: counts[outcome] for outcome in _OUTCOMES},
            }
            for policy, counts in tally.outcomes.items()
        ],
        "differing": tally.differing,
        "kinds": len(tally.differences),
        "differences": [_difference(found) for found in run.found],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def as_text(run: DifferentialRun, given: Sequence[str] = (), written: Sequence[Path | None] = ()) -> str:
    """Return the run as text.

    Args:
        run: a finished run.
        given: the options of the command line that name the policies, to repeat.
        written: the files of the counterexamples in order, None if there is none.
    """
    return text_of_lines(_lines(run, given, written))


def _lines(run: DifferentialRun, given: Sequence[str], written: Sequence[Path | None]) -> Iterator[str]:
    tally = run.tally
    yield f"{'policy':14}" + "".join(f"{outcome:>15}" for outcome in _OUTCOMES) + "  engines"
    for policy, counts in tally.outcomes.items():
        evaluating = ", ".join(_describe_evaluation(run, policy))
        yield f"{policy:14}" + "".join(f"{counts[outcome]:15,}" for outcome in _OUTCOMES) + f"  {evaluating}"
    alone = [policy for policy in tally.outcomes if len(_describe_evaluation(run, policy)) < 2]
    if alone:
        yield f"not compared, because only one engine evaluates them:  {', '.join(alone)}"
    unmet = [policy for policy, counts in tally.outcomes.items() if not (counts["pass"] and counts["fail"])]
    if unmet:
        yield f"not met both passing and failing: {', '.join(unmet)}"
    for found, file in zip(run.found, [*written, *[None] * len(run.found)], strict=False):
        yield ""
        yield from _explain(found, given, file)
    yield ""
    for entry in run.contestants:
        yield f"{entry.name:12} {entry.version:10} {tally.compared[entry.name]:,} pairs compared"
    yield f"seed {tally.seed}: {tally.pairs:,} pairs of {tally.snapshots:,} snapshots in {run.seconds:.1f} s"
    yield _conclude(run)


def _conclude(run: DifferentialRun) -> str:
    tally = run.tally
    if not tally.differing:
        names = [entry.name for entry in run.contestants if tally.compared[entry.name]]  # never more than was compared
        return f"exit 0: no difference between {', '.join(names[:-1])} and {names[-1]}"
    more = len(tally.differences) - len(run.found)
    hidden = f"; {more} kinds are not shown" if more > 0 else ""
    return f"exit 1: the engines differ on {tally.differing:,} pairs, {len(tally.differences)} kinds{hidden}"


def _explain(found: Counterexample, given: Sequence[str], file: Path | None) -> Iterator[str]:
    comparison = found.comparison
    yield f"difference: {comparison.policy} on {comparison.subject}"
    for name, judgement in comparison.judgements:
        yield f"  {name:12} {orjson.dumps(encode_result(judgement)).decode()}"
    if found.note:
        yield f"  note         {found.note}"
    example = comparison.example
    yield f"  again with   {shlex.join(command(example, comparison.policy, given, file))}"
    yield from (f"  {line}" for line in list_other_parts(example, file))


def _difference(found: Counterexample) -> JsonObject:
    comparison, example = found.comparison, found.comparison.example
    return {
        "policy": comparison.policy,
        "resource": comparison.subject,
        "engines": {name: encode_result(judgement) for name, judgement in comparison.judgements},
        "snapshot": native(example.document),
        "parameters": dict(example.parameters),
        "asOf": example.as_of.isoformat(),
        "note": found.note,
    }


def encode_result(judgement: Judgement) -> JsonObject:
    """Return a judgement as a JSON object for reports."""
    result: JsonObject = {"outcome": outcome_of(judgement)}
    if judgement.error is not None:
        return {**result, "error": judgement.error}
    denials = [denial.model_dump() for denial in judgement.denials]
    unknowns = [unknown.model_dump() for unknown in judgement.unknowns]
    return {**result, **({"denials": denials} if denials else {}), **({"unknowns": unknowns} if unknowns else {})}


def _describe_evaluation(run: DifferentialRun, policy: str) -> list[str]:
    return [entry.name for entry in run.contestants if policy in entry.covers]
