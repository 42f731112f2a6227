"""Which policies apply to which subjects, and which of these pairs a missing or unresolved field already decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from policyeng.bundle import Bundle
from policyeng.engines import Pair
from policyeng.evaluation.consulted import Neighbours
from policyeng.evaluation.estate import Estate, Subject
from policyeng.evaluation.narrowing import Narrowing
from policyeng.evaluation.pointers import unread
from policyeng.evaluation.selectors import WORKSPACE, Selector, selector_of
from policyeng.models import JsonObject, Unknown, made


class Planned(NamedTuple):
    """A pair to judge; with `unknowns` it is decided already and no engine sees it."""

    pair: Pair
    unknowns: tuple[Unknown, ...] = ()


def plan(bundle: Bundle, estate: Estate, parameters: Sequence[JsonObject] | None = None) -> Iterator[Planned]:
    """Every pair of a policy and a subject that it judges, policies first.

    `parameters` has one object per policy; without it the defaults count.
    """
    subjects = estate.subjects
    unreadable = {index for index, subject in enumerate(subjects) if subject.unreadable or subject.carried}
    partly = unreadable | {index for index, subject in enumerate(subjects) if subject.workspace in unreadable}
    narrowing = Narrowing(subjects)
    neighbours = Neighbours(subjects, unreadable)
    for number, policy in enumerate(bundle.policies):
        selector = selector_of(policy.header)
        taken = narrowing.taken(selector.judges)
        undecided = (Unknown(msg=policy.undecided),) if policy.undecided else ()
        consults = policy.header.consults if taken and unreadable else ()
        if consults:
            given = parameters[number] if parameters is not None else policy.header.defaults
            consults = neighbours.telling(consults, given)
        for index in taken:
            unknowns = _unknowns(selector, subjects[index], subjects) if index in partly else ()
            if consults:
                unknowns += neighbours.unknowns(consults, index)
            yield Planned(Pair(number, index, subjects[index].workspace), undecided or unknowns)


def _unknowns(selector: Selector, subject: Subject, subjects: Sequence[Subject]) -> tuple[Unknown, ...]:
    """One unknown for every unreadable field that the policy inspects or is narrowed by."""
    pointers = selector.reads[subject.judged_type]
    found = {*unread(subject.document, subject.unreadable, subject.carried, pointers)}
    if selector.in_workspace and subject.workspace >= 0:
        above = subjects[subject.workspace]
        lost = unread(above.document, above.unreadable, above.carried, selector.in_workspace)
        found |= {(f"{WORKSPACE}{path}", reason) for path, reason in lost}
    return tuple(made(Unknown, msg=reason, path=path) for path, reason in sorted(found)) if found else ()
