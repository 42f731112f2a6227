"""Try the mutants of every policy of a bundle, in several processes where the platform can fork."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from policyeng import cache
from policyeng.bundle import Bundle, Policy
from policyeng.errors import BundleError, PolicyengError
from policyeng.processes import processes, processors
from policyeng.verify.cases import Baselines, baselines_of, read_cases
from policyeng.verify.laws.law import Law
from policyeng.verify.mutation.edits import Mutant, rank
from policyeng.verify.mutation.killing import Examination, LawTrials
from policyeng.verify.mutation.survivors import Justified, read_survivors
from policyeng.verify.mutation.written import Written

#: Examples that each survivor is tried with for every law.
LAW_EXAMPLES = 25


@dataclass(frozen=True)
class Survivor:
    """A mutant that nothing noticed; with a `reason` it is held for the policy in other words."""

    mutant: Mutant
    reason: str = ""


@dataclass
class Tally:
    """What became of the mutants of one policy.

    Attributes:
        killers: how many mutants each case, absent test or law noticed first.
        by_laws: how many mutants a law noticed and no case did.
        invalid: how many did not compile; they do not count.
        stale: justified survivors that are none.
    """

    policy: str
    file: str
    killers: Counter[str] = field(default_factory=Counter)
    by_laws: int = 0
    invalid: int = 0
    survivors: list[Survivor] = field(default_factory=list)
    stale: list[Justified] = field(default_factory=list)

    @property
    def killed(self) -> int:
        """How many were noticed."""
        return self.killers.total()

    @property
    def survived(self) -> int:
        """How many were not, and should have been."""
        return sum(not entry.reason for entry in self.survivors)


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        without_cases: the policies that could not be tried.
        sample: how many mutants of each policy were tried at most; all when 0.
    """

    seed: int
    sample: int
    tallies: Sequence[Tally]
    without_cases: Sequence[str]
    laws: Sequence[Law]

    @property
    def score(self) -> float:
        """The part of all mutants that was noticed."""
        return score(self.tallies)

    @property
    def is_tried(self) -> bool:
        """Whether there was any mutant to notice; without one the score says nothing."""
        return any(tally.killed or tally.survivors for tally in self.tallies)


def score(tallies: Sequence[Tally]) -> float:
    """The percentage of mutants that was noticed, from 0 to 100; justified survivors do not count."""
    killed = sum(tally.killed for tally in tallies)
    return 100 * killed / max(1, killed + sum(tally.survived for tally in tallies))


@dataclass(frozen=True)
class _Plan:
    bundle: Bundle
    baselines: Baselines
    seed: int
    sample: int
    laws: Sequence[Law]


def run(
    bundle: Bundle,
    *,
    seed: int = 0,
    sample: int = 0,
    laws: Sequence[Law] = (),
    jobs: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> Run:
    """Try every mutant of every policy that has cases, or `sample` of each, on its cases and the laws.

    The outcome depends on the bundle, the seed and the sample alone, not on the number of processes (`jobs`; 0 is one
    for each processor). `progress` is told how many policies are done.

    Raises:
        BundleError: cases or justified survivors are not well formed.
        EngineError: the bundle does not compile.
    """
    tried = [policy for policy in bundle.policies if read_cases(policy) is not None]
    asked = _Plan(bundle, baselines_of(bundle), seed, sample, laws)
    tallies: list[Tally] = []
    for tally in _each(partial(_examined, asked), tried, jobs):
        tallies.append(tally)
        progress(len(tallies))
    without = [policy.id for policy in bundle.policies if policy not in tried]
    return Run(seed, sample, sorted(tallies, key=lambda tally: tally.policy), without, laws)


def _each(examined: Callable[[Policy], Tally], policies: Sequence[Policy], jobs: int) -> Iterator[Tally]:
    # Policies in Python cannot be sent to a process: it has them from its beginning on.
    with processes((examined, policies), max(1, min(jobs or processors(), len(policies)))) as spread:
        yield from spread.each(_tally, [(number,) for number in range(len(policies))])


def _tally(worker: tuple[Callable[[Policy], Tally], Sequence[Policy]], number: int) -> Tally:
    examined, policies = worker
    return examined(policies[number])


def _examined(asked: _Plan, policy: Policy) -> Tally:
    with cache.switched_off():  # no mutant is worth keeping
        return _tried(asked, policy)


def _tried(asked: _Plan, policy: Policy) -> Tally:
    written = Written(asked.bundle, policy)
    examination = Examination(written.bundle, asked.baselines)
    broken = examination.killer(written.bundle)
    if broken:
        raise _not_as_it_is(policy, broken)
    every = written.mutants()
    justified = read_survivors(policy)
    chosen = _sampled(every, asked, policy)
    tally = Tally(policy.id, policy.file)
    surviving = [(mutant, bundle) for mutant in chosen if (bundle := _survives(written, examination, mutant, tally))]
    trials = LawTrials(written.bundle, asked.laws if surviving else (), LAW_EXAMPLES, asked.seed)
    for mutant, bundle in surviving:
        law = trials.killer(bundle)
        if law:
            tally.killers[law] += 1
            tally.by_laws += 1
        else:
            reason = next((entry.reason for entry in justified if entry.means(mutant)), "")
            tally.survivors.append(Survivor(mutant, reason))
    tally.stale = [entry for entry in justified if _is_stale(entry, every, chosen, tally)]
    return tally


def _not_as_it_is(policy: Policy, name: str) -> BundleError:
    what = f"the case `{name}` does not hold of `{policy.id}` as it is"
    return BundleError(what, place=(str(policy.cases),), remedy="mend it first; `policyeng test` says why")


def _survives(written: Written, examination: Examination, mutant: Mutant, tally: Tally) -> Bundle | None:
    """The bundle of a mutant that the cases do not notice."""
    try:
        bundle = written.bundle_of(mutant)
        killer = examination.killer(bundle)
    except PolicyengError:
        tally.invalid += 1
        return None
    if killer:
        tally.killers[killer] += 1
        return None
    return bundle


def _sampled(every: list[Mutant], asked: _Plan, policy: Policy) -> list[Mutant]:
    if not asked.sample or len(every) <= asked.sample:
        return every
    chosen = set(sorted(range(len(every)), key=lambda number: rank(asked.seed, policy.id, number))[: asked.sample])
    return [mutant for number, mutant in enumerate(every) if number in chosen]


def _is_stale(entry: Justified, every: Sequence[Mutant], chosen: Sequence[Mutant], tally: Tally) -> bool:
    """Whether a justified survivor is no mutant, or all that it may mean were tried and noticed."""
    meant = [mutant for mutant in every if entry.means(mutant)]
    untried = any(mutant not in chosen for mutant in meant)
    return not untried and not any(entry.means(survivor.mutant) for survivor in tally.survivors)
