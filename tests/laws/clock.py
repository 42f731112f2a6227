"""What is said to hold until a moment is what judging anew gives at every clock before it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from policyeng.bundle.clocks import Clock, times_in
from policyeng.evaluation import Prepared, evaluated
from policyeng.evaluation.holding import Holding, held, taken_over
from policyeng.evaluation.terms import Terms
from policyeng.models import Evaluation
from policyeng.report import json
from policyeng.verify.laws.law import Trial, Violation, first_difference

_OTHERWISE = "at a clock before the moment until which its finding holds, it is another one; correct its `clock`"
_WATCHED = "it says something else while it is watched what it asks of the clock"
_SUMMED = "what is taken over to another clock is counted, summed up or ordered otherwise"
_UNTIL = "what is taken over to another clock holds until another moment"
#: How far off clocks are tried, as powers of ten in seconds: from a tenth of one to thirty years.
_REACHES = (-1.0, 9.0)
#: At how many clocks those policies are tried once more that can read one.
_FURTHER = 4


def violated(trial: Trial) -> Violation | None:
    """What is taken over to a later clock and is not what judging anew gives."""
    random, whole = trial.random("clock"), trial.prepared
    terms = Terms(trial.example.as_of, trial.example.exemptions)
    clocks = dict(zip((policy.id for policy in trial.bundle.policies), trial.bundle.clocks, strict=True))
    reading = whole.only(lambda policy, _: clocks[policy.id] is not Clock.UNREAD)
    holding = held(whole, terms)
    found = _unlike(_anew(whole, terms), holding.evaluation, _WATCHED) or _later(random, whole, terms, holding)
    if found is None and reading.planned:
        attempts = (_elsewhen(random, reading, terms) for _ in range(_FURTHER))
        found = next((violation for violation in attempts if violation), None)
    trial.grounds.remark("clock", "examples that hold at another clock than their own", int(_is_long(holding)))
    return found


def _elsewhen(random: Random, prepared: Prepared, terms: Terms) -> Violation | None:
    """What is wrong with an evaluation at a clock near a time that stands in the estate, or with taking it over."""
    stated = sorted(times_in(prepared.estate.document)) or [terms.moment]
    with suppress(OverflowError):  # the calendar ends there
        near = random.choice(stated) + random.choice((-1, 1)) * _reach(random)
        begin = replace(terms, as_of=near)
        holding = held(prepared, begin)
        found = _unlike(_anew(prepared, begin), holding.evaluation, _WATCHED)
        return found or _later(random, prepared, begin, holding)
    return None


def _later(random: Random, prepared: Prepared, terms: Terms, holding: Holding) -> Violation | None:
    """What is wrong with taking an evaluation over to a clock at which it is said to hold."""
    later = _clock(random, holding)
    if later is None:
        return None
    then = replace(terms, as_of=later)
    taken, anew = taken_over(holding, then, lambda: prepared), held(prepared, then)
    found = _unlike(_anew(prepared, then), taken.evaluation, _OTHERWISE)
    if found is None and taken[1:] != anew[1:]:
        found = Violation(_UNTIL, lines=(f"taken over: {taken[1:]}", f"anew:       {anew[1:]}"))
    return found and replace(found, lines=(f"at {terms.moment.isoformat()} and at {later.isoformat()}", *found.lines))


def _clock(random: Random, holding: Holding) -> datetime | None:
    """A clock at which an evaluation holds, beside its own; None where there is none."""
    own, until = holding.evaluation.as_of, holding.until
    ahead = (until or datetime.max.replace(tzinfo=own.tzinfo)) - own
    later = own + min(random.choice((ahead, _reach(random))), ahead - timedelta.resolution)
    return later if later > own else None


def _reach(random: Random) -> timedelta:
    return timedelta(seconds=10 ** random.uniform(*_REACHES))


def _is_long(holding: Holding) -> bool:
    return holding.until != holding.evaluation.as_of


def _anew(prepared: Prepared, terms: Terms) -> Evaluation:
    return evaluated(prepared, as_of=terms.as_of, exemptions=terms.exemptions)


def _unlike(expected: Evaluation, found: Evaluation, message: str) -> Violation | None:
    if json.render(expected) == json.render(found):
        return None
    difference = first_difference(expected, found, lambda finding: finding)
    return replace(difference, message=message) if difference else Violation(_SUMMED)
