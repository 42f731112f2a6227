"""Match policies to subjects, and find the pairs for which it is unknown whether the policy applies."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from policyeng.bundle import Bundle
from policyeng.engines import Pair
from policyeng.evaluation.matching import TargetMatcher, list_unreadable, selectors_in
from policyeng.evaluation.prepared_snapshot import PreparedSnapshot, Resource
from policyeng.models import Unknown
from policyeng.named import NamedTuple


class PlannedPair(NamedTuple):
    """A pair to evaluate; with `unknowns` it is already decided, and no engine evaluates it."""

    pair: Pair
    unknowns: tuple[Unknown, ...] = ()


def plan(
    bundle: Bundle, estate: PreparedSnapshot, wanted: Mapping[int, Collection[int]] | None = None
) -> Iterator[PlannedPair]:
    """Yield every pair of a policy and a subject to which it applies, ordered by policy.

    With `wanted`, yield only those pairs: positions of subjects by the number of the policy.
    """
    subjects, judges = estate.subjects, selectors_in(bundle)
    for number, positions in _match_all(bundle, subjects) if wanted is None else sorted(wanted.items()):
        policy = bundle.policies[number]
        undecided = (Unknown(msg=policy.undecided),) if policy.undecided else ()
        for index in sorted(positions):
            subject = subjects[index]
            unknowns: tuple[Unknown, ...] = undecided
            if subject.is_gap:
                unknowns = (Unknown(msg=subject.unreadable[""], path=""),)
            elif not undecided and (subject.unreadable or subject.carried):
                unknowns = list_unreadable(judges[number], subject)
            yield PlannedPair(Pair(number, index, subject.workspace), unknowns)


def _match_all(bundle: Bundle, subjects: Sequence[Resource]) -> Iterator[tuple[int, Collection[int]]]:
    """Return the number of each policy with the positions of the subjects to which it applies."""
    matcher = TargetMatcher(subjects)
    return ((number, matcher.taken(judges)) for number, judges in enumerate(selectors_in(bundle)))
