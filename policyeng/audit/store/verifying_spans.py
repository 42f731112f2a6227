"""Hold spans against what the parts of each run say to stand, one run after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby

from sqlalchemy import Connection, Row, RowMapping, select

from policyeng.audit.store.digests import Standing, span_key, standing_digest
from policyeng.audit.store.faults import Fault
from policyeng.audit.store.opening import streamed
from policyeng.audit.store.tables import PARTS, SPANS

_NOTHING = standing_digest(())


def verify_spans(connection: Connection, estates: Mapping[str, Sequence[int]]) -> Iterator[Fault]:
    """What is wrong with spans.

    Args:
        connection: reads.
        estates: by name, the numbers of the runs in order.
    """
    for estate in connection.scalars(select(SPANS.c.estate).distinct().order_by(SPANS.c.estate)).all():
        if estate not in estates:
            yield Fault("spans", None, f"there are spans of the estate `{estate}`, which has no run")
    for estate, numbers in estates.items():
        yield from _Sweep(connection, estate, numbers).faults()


class _Sweep:
    """The spans of an estate while its runs go by.

    Attributes:
        standing: by part, what stands at the run that is looked at.
        digests: the same as the digests of the parts have it.
        ending: by number, what stands up to that run.
    """

    def __init__(self, connection: Connection, estate: str, numbers: Sequence[int]) -> None:
        self._connection = connection
        self._estate = estate
        self._numbers = numbers
        self.standing: dict[str, set[Standing]] = {}
        self.digests: dict[str, str] = {}
        self.ending: dict[int, list[tuple[str, Standing]]] = {}

    def faults(self) -> Iterator[Fault]:
        """What is wrong."""
        asked = select(SPANS).where(SPANS.c.estate == self._estate).order_by(SPANS.c.first)
        with closing(streamed(self._connection, asked)) as rows:
            yield from self._swept(rows)
        for number in self.ending:
            yield Fault("spans", number, "a span ends at a run after which there is none of its estate")

    def _swept(self, rows: Iterable[Row[*tuple[object, ...]]]) -> Iterator[Fault]:
        beginning = groupby(rows, key=lambda row: row.first)
        group = next(beginning, None)
        previous = 0
        for number in self._numbers:
            while group is not None and group[0] < number:
                yield _elsewhere(group[0])
                group = next(beginning, None)
            ended = self.ending.pop(previous, [])
            for part, standing in ended:
                self._touch(part).discard(standing)
            if group is not None and group[0] == number:
                for row in group[1]:
                    yield from self._begin(row._mapping, set(ended))
                group = next(beginning, None)
            yield from self._hold(number)
            previous = number
        if group is not None:
            yield _elsewhere(group[0])

    def _touch(self, part: str) -> set[Standing]:
        """What stands in a part, which is about to change."""
        self.digests.pop(part, None)
        return self.standing.setdefault(part, set())

    def _begin(self, row: RowMapping, ended: set[tuple[str, Standing]]) -> Iterator[Fault]:
        part, number, last = row["part"], row["first"], row["last"]
        standing = Standing(*(row[name] for name in Standing._fields))
        if row["key"] != span_key(part, standing):
            yield Fault("spans", number, f"a span of `{part}` was altered")
        if standing in self._touch(part) or (part, standing) in ended:
            yield Fault("spans", number, f"a span of `{part}` begins where another of the same finding stands")
        self.standing[part].add(standing)
        if last is not None:
            if last < number or last not in self._numbers:
                yield Fault("spans", number, f"a span of `{part}` ends at a run at which it cannot")
            self.ending.setdefault(last, []).append((part, standing))

    def _hold(self, number: int) -> Iterator[Fault]:
        """Hold what stands now against the parts of a run."""
        asked = select(PARTS.c.name, PARTS.c.standing).where(PARTS.c.run == number)
        stated = {name: standing or _NOTHING for name, standing in self._connection.execute(asked)}
        for part, standing in self.standing.items():
            if part not in self.digests:
                self.digests[part] = standing_digest(standing)
            if stated.pop(part, _NOTHING) != self.digests[part]:
                yield Fault("spans", number, f"the spans of `{part}` do not say what was found there")
        for part, expected in stated.items():
            if expected != _NOTHING:
                yield Fault("spans", number, f"spans of `{part}` are missing")


def _elsewhere(number: int) -> Fault:
    return Fault("spans", number, "a span begins at a run that is none of its estate")
