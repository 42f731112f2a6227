"""Which policies apply to which subjects, and which of these pairs a missing or unresolved field already decides."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import NamedTuple

from policyeng.bundle import Bundle
from policyeng.bundle.header_parts import WORKSPACE
from policyeng.engines import Pair
from policyeng.evaluation.consulted import Neighbours
from policyeng.evaluation.estate import Estate, Subject
from policyeng.evaluation.lacking import Gap, Gaps
from policyeng.evaluation.narrowing import Narrowing
from policyeng.evaluation.pointers import unread
from policyeng.evaluation.selectors import Selector, selector_of
from policyeng.models import JsonObject, Unknown, made

#: No more unknowns than these say that a policy which may read anything lacks something.
_MOST = 5


class Planned(NamedTuple):
    """A pair to judge; with `unknowns` it is decided already and no engine sees it."""

    pair: Pair
    unknowns: tuple[Unknown, ...] = ()


def plan(
    bundle: Bundle,
    estate: Estate,
    parameters: Sequence[JsonObject] | None = None,
    wanted: Mapping[int, Collection[int]] | None = None,
    unreadable: Set[int] | None = None,
) -> Iterator[Planned]:
    """Every pair of a policy and a subject that it judges, policies first.

    `parameters` has one object per policy; without it the defaults count. With `wanted` the pairs are
    these, by number of the policy and positions of what it judges. `unreadable` is what `partly_read` says.
    """
    subjects = estate.subjects
    unreadable = partly_read(subjects) if unreadable is None else unreadable
    neighbours = Neighbours(subjects, unreadable, estate.gaps)
    for number, taken in _taken(bundle, subjects) if wanted is None else sorted(wanted.items()):
        policy = bundle.policies[number]
        undecided = (Unknown(msg=policy.undecided),) if policy.undecided else ()
        consults = policy.header.consults if taken and (unreadable or estate.gaps) else ()
        if consults:
            given = parameters[number] if parameters is not None else policy.header.defaults
            consults = neighbours.telling(consults, given)
        blind, stated = _lost(bundle, number, estate.gaps) if taken and estate.gaps else ((), None)
        for index in sorted(taken):
            subject = subjects[index]
            unknowns: tuple[Unknown, ...] = ()
            if subject.is_gap:
                unknowns = (made(Unknown, msg=subject.unreadable[""], path=""),)
            elif index in unreadable or subject.workspace in unreadable:
                unknowns = _unknowns(selector_of(policy.header), subject, subjects)
            if consults and not subject.is_gap:
                unknowns += neighbours.unknowns(consults, index)
            if not subject.is_gap:
                unknowns += (*blind, *(gap.unknown for gap in (stated.near(subject.home) if stated else ())))
            yield Planned(Pair(number, index, subject.workspace), undecided or unknowns)


def _lost(bundle: Bundle, number: int, gaps: Sequence[Gap]) -> tuple[tuple[Unknown, ...], Gaps | None]:
    """What is not all there of what a policy may read without saying so in its header.

    That is anything where it reaches others and says nothing of them, and metrics and quotas where it names them.
    Policies in the forms of others judge documents, which are all there.
    """
    policy, reach = bundle.policies[number], bundle.reaches[number]
    if policy.input_form != "policy":
        return (), None
    is_blind = reach.others and not policy.header.consults
    unknowns = (gap.unknown for gap in gaps if is_blind and not gap.is_stated)
    stated = [gap for gap in gaps if gap.is_stated and gap.kind in reach.collected]
    return tuple(islice(unknowns, _MOST)), Gaps(stated) if stated else None


def partly_read(subjects: Iterable[Subject]) -> frozenset[int]:
    """The positions of the subjects of which not all can be read."""
    return frozenset(
        at for at, subject in enumerate(subjects) if (subject.unreadable or subject.carried) and not subject.is_gap
    )


def _taken(bundle: Bundle, subjects: Sequence[Subject]) -> Iterator[tuple[int, Collection[int]]]:
    """The number of each policy, and what it judges."""
    narrowing = Narrowing(subjects)
    return (
        (number, narrowing.taken(selector_of(policy.header).judges)) for number, policy in enumerate(bundle.policies)
    )


def _unknowns(selector: Selector, subject: Subject, subjects: Sequence[Subject]) -> tuple[Unknown, ...]:
    """One unknown for every unreadable field that the policy inspects or is narrowed by."""
    pointers = selector.reads[subject.judged_type]
    found = {*unread(subject.document, subject.unreadable, subject.carried, pointers)}
    if selector.in_workspace and subject.workspace >= 0:
        above = subjects[subject.workspace]
        lost = unread(above.document, above.unreadable, above.carried, selector.in_workspace)
        found |= {(f"{WORKSPACE}{path}", reason) for path, reason in lost}
    return tuple(made(Unknown, msg=reason, path=path) for path, reason in sorted(found)) if found else ()
