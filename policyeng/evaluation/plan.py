"""Which policies apply to which subjects, and of which of these pairs it is not known whether they do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from policyeng.bundle import Bundle
from policyeng.engines import Pair
from policyeng.evaluation.matching import TargetMatcher, lost_in, selectors_in
from policyeng.evaluation.prepared_snapshot import PreparedSnapshot, Resource
from policyeng.models import Unknown
from policyeng.named import NamedTuple


class PlannedPair(NamedTuple):
    """A pair to judge; with `unknowns` it is decided already and no engine sees it."""

    pair: Pair
    unknowns: tuple[Unknown, ...] = ()


def plan(
    bundle: Bundle, estate: PreparedSnapshot, wanted: Mapping[int, Collection[int]] | None = None
) -> Iterator[PlannedPair]:
    """Every pair of a policy and a subject that it judges, policies first.

    With `wanted` the pairs are these, by number of the policy and positions of what it judges.
    """
    subjects, judges = estate.subjects, selectors_in(bundle)
    for number, taken in _taken(bundle, subjects) if wanted is None else sorted(wanted.items()):
        policy = bundle.policies[number]
        undecided = (Unknown(msg=policy.undecided),) if policy.undecided else ()
        for index in sorted(taken):
            subject = subjects[index]
            unknowns: tuple[Unknown, ...] = undecided
            if subject.is_gap:
                unknowns = (Unknown(msg=subject.unreadable[""], path=""),)
            elif not undecided and (subject.unreadable or subject.carried):
                unknowns = lost_in(judges[number], subject)
            yield PlannedPair(Pair(number, index, subject.workspace), unknowns)


def _taken(bundle: Bundle, subjects: Sequence[Resource]) -> Iterator[tuple[int, Collection[int]]]:
    """The number of each policy, and what it judges."""
    narrowing = TargetMatcher(subjects)
    return ((number, narrowing.taken(judges)) for number, judges in enumerate(selectors_in(bundle)))
