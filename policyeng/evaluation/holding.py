"""Until when an evaluation holds: what came of judging serves later clocks up to the next moment that could change it.

Such moments are those that policies compare the clock with, as they were watched to do in Python and as their headers
state of Rego (`clock`), and the begins and ends of exemptions. Law 16 tries it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from policyeng.bundle import Policy
from policyeng.bundle.clocks import Clock, moments_of, times_in
from policyeng.engines import Judgement, Work, judge
from policyeng.evaluation import concluded
from policyeng.evaluation.findings import findings_of, order_of
from policyeng.evaluation.prepared import Prepared
from policyeng.evaluation.terms import Terms
from policyeng.evaluation.watching import Watch
from policyeng.garbage import uncollected
from policyeng.models import Evaluation

#: How near to a moment nothing is said to hold: numbers of days are not exact, and Rego knows nanoseconds.
_BLUR = timedelta(milliseconds=1)
_NONE = timedelta()


class Holding(NamedTuple):
    """An evaluation, and what it is worth at later clocks.

    Attributes:
        until: the first moment at which it may be another one; its own clock where it holds at no other, None if never.
        again: the ids of the policies that are judged again at every other clock.
    """

    evaluation: Evaluation
    until: datetime | None
    again: tuple[str, ...] = ()

    def holds_at(self, moment: datetime) -> bool:
        """Whether it serves a clock, once the policies named in `again` are judged at it."""
        own = self.evaluation.as_of
        return moment == own or (own < moment and (self.until is None or moment < self.until))


@uncollected()
def held(prepared: Prepared, terms: Terms) -> Holding:
    """Judge what was made ready, and say until when that holds.

    Raises:
        UsageError: the engine does not exist.
        EngineError: the bundle does not compile, or the OPA server does not answer for every pair.
    """
    judgements, watched = _judged(prepared, terms)
    evaluation = concluded(prepared, findings_of(prepared, judgements), terms)
    return Holding(evaluation, _until(terms, [*watched.moments, *_ends(terms)]), tuple(sorted(watched.again)))


@uncollected()
def taken_over(earlier: Holding, terms: Terms, prepare: Callable[[], Prepared]) -> Holding:
    """What `held` would give at a clock at which an earlier one holds; only what has to be is judged again.

    Args:
        earlier: with the same policies, parameters, snapshot and terms, but for the clock.
        terms: those of now.
        prepare: makes the snapshot ready; not called where nothing is judged again.

    Raises:
        UsageError, EngineError: as `held` says.
    """
    moment = terms.moment
    if moment == earlier.evaluation.as_of or not earlier.again:
        return earlier._replace(evaluation=earlier.evaluation.model_copy(update={"as_of": moment}))
    whole = prepare()
    part = whole.only(lambda policy, _: policy.id in earlier.again)
    judgements, watched = _judged(part, terms)
    kept = [finding for finding in earlier.evaluation.findings if finding.policy not in earlier.again]
    findings = sorted([*kept, *findings_of(part, judgements)], key=order_of)
    known = [earlier.until + _BLUR] if earlier.until else []
    until = _until(terms, [*watched.moments, *known])
    return Holding(concluded(whole, findings, terms), until, tuple(sorted(watched.again)))


class _Watched(NamedTuple):
    """The moments at which judging could come to something else, and the ids of policies of which they are unknown."""

    moments: set[datetime]
    again: set[str]


def _judged(prepared: Prepared, terms: Terms) -> tuple[list[Judgement], _Watched]:
    """Judgements of the undecided pairs in their order."""
    bundle, watched = prepared.bundle, _Watched(set(), set())
    work = prepared.work(terms.moment, terms.threads)
    numbers = {pair.policy for pair in work.pairs}
    own = {number for number in numbers if bundle.clocks[number] is Clock.WATCHED}
    plain = replace(work, pairs=[pair for pair in work.pairs if pair.policy not in own])
    said = dict(zip(plain.pairs, judge(plain, terms.engine, terms.opa), strict=True))
    for number in own:
        pairs = [pair for pair in work.pairs if pair.policy == number]
        said |= zip(pairs, _watched(replace(work, pairs=pairs), bundle.policies[number], watched), strict=True)
    watched.moments.update(_stated(prepared, [number for number in numbers if bundle.clocks[number] is Clock.STATED]))
    watched.again.update(bundle.policies[number].id for number in numbers if bundle.clocks[number] is Clock.FREE)
    # What goes wrong may do so for want of time.
    watched.again.update(bundle.policies[pair.policy].id for pair, one in said.items() if one.error is not None)
    return [said[pair] for pair in work.pairs], watched


def _watched(work: Work, policy: Policy, watched: _Watched) -> Sequence[Judgement]:
    """What a policy says with its eyes on the clock; without a watch where it asks more than can be watched."""
    watch = Watch(work.as_of)
    judgements = judge(replace(work, as_of=watch.clock, snapshot=work.snapshot.fresh()))
    if watch.spoilt or any(one.error is not None for one in judgements):
        watched.again.add(policy.id)
        return judge(replace(work, snapshot=work.snapshot.fresh()))
    watched.moments.update(watch.moments)
    return judgements


def _stated(prepared: Prepared, numbers: Collection[int]) -> Iterator[datetime]:
    if numbers:
        bundle = prepared.bundle
        times = times_in(prepared.estate.document) | _times_of_data(bundle.data_bytes)
        for number in numbers:
            yield from moments_of(bundle.policies[number], prepared.parameters[number], times)


@lru_cache(maxsize=2)
def _times_of_data(document: bytes) -> frozenset[datetime]:
    return times_in(document)


def _ends(terms: Terms) -> Iterator[datetime]:
    for exemption in terms.exemptions:
        yield from (exemption.created_at, exemption.expires_at)


def _until(terms: Terms, moments: Iterable[datetime]) -> datetime | None:
    """The first of the moments that lie ahead; that of the clock where it is too near to one of them."""
    now = terms.moment
    ahead = [moment - now for moment in moments if moment - now > -_BLUR]
    return now + max(min(ahead) - _BLUR, _NONE) if ahead else None
