"""Times at which findings of clock-dependent policies can change."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.rego_trees import trees_of
from policyeng.models import JsonObject, lowered
from policyeng.rego.syntax import Number, Scalar, walk

_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?)?")
_NUMBER = re.compile(r"\d{1,4}")
_MOST_DAYS = 4000


def moments(
    bundle: Bundle, parameters: Iterable[JsonObject], documents: Iterable[object], types: Collection[str]
) -> list[datetime]:
    """Return the times at which findings can change, in order.

    They are the dates in the bundle's data, in the code of policies that read the clock and in `documents`, and these
    dates moved in both directions by the numbers of days in parameters and code of these policies.

    Args:
        bundle: the active policies.
        parameters: the parameters of each policy, by its position.
        documents: estates and the statements about them.
        types: the types in the estates, in lower case as in `judges`; other policies have no findings.
    """
    clocked = [
        (policy, given)
        for policy, given, reads in zip(bundle.policies, parameters, bundle.clocked, strict=True)
        if reads and any(lowered(target.type) in types for target in policy.header.judges)
    ]
    constants = [constant for policy, _ in clocked for constant in _constants(policy, bundle)]
    known_dates = (bundle.data.get("facts", {}), list(documents), constants)
    dates = {date for document in known_dates for date in _dates(document)}
    days = {0, *_whole(constants)}
    days |= {number for _, given in clocked for number in _whole(given)}
    near = sorted(number for number in days if number <= _MOST_DAYS)
    return sorted({moved for date in dates for number in near for moved in _moved(date, number)})


def _python_texts(policy: Policy, bundle: Bundle) -> list[str]:
    """Return the text of a policy in Python; empty where it is not to be had."""
    if policy.python is not None and policy.python.text:  # of an archive, too
        return [policy.python.text.decode(errors="replace")]
    files = [root / policy.file for root in bundle.roots]
    return [file.read_text(encoding="utf-8") for file in files if file.is_file()]


def _constants(policy: Policy, bundle: Bundle) -> Iterator[object]:
    """Yield the texts and the whole numbers in the code of a policy."""
    if policy.azure is not None:
        yield from policy.azure.constants
        return
    if not policy.rules:
        nodes = (node for text in _python_texts(policy, bundle) for node in ast.walk(ast.parse(text)))
        yield from (node.value for node in nodes if isinstance(node, ast.Constant))
        return
    for tree in trees_of(bundle.modules, bundle.rego_v0, policy.package):
        for node in walk(tree.rules):
            if isinstance(node, Scalar):
                yield node.value
            elif isinstance(node, Number) and _NUMBER.fullmatch(node.text):
                yield int(node.text)


def _dates(document: object) -> Iterator[datetime]:
    """Yield every date and time in the texts of a document; without a time zone it is in UTC."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            if key != "sources":  # the date when a page was read is irrelevant
                yield from _dates(value)
    elif isinstance(document, list | tuple):
        for value in document:
            yield from _dates(value)
    elif isinstance(document, str):
        for text in _DATE.findall(document):
            try:
                date = datetime.fromisoformat(text)
            except ValueError:  # a 30th of February is no moment
                continue
            yield date.astimezone(UTC) if date.tzinfo else date.replace(tzinfo=UTC)


def _whole(document: object) -> Iterator[int]:
    if isinstance(document, Mapping):
        for value in document.values():
            yield from _whole(value)
    elif isinstance(document, list):
        for value in document:
            yield from _whole(value)
    elif isinstance(document, int) and not isinstance(document, bool) and document >= 0:
        yield document


def _moved(date: datetime, days: int) -> Iterator[datetime]:
    for sign in (-1, 1):
        try:
            yield date + sign * timedelta(days=days)
        except OverflowError:  # before the year 1 or after 9999
            continue


_SECOND = timedelta(seconds=1)


class PossibleSpan(NamedTuple):
    """A time in which a class is possible, or is not; `begins` is None where nothing is known before."""

    begins: datetime | None
    possible: bool


def samples(moments: Sequence[datetime], as_of: datetime) -> list[datetime]:
    """Return the moments in order with the clock among them, one between each two, and one before and after them all.

    A finding may change at a moment or right after it; the samples in between distinguish these.
    """
    known = sorted({*moments, as_of})
    between = [_find_midpoint(one, other) for one, other in pairwise(known)]
    day = timedelta(days=1)
    outer = [moved for moved in (_shift(known[0], -day), _shift(known[-1], day)) if moved]
    return sorted({*known, *between, *outer})


def spans(
    sampled: Sequence[datetime], results: Sequence[bool], holds: Callable[[datetime], bool]
) -> list[PossibleSpan]:
    """Return the times between changes.

    Args:
        sampled: moments in order.
        results: at each of them, whether it is true.
        holds: whether it is true at a moment; called between two samples that differ.
    """
    found = [PossibleSpan(None, results[0])]
    for number in range(1, len(sampled)):
        if results[number] != results[number - 1]:
            begins = _find_first_change(sampled[number - 1], sampled[number], results[number], holds)
            found.append(PossibleSpan(begins, results[number]))
    return found


def _find_first_change(before: datetime, after: datetime, wanted: bool, holds: Callable[[datetime], bool]) -> datetime:
    """Return the first second after one moment, up to another, at which the answer is another one."""
    while after - before > _SECOND:
        middle = _find_midpoint(before, after)
        if holds(middle) == wanted:
            after = middle
        else:
            before = middle
    return after


def _find_midpoint(one: datetime, other: datetime) -> datetime:
    middle = one + (other - one) / 2
    rounded = middle.replace(microsecond=0)
    return rounded if rounded > one else middle


def _shift(moment: datetime, by: timedelta) -> datetime | None:
    try:
        return moment + by
    except OverflowError:
        return None


def day(moment: datetime) -> str:
    """Return a moment as its day, with the time where that is not its first second."""
    moment = moment.astimezone(UTC)
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return f"{moment:%Y-%m-%d}" if moment - midnight <= _SECOND else f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def describe_spans(found: Sequence[PossibleSpan]) -> str:
    """Return the spans in words."""
    if len(found) == 1:
        return "possible at all known dates" if found[0].possible else "impossible at all known dates"
    parts = []
    for number, span in enumerate(found):
        ends = found[number + 1].begins if number + 1 < len(found) else None
        word = "possible" if span.possible else "impossible"
        since = f" from {day(span.begins)} on" if span.begins else ""
        until = f" {_until(ends)}" if ends else ""
        parts.append(f"{word}{since.removesuffix(' on') if until else since}{until}")
    return ", ".join(parts)


def _until(ends: datetime) -> str:
    """Until the last day before something ends; where it ends within a day, before that moment."""
    midnight = ends.replace(hour=0, minute=0, second=0, microsecond=0)
    return f"until {day(ends - timedelta(days=1))}" if ends - midnight <= _SECOND else f"before {day(ends)}"
