"""Law 14: a value that a header calls stricter adds no denial, and a stricter parameter removes none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from random import Random
from typing import TypeAlias

from policyeng.bundle import Policy
from policyeng.bundle.header import PARAMETER, fits
from policyeng.evaluation.prepared_snapshot import estate_of
from policyeng.facts.times import moment
from policyeng.models import Finding, JsonObject, lowered
from policyeng.verify.generators.json_mutations import Json, put_value
from policyeng.verify.laws.law import Law, Trial, Violation, by_pair, format_finding
from policyeng.verify.laws.read_laws import (
    Attempt,
    Change,
    SnapshotField,
    attempts,
    change_fields,
    count_tests,
    fields_of,
    format_at,
    get_value,
    is_alone,
    judges,
    pair_of,
    reachable,
    reasons,
    vocabulary,
)

#: The direction that is stricter, as in headers.
Way: TypeAlias = str | Sequence[str | bool | int | float]

_ADDED = "a stricter value adds a denial; reverse the comparison, or remove the place from `monotone_in`"
_LOST = "a stricter parameter removes a denial; reverse the comparison, or remove it from `monotone_in`"
_WHOLE = re.compile(r"[0-9]{1,9}", re.ASCII)
_FAR = (0, -1, 1, 1_000_000, -1_000_000)
_DAYS = (1e-6, 1, 7, 30, 365, 3650)


def _find_violations(trial: Trial) -> Violation | None:
    random = trial.random("monotone")
    findings = {finding.policy for finding in trial.evaluation.findings}
    stated = [policy for policy in trial.bundle.policies if policy.header.monotone_in and policy.id in findings]
    fields = {policy.id: places for policy in stated if (places := _fields(policy))}
    bound = [policy for policy in stated if policy.id in fields and not is_alone(trial.bundle, policy)]
    kind = random.random()
    if kind < 0.2:
        return _test_stricter_parameters(trial, random, stated)
    if bound and kind < 0.5:
        return _test_stricter_values(trial, random, _one_by_one(trial, random, bound), most=1)
    return _test_stricter_values(trial, random, attempts(trial, random, fields, of_workloads=kind > 0.8))


def _fields(policy: Policy) -> list[str]:
    return [place for place in policy.header.monotone_in if not place.startswith(PARAMETER)]


def _one_by_one(trial: Trial, random: Random, policies: Sequence[Policy]) -> list[Attempt]:
    """Return all attempts for some policies in random order, those of one policy in a row."""
    before, subjects = by_pair(trial.evaluation), estate_of(trial.snapshot, trial.bundle.facts).subjects
    shuffled = random.sample(policies, len(policies))
    return [
        Attempt(subject, policy, place)
        for policy in shuffled
        for place in random.sample(_fields(policy), len(_fields(policy)))
        for subject in random.sample(subjects, len(subjects))
        if judges(policy, subject) and pair_of(policy, subject) in before
    ]


LAW = Law(
    number=14,
    name="monotone",
    sentence="a value that a policy calls stricter adds no denial, and a stricter parameter removes none",
    reference="metamorphic relations of monotony: Chen et al., Metamorphic testing (ACM CSUR 51, 2018)",
    violated=_find_violations,
)


def _test_stricter_values(
    trial: Trial, random: Random, attempted: Iterable[Attempt], most: int | None = None
) -> Violation | None:
    """Return the first resource with more denials after a stricter value is written at a place of it.

    At most `most` of the attempts change something: if a policy reads neighbors, a stricter value of one can add a
    denial about another.
    """
    before, snapshot, written = by_pair(trial.evaluation), trial.snapshot, list[tuple[Attempt, list[SnapshotField]]]()
    for attempt in attempted:
        subject, policy, place = attempt
        change = _make_stricter(random, policy.header.monotone_in[place], _constants(trial, policy))
        snapshot, changed_fields = change_fields(snapshot, fields_of(snapshot, subject, place), change)
        written += [(attempt, changed_fields)] if changed_fields else []
        if len(written) == most:
            break
    after = by_pair(trial.judged(snapshot)) if written else {}
    for (subject, policy, place), changed_fields in written:
        pair = pair_of(policy, subject)
        count_tests(trial.grounds)["monotone", policy.id, place] += 1
        if not reasons(after.get(pair)) <= reasons(before[pair]):
            shown = [format_at(snapshot, field) for field in changed_fields]
            return Violation(_ADDED, policy.id, subject.reported_id, (*shown, *_both(before[pair], after.get(pair))))
    return None


def _make_stricter(random: Random, way: Way, constants: Iterable[Json]) -> Change:
    """Return a change that writes a stricter value than the one at a pointer, if there is one."""
    known = list(constants)

    def write(document: JsonObject, pointer: str) -> None:
        place = reachable(random, document, pointer)
        stands, value = get_value(document, place) if place else (False, None)
        if place and (options := list_stricter_values(random, way, value, known) if stands else _strictest(way)):
            put_value(document, place, random.choice(options))

    return write


def _strictest(way: Way) -> list[Json]:
    """Return the values for a place without one: the last value of a list; of numbers, none is known to be stricter."""
    return [] if isinstance(way, str) else [way[-1]]


def list_stricter_values(random: Random, way: Way, value: Json, constants: Iterable[Json]) -> list[Json]:
    """Return values stricter than another one: near it, near the constants of the policy, and far away."""
    if not isinstance(way, str):
        ranks = [rank for rank, one in enumerate(way) if _key(one) == _key(value)]
        return [_format_value(random, one) for one in way[ranks[-1] + 1 :]] if ranks else []
    sign = 1 if way == "higher" else -1
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        numbers = _beyond(int(value), sign, constants)
        return [str(number) for number in numbers if isinstance(number, int) and 0 <= number < 10**9]
    if isinstance(value, str):
        return _moments_beyond(value, sign)
    return _beyond(value, sign, constants) if isinstance(value, int | float) and not isinstance(value, bool) else []


def _key(value: Json) -> object:
    """Return the key under which two values of a list are equal: text ignores case, and true is not 1."""
    return lowered(value) if isinstance(value, str) else (isinstance(value, bool), value)


def _format_value(random: Random, value: Json) -> Json:
    return random.choice((value, value, value.upper(), value.lower())) if isinstance(value, str) else value


def _beyond(value: float, sign: int, constants: Iterable[Json]) -> list[Json]:
    """Return numbers beyond another one: the next, half way, and near the constants; integers if it is one."""
    stated = [one for one in constants if isinstance(one, int | float) and not isinstance(one, bool)]
    near: list[int | float] = [value + sign, value + 2 * sign, value * 2, *_FAR]
    near += [one + step for one in stated for step in (-1, 0, 1)]
    if not isinstance(value, int):
        near += [value + sign * 1e-6, value / 2, *(one + step for one in stated for step in (-1e-6, 1e-6))]
    return [one for one in near if sign * one > sign * value]


def _moments_beyond(text: str, sign: int) -> list[Json]:
    """Moments later or earlier than one that is written as RFC 3339 has it; none for any other text."""
    at = moment(text)
    found: list[Json] = []
    for days in _DAYS if at else ():
        try:
            found.append((at + sign * timedelta(days=days)).isoformat() if at else None)
        except OverflowError:  # the calendar ends
            break
    return found


def _constants(trial: Trial, policy: Policy) -> list[Json]:
    """Return the constants that a policy compares with: its own, and its parameters in the example."""
    given = trial.example.parameters.get(policy.id, {})
    return [*vocabulary(trial.grounds).words[policy.id].own, *given.values()]


def _test_stricter_parameters(trial: Trial, random: Random, stated: Iterable[Policy]) -> Violation | None:
    """Return the first denial that is missing after every policy is evaluated with a stricter parameter."""
    given: dict[str, JsonObject] = {**trial.example.parameters}
    places: dict[str, tuple[str, str]] = {}
    for policy in stated:
        names = [place.removeprefix(PARAMETER) for place in policy.header.monotone_in if place.startswith(PARAMETER)]
        name = random.choice(names) if names else ""
        value = {**policy.header.defaults, **given.get(policy.id, {})}.get(name)
        way = policy.header.monotone_in.get(f"{PARAMETER}{name}", ())
        options = list_stricter_values(random, way, value, _constants(trial, policy)) if names else []
        fitting = [one for one in options if fits(policy.header.parameters[name], one)]
        if fitting:
            chosen = random.choice(fitting)
            given[policy.id] = {**given.get(policy.id, {}), name: chosen}
            places[policy.id] = f"{PARAMETER}{name}", f"`{name}` is {chosen!r} instead of {value!r}"
    after = by_pair(trial.judged(parameters=given)) if places else {}
    for pair, finding in by_pair(trial.evaluation).items():
        if pair[0] in places:
            place, words = places[pair[0]]
            count_tests(trial.grounds)["monotone", pair[0], place] += 1
            if not reasons(finding) <= reasons(after.get(pair)):
                return Violation(_LOST, pair[0], finding.resource, (words, *_both(finding, after.get(pair))))
    return None


def _both(before: Finding, after: Finding | None) -> tuple[str, str]:
    return f"before: {format_finding(before)}", f"after:  {format_finding(after)}"
