"""What a policy does with the clock: nothing, only comparisons with known times, or whatever it likes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum

import orjson

from policyeng.bundle.declaration import Policy
from policyeng.bundle.header_parts import PARAMETER, duration
from policyeng.bundle.reaching import Reach
from policyeng.models import JsonObject

#: Modules that know neither clock nor chance nor the machine, but for `_MACHINE` in them.
_PURE = re.compile(
    r"(?:__future__|abc|base64|bisect|collections|dataclasses|datetime|decimal|enum|fractions|functools|hashlib|heapq"
    r"|ipaddress|itertools|json|math|numbers|operator|re|statistics|string|textwrap|typing|types|unicodedata"
    r"|urllib\.parse|zoneinfo)(?:\..*)?"
    r"|policyeng(?:\.bundle|\.facts.*|\.models.*)?"
)
#: What reads the machine's clock, files or input, or hangs on what else runs in the process.
_MACHINE = frozenset({"now", "today", "utcnow", "fromtimestamp", "open", "input", "id", "hash", "globals", "global"})
_TIME = re.compile(rb"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)?)?")
#: Beyond the first two `lib/times.rego` takes all moments for alike, beyond the others Rego cannot count nanoseconds.
_ENDS = (
    *(datetime(1678, 1, 1, tzinfo=UTC), datetime(2262, 1, 1, tzinfo=UTC)),
    *(datetime(1677, 9, 21, 0, 12, 43, 145224, UTC), datetime(2262, 4, 11, 23, 47, 16, 854775, UTC)),
)


class Clock(Enum):
    """What is known of a policy's use of the clock.

    Attributes:
        UNREAD: it cannot read it.
        WATCHED: it is Python that reads no other clock, so what it asks of this one can be watched.
        STATED: its header says what it compares it with.
        FREE: nothing is known.
    """

    UNREAD = "unread"
    WATCHED = "watched"
    STATED = "stated"
    FREE = "free"


def clock_of(policy: Policy, reach: Reach) -> Clock:
    """What is known of a policy's use of the clock; both engines refuse Rego that reads another one or chance."""
    if policy.rules:
        # A document that is judged as it is has no clock beside it.
        reads = reach.clock and policy.input_form == "policy"
    elif _is_pure(policy):
        return Clock.WATCHED if reach.clock else Clock.UNREAD
    else:
        reads = True
    if not reads:
        return Clock.UNREAD
    return Clock.STATED if policy.header.clock else Clock.FREE


def _is_pure(policy: Policy) -> bool:
    """Whether Python imports nothing, and names nothing, by which it could learn more than it is given."""
    text = policy.python.text if policy.python else b""
    return bool(text) and all(map(_is_harmless, ast.walk(ast.parse(text))))


def _is_harmless(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return all(_PURE.fullmatch(alias.name) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        names = {alias.name for alias in node.names}
        return not node.level and bool(_PURE.fullmatch(node.module or ".")) and names.isdisjoint(_MACHINE)
    if isinstance(node, ast.Global | ast.Nonlocal):
        return False
    named = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return named not in _MACHINE and not (named.startswith("__") and named != "__name__")


def moments_of(policy: Policy, parameters: JsonObject, times: Iterable[datetime]) -> Iterator[datetime]:
    """The moments at which a policy whose use of the clock is STATED may say something else.

    Args:
        policy: its header says by how much it moves times.
        parameters: what it judges with.
        times: what stands in everything else that it reads.
    """
    moves = {timedelta(), *_moves(policy.header.clock, parameters)}
    for time in (*times, *times_in(orjson.dumps(parameters)), *_ENDS):
        for move in moves:
            for moved in (-move, move):
                try:
                    yield time + moved
                except OverflowError:  # before the year 1 or after 9999
                    continue


def _moves(clock: str | tuple[str, ...], parameters: Mapping[str, object]) -> Iterator[timedelta]:
    for entry in clock if isinstance(clock, tuple) else ():
        if not entry.startswith(PARAMETER):
            yield duration(entry)
            continue
        days = parameters.get(entry.removeprefix(PARAMETER))
        if isinstance(days, int | float):
            try:
                yield abs(timedelta(days=days))
            except OverflowError:  # longer than the calendar
                continue


def times_in(document: bytes) -> frozenset[datetime]:
    """Every date and time that stands in the texts of a JSON document; one without a zone is in UTC."""
    return frozenset(time for text in {*_TIME.findall(document)} if (time := _time(text.decode().upper())) is not None)


def _time(text: str) -> datetime | None:
    try:
        read = datetime.fromisoformat(text)
        return read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # a 30th of February is no moment; nor is what no calendar reaches
        return None
