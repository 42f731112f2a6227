"""Spans of findings: changes by a run, and reading."""

from __future__ import annotations

import bisect
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, collate, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from policyeng.audit.records import FindingSpan
from policyeng.audit.store.connection import streamed
from policyeng.audit.store.digests import SpanState, part_key, span_key
from policyeng.audit.store.tables import SPANS
from policyeng.models import Outcome, Severity

#: Above every digit of a digest: the end of the keys that begin alike.
_ABOVE = "g"


def load_span_states(connection: Connection, estate: str, part: str) -> set[SpanState]:
    """Return the span states of a part in the newest run of its estate."""
    begin = part_key(part)
    rows = connection.execute(
        select(*(SPANS.c[name] for name in SpanState._fields)).where(
            SPANS.c.estate == estate, SPANS.c.key >= begin, SPANS.c.key < begin + _ABOVE, SPANS.c.last.is_(None)
        )
    )
    return {SpanState(*row) for row in rows}


def move(
    connection: Connection,
    estate: str,
    part: str,
    *,
    runs: tuple[int, int],
    ends: set[SpanState],
    begins: set[SpanState],
) -> None:
    """End and start spans of a part.

    Args:
        connection: the transaction that makes the run visible.
        estate: the name of the estate.
        part: the name of the part.
        runs: the numbers of the last run of the estate and of this one.
        ends: the states that end.
        begins: the states that start.
    """
    before, now = runs
    if ends:
        ending = update(SPANS).where(
            SPANS.c.estate == estate, SPANS.c.key == bindparam("ended"), SPANS.c.last.is_(None)
        )
        connection.execute(
            ending.values(last=before), [{"ended": span_key(part, standing)} for standing in sorted(ends)]
        )
    if begins:
        connection.execute(
            insert(SPANS),
            [
                {
                    "estate": estate,
                    "key": span_key(part, standing),
                    "first": now,
                    "last": None,
                    "part": part,
                    **standing._asdict(),
                }
                for standing in sorted(begins)
            ],
        )


class Turned(NamedTuple):
    """The changes of a run, as numbers of failures.

    Attributes:
        new: those that the previous run did not have.
        fixed: those that only the previous run had, in parts that this one could read.
        lost: those that only the previous run had, in parts that are gone or could not be read.
    """

    new: int
    fixed: int
    lost: int


def list_span_changes(connection: Connection, estate: str, number: int, before: int, read: Container[str]) -> Turned:
    """Return the changes of a run.

    Args:
        connection: the connection to read from.
        estate: the name of the estate.
        number: the number of the run.
        before: the number of the previous run of the estate; 0 without one.
        read: the names of the parts that it could read.
    """
    finding = (SPANS.c.part, SPANS.c.policy, SPANS.c.resource, SPANS.c.resource_type)
    asked = select(*finding).where(SPANS.c.estate == estate, SPANS.c.outcome == str(Outcome.FAIL))
    begun = {tuple(row) for row in connection.execute(asked.where(SPANS.c.first == number))}
    ended = {tuple(row) for row in connection.execute(asked.where(SPANS.c.last == before))}
    gone = ended - begun
    fixed = sum(part in read for part, *_ in gone)
    return Turned(len(begun - ended), fixed, len(gone) - fixed)


def spans_of(connection: Connection, estate: str, clocks: Mapping[int, datetime], since: int) -> Iterator[FindingSpan]:
    """Yield the spans of an estate, sorted by part, policy, resource and first run.

    Args:
        connection: the connection to read from, until all are read.
        estate: the name of the estate.
        clocks: by number, the clocks of all runs of the estate.
        since: as in `History.spans`.
    """
    numbers = sorted(clocks)
    if not numbers:
        return
    asked = select(SPANS).where(SPANS.c.estate == estate)
    begin = bisect.bisect_left(numbers, since)
    if begin:  # what ended in a run after the one before `since` has that one as its last
        asked = asked.where(SPANS.c.last.is_(None) | (SPANS.c.last >= numbers[begin - 1]))
    order = [_by_code(connection, name) for name in ("part", "policy", "resource")]
    rows = streamed(connection, asked.order_by(*order, SPANS.c.first, SPANS.c.key))
    for row in rows:
        last: int | None = row.last
        yield FindingSpan.model_construct(
            part=row.part,
            policy=row.policy,
            resource=row.resource,
            resource_type=row.resource_type,
            severity=Severity(row.severity),
            outcome=Outcome(row.outcome),
            exempt=row.exempt,
            first=row.first,
            first_seen=clocks[row.first],
            last=last,
            last_seen=clocks[numbers[-1] if last is None else last],
            until=None if last is None else _after(numbers, last),
        )


def _after(numbers: Sequence[int], last: int) -> int:
    return numbers[bisect.bisect_right(numbers, last)]


def _by_code(connection: Connection, name: str) -> ColumnElement[str]:
    """Return a column in the order of its code points in every database."""
    column: ColumnElement[str] = SPANS.c[name]
    return collate(column, "C") if connection.dialect.name == "postgresql" else column
