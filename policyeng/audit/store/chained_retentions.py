"""What retention took away, as the store says: a chain of its own, to which every later run is tied."""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson
from sqlalchemy import Connection, select

from policyeng.audit.store.digests import retention_hash
from policyeng.audit.store.faults import Fault
from policyeng.audit.store.tables import RETENTIONS


@dataclass(frozen=True, slots=True)
class Retentions:
    """What the table of retentions says.

    Attributes:
        hashes: of all, the oldest first.
        pruned: the numbers of the runs that lost something.
        faults: what is wrong with the rows.
    """

    hashes: list[str] = field(default_factory=list)
    pruned: set[int] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)


def retentions_of(connection: Connection) -> Retentions:
    """Read the table, and hold each row against its hash and the row before it."""
    found = Retentions()
    previous = ""
    rows = connection.execute(select(RETENTIONS).order_by(RETENTIONS.c.number))
    for number, row in enumerate(rows, 1):
        stated = retention_hash(row.number, row.at, row.runs, row.dropped, row.previous)
        if row.number != number or row.hash != stated or row.previous != previous:
            message = f"retention {row.number} was altered, or does not follow the one before it"
            found.faults.append(Fault("retentions", None, message))
        previous = row.hash
        found.hashes.append(row.hash)
        found.pruned.update(_numbers(row.runs))
    return found


def _numbers(text: str) -> list[int]:
    try:
        numbers = orjson.loads(text)
    except orjson.JSONDecodeError:
        return []
    return [number for number in numbers if isinstance(number, int)] if isinstance(numbers, list) else []
