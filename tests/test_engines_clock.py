"""Between the clocks that an evaluation records, every evaluation comes to the same."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from policyeng.bundle import Bundle, load_bundle
from policyeng.evaluation import EvaluationContext, EvaluationOptions, evaluate_pairs, prepare
from policyeng.models import Findings
from policyeng.rego.clock import Clock, Unchanged, microseconds_of
from policyeng.verify.generators.examples import Examples
from tests.bundles import rego, snapshot, workspace, write
from tests.effort import effort

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
MICROSECOND, DAY = timedelta(microseconds=1), timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WRITTEN = ("2026-05-30T00:00:00Z", "2026-06-11T12:00:00.000001Z", "2026-06-01T14:00:00+02:00", "2027-01-01T00:00:00Z")

_NS = "time.parse_rfc3339_ns(input.as_of)"
_AT = "time.parse_rfc3339_ns(input.resource.properties.at)"
_DAY_NS = "86400000000000"
_DENY = 'deny contains {"msg": "m", "path": "", "actual": null, "expected": null} if '
_AGE = 'deny contains {"msg": "m", "path": "", "actual": age, "expected": null} if '

#: Bodies of rules that compare the clock, and do nothing else with it.
COMPARED_IN_REGO = [
    f"{_DENY}{{ {_NS} >= {_AT} }}",
    f"{_DENY}{{ {_NS} > {_AT} }}",
    f"{_DENY}{{ {_AT} <= {_NS} }}",
    f"{_DENY}{{ {_NS} - {_AT} > 3 * {_DAY_NS} }}",
    f"{_DENY}{{ {_AT} - {_NS} <= 10 * {_DAY_NS} }}",
    f"{_DENY}{{ [0, {_NS}] < [0, {_AT}] }}",
    f"{_DENY}{{ [1, {_NS}] < [0, {_AT}] }}",
    f"{_DENY}{{ substring(input.as_of, 0, 4) == `2026` }}",
    f"late(now, at) if now > at\n{_DENY}{{ late({_NS}, {_AT}) }}",
    f"limits := [1, {_NS}]\n{_DENY}{{ limits[1] > {_AT}; count(limits) == 2 }}",
    f"{_DENY}{{ is_string(input.as_of); {_NS} > {_AT} }}",
    f"{_DENY}{{ now := {{`now`: {_NS}}}; every _, value in now {{ value < {_AT} }} }}",
]
COMPARED_IN_REGO += [body.replace(_NS, "time.now_ns()") for body in COMPARED_IN_REGO if _NS in body]
#: Bodies of rules that do something else with it.
USED_IN_REGO = [
    f"{_AGE}{{ age := round(({_NS} - {_AT}) / {_DAY_NS}) }}",
    f"{_AGE}{{ age := {_NS} - {_AT} }}",
    f"{_AGE}{{ age := input.as_of }}",
    f"{_AGE}{{ age := {{`a`: [{_NS}]}} }}",
    f"{_DENY}{{ time.weekday({_NS}) == `Monday` }}",
    f"{_DENY}{{ input.as_of > input.resource.properties.at }}",
    f"{_DENY}{{ {_NS} == {_AT} }}",
    f"{_DENY}{{ startswith(input.as_of, `2026-06-0`) }}",
    f"{_DENY}{{ {_NS} % 2 == 0 }}",
    f"{_DENY}{{ {{x | x := {_NS}}} == {{{_AT}}} }}",
    f"{_DENY}{{ max([{_NS}, {_AT}]) == {_AT} }}",
    f"{_DENY}{{ some i; [input.as_of, `x`][i] == `x`; i == 1 }}",
    f"{_DENY}{{ not input.as_of == `2026-06-01T12:00:00Z` }}",
    f"{_DENY}{{ walk(input, [path, value]); value == `2026-06-01T12:00:00Z` }}",
    f'{_AGE}{{ age := sprintf("%v", [input.as_of]) }}',
    f"{_DENY}{{ {_NS} > {_AT} with input.as_of as `2026-06-01T12:00:00Z`; input.as_of }}",
]

_PYTHON = '''\
"""A policy."""

from datetime import UTC, date, datetime, timedelta

from policyeng import Denial, policy
from policyeng.facts.times import moment

{before}

@policy(id="T-A-1", title="t", severity="low", judges=["Microsoft.MachineLearningServices/workspaces"])
def a(given):
    """Deny some."""
    clock, at = given.as_of, moment(given.resource["properties"]["at"])
    {body}
'''
_IF = "if {}: yield Denial(msg='m', path='', actual=None, expected=None)"
_DENIAL = "yield Denial(msg='m', path='', actual={}, expected=None)"

COMPARED_IN_PYTHON = [
    _IF.format("clock >= at"),
    _IF.format("at >= clock"),
    _IF.format("at < clock"),
    _IF.format("clock - at > timedelta(days=3)"),
    _IF.format("at - clock <= timedelta(days=10)"),
    _IF.format("timedelta(days=10) < at - clock"),
    _IF.format("(at - clock) / timedelta(days=1) <= 10"),
    _IF.format("(clock - at) / timedelta(days=1) > 1.3"),
    _IF.format("(clock - at) // timedelta(hours=1) >= 4"),
    _IF.format("(clock - at).days >= 2"),
    _IF.format("(at - clock).days < 10"),
    _IF.format("(at - clock).total_seconds() < 36000.5"),
    _IF.format("clock + timedelta(days=10) > at"),
    _IF.format("timedelta(days=10) + clock > at"),
    _IF.format("clock - timedelta(days=2) > at"),
    _IF.format("isinstance(clock, datetime) and clock.tzinfo and max(clock, at) >= at and clock > at"),
    _IF.format("given.snapshot.once(('T-A-1', at), lambda: clock > at)"),
]
USED_IN_PYTHON = [
    _DENIAL.format("(clock - at).days"),
    _DENIAL.format("(clock - at) / timedelta(days=1)"),
    _DENIAL.format("str(clock)"),
    _DENIAL.format("f'{clock}'"),
    _DENIAL.format("clock"),
    _DENIAL.format("[clock - at]"),
    _DENIAL.format("clock.year"),
    _DENIAL.format("int((clock - at).total_seconds() // 86400)"),
    _IF.format("clock.date() > at.date()"),
    _IF.format("clock == at"),
    _IF.format("clock != at"),
    _IF.format("{clock: 1}.get(at)"),
    _IF.format("(clock - at) * 2 > timedelta(days=3)"),
    _IF.format("-(clock - at) > timedelta(days=3)"),
    _IF.format("abs(clock - at) > timedelta(days=3)"),
    _IF.format("clock.weekday() == 0"),
    _IF.format("(clock - at).days % 2"),
    _IF.format("clock - at"),
    _IF.format("datetime.combine(clock, at.timetz()) > at"),
    _IF.format("type(clock) is datetime and clock > at"),
    _IF.format("clock > clock - timedelta(days=1) and clock in [at]"),
    "try:\n        found = datetime.combine(clock, at.timetz())\n    except TypeError:\n        found = at\n    "
    + _IF.format("found > at"),
]
#: What is kept from one evaluation for the next one would not be recorded again.
KEEPING = [
    ("_SEEN = {1: 2}", "_SEEN.setdefault(3, clock > at)"),
    ("_SEEN = [0]", "_SEEN[0] = clock > at"),
    ("class Seen:\n    x = 0", "Seen.x = clock > at"),
    ("_SEEN = {}", "seen = _SEEN\n    seen.update(x=clock > at)"),
    ("_SEEN = set()", "seen = _SEEN\n    seen.add(clock > at)"),
    ("def keep(value, seen=[]):\n    seen.append(value)\n    return seen[0]", "keep(clock > at)"),
    ("def keep(value, *, seen={}):\n    return seen.setdefault(1, value)", "keep(clock > at)"),
]


def bundle_of(folder: Path, language: str, body: str, before: str = "") -> Bundle:
    """A bundle of one policy."""
    if language == "rego":
        text = rego("a", body.replace("`", '"'))
        return load_bundle(write(folder, {"area/a/a.rego": text}))
    return load_bundle(write(folder, {"area/a/a.py": _PYTHON.format(body=body, before=before)}))


def context_of(bundle: Bundle) -> EvaluationContext:
    """Workspaces with some dates."""
    return prepare(bundle, snapshot(*(workspace(f"w{number}", at=at) for number, at in enumerate(WRITTEN))))


def recorded(context: EvaluationContext, now: datetime) -> tuple[Findings, Unchanged | None]:
    """What is found at a clock, and at which others."""
    clock = Clock(now)
    return evaluate_pairs(context, EvaluationOptions(now), clock), clock.unchanged


def found_at(context: EvaluationContext, now: datetime) -> Findings:
    """What is found at a clock of which nothing is recorded."""
    return evaluate_pairs(context, EvaluationOptions(now))


def clocks(random: Random, unchanged: Unchanged, count: int = 3) -> list[datetime]:
    """The ends of what is unchanged, and some clocks between them."""
    first, last = (microseconds_of(EPOCH.replace(year=year)) for year in (1000, 4000))
    since = EPOCH + max(first, first if unchanged.since is None else unchanged.since) * MICROSECOND
    until = EPOCH + min(last, last if unchanged.until is None else unchanged.until - 1) * MICROSECOND
    return [since, until, *(since + (until - since) * random.random() for _ in range(count))]


def near(random: Random) -> datetime:
    """A clock near one at which something may change."""
    at = datetime.fromisoformat(random.choice(WRITTEN)) + random.choice((-10, -3, -2, 0, 0, 1, 2, 3, 4)) * DAY
    return (at + random.choice((-1, 0, 0, 1)) * random.choice((MICROSECOND, timedelta(hours=7)))).astimezone(UTC)


def check(context: EvaluationContext, random: Random, moments: Sequence[datetime]) -> int:
    """Compare what is recorded with what is found; at how many clocks something was."""
    known = 0
    for now in moments:
        findings, unchanged = recorded(context, now)
        assert findings == found_at(context, now)
        if unchanged is not None:
            known += 1
            assert unchanged.includes(now)
            for other in clocks(random, unchanged):
                assert unchanged.includes(other)
                assert found_at(context, other) == findings, (now, other)
    return known


@pytest.mark.parametrize(
    ("language", "body"),
    [*(("rego", body) for body in COMPARED_IN_REGO), *(("python", body) for body in COMPARED_IN_PYTHON)],
)
def test_a_clock_that_is_only_compared_has_its_ends(tmp_path: Path, language: str, body: str) -> None:
    """At every clock it is known until when nothing changes, and the findings of all these clocks are the same."""
    context = context_of(bundle_of(tmp_path, language, body))
    random = Random(body)  # noqa: S311  # nothing here is secret

    assert check(context, random, [NOW, *(near(random) for _ in range(effort(12, 100)))]) == 1 + effort(12, 100)


@pytest.mark.parametrize(
    ("language", "body"),
    [*(("rego", body) for body in USED_IN_REGO), *(("python", body) for body in USED_IN_PYTHON)],
)
def test_a_clock_that_is_used_otherwise_has_none(tmp_path: Path, language: str, body: str) -> None:
    """Such as in what is reported; then the findings are those of an evaluation of which nothing is recorded."""
    context = context_of(bundle_of(tmp_path, language, body))
    random = Random(body)  # noqa: S311  # nothing here is secret

    assert check(context, random, [NOW, *(near(random) for _ in range(effort(6, 50)))]) == 0


@pytest.mark.parametrize(("before", "kept"), KEEPING)
def test_a_policy_that_keeps_something_has_none(tmp_path: Path, before: str, kept: str) -> None:
    """What another evaluation compared with the clock is not seen."""
    plain = bundle_of(tmp_path / "plain", "python", _IF.format("clock > at"))
    keeping = bundle_of(tmp_path / "keeping", "python", f"{kept}\n    {_IF.format('clock > at')}", f"{before}\n\n")

    assert recorded(context_of(plain), NOW)[1] is not None
    assert recorded(context_of(keeping), NOW)[1] is None


@pytest.mark.parametrize(
    ("body", "since", "until"),
    [
        ("clock >= at", NOW, datetime(2026, 6, 11, 12, 0, 0, 1, tzinfo=UTC)),
        ("clock > at", datetime(2026, 5, 30, 0, 0, 0, 1, tzinfo=UTC), NOW + MICROSECOND),
        ("(at - clock) / timedelta(days=1) <= 10", datetime(2026, 5, 22, 12, tzinfo=UTC), NOW + MICROSECOND),
        ("(clock - at).days >= 2", NOW - timedelta(hours=12), NOW + 2 * DAY),
    ],
)
def test_the_ends_are_the_nearest_changes(tmp_path: Path, body: str, since: datetime, until: datetime) -> None:
    """To the microsecond."""
    _, unchanged = recorded(context_of(bundle_of(tmp_path, "python", _IF.format(body))), NOW)

    assert unchanged == Unchanged(microseconds_of(since), microseconds_of(until))


@pytest.mark.slow
def test_the_built_in_policies_are_recorded() -> None:
    """On drawn estates, with clocks near the moments at which they may change what they find."""
    bundle = load_bundle()
    examples, known = Examples(bundle), 0
    for number in range(effort(30, 2000)):
        random = Random(f"clock {number}")  # noqa: S311  # nothing here is secret
        example = examples.drawn(random)
        context = prepare(bundle, example.snapshot, example.parameters)
        known += check(context, random, [example.as_of, examples.moment(random)])

    assert known > effort(20, 1500)
