"""Differential testing: every engine judges the same random pairs, and must say the same of each."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import orjson

from policyeng.bundle import Bundle
from policyeng.engines import EvaluationRequest, Judgement, OpaOptions, Pair, python
from policyeng.errors import EngineError, UsageError, nearest
from policyeng.evaluation.plan import plan
from policyeng.evaluation.prepared_snapshot import estate_of
from policyeng.evaluation.unknown_markers import markings_of
from policyeng.models import Denial, Snapshot, Unknown
from policyeng.verify.generators.examples import Example, examples_of
from policyeng.verify.shrink_example import smallest

#: Every engine that can take part, in the order in which they are asked; the first that covers a policy is the measure.
NAMES = ("embedded", "opa", "python")


@dataclass(frozen=True)
class Contestant:
    """One way of judging.

    Attributes:
        judge: judgements in the order of the pairs, which are all of policies that it covers.
        covers: ids of the policies that it judges.
    """

    name: str
    version: str
    judge: Callable[[EvaluationRequest, Sequence[Pair]], Sequence[Judgement]]
    covers: frozenset[str]


def contestants(bundle: Bundle, *, without: Collection[str] = (), opa: OpaOptions | None = None) -> list[Contestant]:
    """The engines that can judge policies of the bundle, but for those to do without.

    Args:
        bundle: the policies in force.
        without: names of `NAMES`; an engine that is missing and not named here is an error, so that no run claims
            more than it compared.
        opa: which OPA judges; a private one unless given.

    Raises:
        UsageError: `without` names no engine, or leaves none to compare with.
        EngineError: the bundle does not compile, or there is no OPA.
    """
    for name in without:
        if name not in NAMES:
            raise UsageError(
                f"no engine is called `{name}`{nearest(name, NAMES)}", remedy=f"there are {', '.join(NAMES)}"
            )
    present = list(_present(bundle, frozenset(without), opa))
    if len(present) < 2:
        left = ", ".join(entry.name for entry in present) or "none"
        raise UsageError(f"there is nothing to compare: the engines left are {left}", remedy="do without fewer engines")
    return present


def _present(bundle: Bundle, without: frozenset[str], opa: OpaOptions | None) -> Iterator[Contestant]:
    from policyeng.engines import embedded

    embedded.compile_rego(bundle)
    rego = frozenset(policy.id for policy in bundle.policies if policy.rules)
    twins = frozenset(policy.id for policy in bundle.policies if policy.python)
    every: dict[str, Callable[[], Contestant]] = {
        "embedded": lambda: Contestant("embedded", embedded.version(), embedded.judge_pairs, rego),
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
    return Contestant("opa", version, lambda work, pairs: opa.judge_pairs(work, pairs, options), covers)


def _by_python(work: EvaluationRequest, pairs: Sequence[Pair]) -> list[Judgement]:
    return [python.judge_pair(work, pair) for pair in pairs]


#: What a judgement says, without the order of its parts: whether it applies, whether it broke, what stands in it, and
#: whether it is excepted.
Said = tuple[bool, bool, tuple[bytes, ...], tuple[bytes, ...], bool]
#: After so many examples without a pair to compare, there will be none.
_MOST_BARREN = 300


@dataclass(frozen=True)
class EngineDifference:
    """A pair that engines judged differently.

    Attributes:
        judgements: by engine, in the order of the contestants.
    """

    policy: str
    subject: str
    judgements: tuple[tuple[str, Judgement], ...]
    example: Example

    @cached_property
    def kind(self) -> tuple[str, tuple[str, ...]]:
        """The policy and the engines that differ from the first: differences of one kind are reported once."""
        first = said(self.judgements[0][1])
        return self.policy, tuple(name for name, judgement in self.judgements if said(judgement) != first)


@dataclass
class PairCounts:
    """What a run has met so far.

    Attributes:
        pairs: pairs that at least two engines judged.
        compared: by engine, how many of these pairs it judged.
        outcomes: by policy id, how often it ended in pass, fail, unknown, error or not applicable.
        differing: pairs on which engines differed.
        differences: the first pair of each kind of difference.
    """

    seed: int
    snapshots: int = 0
    pairs: int = 0
    differing: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    differences: list[EngineDifference] = field(default_factory=list)


def said(judgement: Judgement) -> Said:
    """A judgement as it is compared: multisets of JSON, numbers by value and type; of an error only that it is one."""
    if judgement.error is not None or not judgement.applies:
        return (judgement.applies, judgement.error is not None, (), (), False)
    return (True, False, _texts(judgement.denials), _texts(judgement.unknowns), judgement.excepted is not None)


def outcome_of(judgement: Judgement) -> str:
    """The outcome of a judgement's finding, or that there is none."""
    if not judgement.applies:
        return "not applicable"
    if judgement.error is not None:
        return "error"
    return "fail" if judgement.denials else "unknown" if judgement.unknowns else "pass"


def work_of(bundle: Bundle, example: Example, snapshot: Snapshot | None = None) -> EvaluationRequest:
    """What an engine is given for an example: all its pairs, but for those of which it is not known that they are."""
    estate = estate_of(snapshot or example.snapshot, bundle.facts)
    return EvaluationRequest(
        bundle=bundle,
        snapshot=estate.view,
        subjects=[subject.document for subject in estate.subjects],
        document=estate.document,
        pairs=[entry.pair for entry in plan(bundle, estate) if not entry.unknowns],
        parameters=[{**policy.header.defaults, **example.parameters.get(policy.id, {})} for policy in bundle.policies],
        as_of=example.as_of,
        **markings_of(bundle, estate)._asdict(),
    )


def judged(
    work: EvaluationRequest, pairs: Sequence[Pair], contestants: Iterable[Contestant]
) -> list[dict[str, Judgement]]:
    """For each pair, the judgements of the engines that cover its policy.

    Raises:
        EngineError: an engine cannot judge, or does not answer for every pair.
    """
    judgements: list[dict[str, Judgement]] = [{} for _ in pairs]
    for contestant in contestants:
        asked = [
            number for number, pair in enumerate(pairs) if work.bundle.policies[pair.policy].id in contestant.covers
        ]
        answers = contestant.judge(work, [pairs[number] for number in asked]) if asked else []
        if len(answers) != len(asked):
            message = f"the engine `{contestant.name}` gave {len(answers)} judgements for {len(asked)} pairs"
            raise EngineError(message)
        for number, judgement in zip(asked, answers, strict=True):
            judgements[number][contestant.name] = judgement
    return judgements


def comparisons(
    bundle: Bundle,
    example: Example,
    contestants: Iterable[Contestant],
    snapshot: Snapshot | None = None,
    only: str = "",
) -> Iterator[EngineDifference]:
    """Every pair of an example with what each engine said of it; of one policy alone with `only`, its id.

    Pairs that meet something unknown are left out: OPA knows no markers, and twins need not meet the same.

    Raises:
        EngineError: an engine cannot judge.
    """
    work = work_of(bundle, example, snapshot)
    pairs = [pair for pair in work.pairs if not only or bundle.policies[pair.policy].id == only]
    for pair, judgements in zip(pairs, judged(work, pairs, contestants), strict=True):
        if any(judgement.is_partial for judgement in judgements.values()):
            continue
        judged_one = work.subjects[pair.subject]
        subject = str(judged_one.get("id", "")) if isinstance(judged_one, dict) else ""  # a document may be a list
        yield EngineDifference(bundle.policies[pair.policy].id, subject, tuple(judgements.items()), example)


def differs(comparison: EngineDifference) -> bool:
    """Whether the engines said different things."""
    return len({said(judgement) for _, judgement in comparison.judgements}) > 1


def compare(
    bundle: Bundle,
    contestants: Sequence[Contestant],
    *,
    pairs: int,
    seed: int,
    progress: Callable[[int], None] = lambda _: None,
) -> PairCounts:
    """Compare engines on the examples of a seed until so many pairs were judged by two or more of them.

    The examples depend on the bundle and the seed alone; the last one is judged whole. `progress` hears the number of
    pairs done after each example.

    Raises:
        EngineError: an engine cannot judge, or the examples give nothing that two engines judge.
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
                f"{_MOST_BARREN} snapshots gave no pair that two engines judge",
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
    """A difference after shrinking.

    Attributes:
        comparison: the pair, what every engine says of it, and the example.
        note: why the snapshot is not smaller, or not one that `policyeng check` reads; empty when all is well.
    """

    comparison: EngineDifference
    note: str = ""


def counterexample(
    found: EngineDifference, bundle: Bundle, contestants: Sequence[Contestant], *, most: int = 3000
) -> Counterexample:
    """Shrink a difference to one that `policyeng check` can read, if it lives through the reader.

    An engine that fails on the way ends the search, and what was found until then is given.
    """
    asked = [entry for entry in contestants if entry.name in dict(found.judgements)]

    def differing(example: Example, snapshot: Snapshot) -> EngineDifference | None:
        every = comparisons(bundle, example, asked, snapshot, found.policy)
        return next((entry for entry in every if differs(entry) and entry.kind == found.kind), None)

    left = smallest(bundle, found.example, found, differing, most=most)
    return Counterexample(left.found, left.note)
