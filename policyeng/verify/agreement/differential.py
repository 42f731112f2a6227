"""Differential testing: every engine judges the same random pairs, and must say the same of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import orjson

from policyeng.bundle import Bundle
from policyeng.engines import Judgement, Pair, Work
from policyeng.errors import EngineError
from policyeng.evaluation.estate import estate_of
from policyeng.evaluation.marking import markings_of
from policyeng.evaluation.plan import plan
from policyeng.models import Denial, Snapshot, Unknown
from policyeng.verify.agreement.contestants import Contestant
from policyeng.verify.drawing.examples import Example, examples_of

#: What a judgement says, without the order of its parts: whether it applies, whether it broke, what stands in it, and
#: whether it is excepted.
Said = tuple[bool, bool, tuple[bytes, ...], tuple[bytes, ...], bool]
#: After so many examples without a pair to compare, there will be none.
_MOST_BARREN = 300


@dataclass(frozen=True)
class Comparison:
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
class Tally:
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
    differences: list[Comparison] = field(default_factory=list)


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


def work_of(bundle: Bundle, example: Example, snapshot: Snapshot | None = None) -> Work:
    """What an engine is given for an example: all its pairs, but for those of which it is not known that they are."""
    estate = estate_of(snapshot or example.snapshot, bundle.facts)
    return Work(
        bundle=bundle,
        snapshot=estate.view,
        subjects=[subject.document for subject in estate.subjects],
        document=estate.document,
        pairs=[entry.pair for entry in plan(bundle, estate) if not entry.unknowns],
        parameters=[{**policy.header.defaults, **example.parameters.get(policy.id, {})} for policy in bundle.policies],
        as_of=example.as_of,
        **markings_of(bundle, estate)._asdict(),
    )


def judged(work: Work, pairs: Sequence[Pair], contestants: Iterable[Contestant]) -> list[dict[str, Judgement]]:
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
) -> Iterator[Comparison]:
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
        yield Comparison(bundle.policies[pair.policy].id, subject, tuple(judgements.items()), example)


def differs(comparison: Comparison) -> bool:
    """Whether the engines said different things."""
    return len({said(judgement) for _, judgement in comparison.judgements}) > 1


def compare(
    bundle: Bundle,
    contestants: Sequence[Contestant],
    *,
    pairs: int,
    seed: int,
    progress: Callable[[int], None] = lambda _: None,
) -> Tally:
    """Compare engines on the examples of a seed until so many pairs were judged by two or more of them.

    The examples depend on the bundle and the seed alone; the last one is judged whole. `progress` hears the number of
    pairs done after each example.

    Raises:
        EngineError: an engine cannot judge, or the examples give nothing that two engines judge.
    """
    tally = Tally(seed)
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


def _count(tally: Tally, comparison: Comparison) -> None:
    if not comparison.judgements:
        return
    tally.outcomes[comparison.policy][outcome_of(comparison.judgements[0][1])] += 1
    if len(comparison.judgements) > 1:
        tally.pairs += 1
        tally.compared.update(name for name, _ in comparison.judgements)


def _texts(parts: Iterable[Denial | Unknown]) -> tuple[bytes, ...]:
    return tuple(sorted(orjson.dumps(part.model_dump(), option=orjson.OPT_SORT_KEYS) for part in parts))
