"""Retention: removal of snapshots, evaluations and policies that only old runs need. Headers, hashes and spans stay."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import orjson
from sqlalchemy import Connection, delete, func, insert, select

from policyeng.audit.records import AuditRun
from policyeng.audit.store.codecs import in_batches, retention_hash
from policyeng.audit.store.connection import (
    IntegrityFault,
    convert_errors,
    lock_writes,
    retention_lock,
    streamed,
    writing,
)
from policyeng.audit.store.store import Store, needed_by, run_of
from policyeng.audit.store.tables import CONTENTS, RETENTIONS, RUNS
from policyeng.errors import StoreError


@dataclass(frozen=True, slots=True)
class Retentions:
    """The table of retentions.

    Attributes:
        hashes: of all, the oldest first.
        pruned: the numbers of the pruned runs.
        faults: invalid rows.
    """

    hashes: list[str] = field(default_factory=list)
    pruned: set[int] = field(default_factory=set)
    faults: list[IntegrityFault] = field(default_factory=list)


def retentions_of(connection: Connection) -> Retentions:
    """Read the table, and check each row with its hash and the previous row."""
    found = Retentions()
    previous = ""
    rows = connection.execute(select(RETENTIONS).order_by(RETENTIONS.c.number))
    for number, row in enumerate(rows, 1):
        stated = retention_hash(row.number, row.at, row.runs, row.dropped, row.previous)
        if row.number != number or row.hash != stated or row.previous != previous:
            message = f"retention {row.number} was altered, or does not follow the one before it"
            found.faults.append(IntegrityFault("retentions", None, message))
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


class Pruned(NamedTuple):
    """The result of retention.

    Attributes:
        runs: the numbers of the newly pruned runs.
        contents: the number of removed contents, including those that no run refers to.
        size: the size of their stored form in bytes.
        hash: of the retention; empty if no run was pruned.
    """

    runs: Sequence[int]
    contents: int
    size: int
    hash: str


def prune(store: Store, *, now: datetime, keep_runs: int | None = None, keep_since: datetime | None = None) -> Pruned:
    """Remove the contents that no complete run needs. The newest run of every estate stays complete.

    Args:
        store: the store; no audit can be running.
        now: the machine's clock.
        keep_runs: the number of newest runs of every estate that stay complete.
        keep_since: runs that ended then or later stay complete.

    Raises:
        StoreError: audits do not end, a content is not what was stored, or the database reports an error.
    """
    with convert_errors(store.url), retention_lock(store.engine), writing(store.engine) as connection:
        lock_writes(connection)
        retentions = retentions_of(connection)
        if retentions.faults:
            remedy = "`policyeng audit verify-history` reports details"
            raise StoreError(retentions.faults[0].message, place=("retentions",), remedy=remedy)
        old = _old(_runs(connection), keep_runs, keep_since) - retentions.pruned
        numbers = set(connection.scalars(select(RUNS.c.number)))
        needed = needed_by(connection, sorted(numbers - old - retentions.pruned))
        losing = [number for number in sorted(old) if not needed_by(connection, [number], needed) <= needed]
        contents, size = _drop(connection, needed | needed_by(connection, sorted(old.difference(losing)), needed))
        hash_ = _note(connection, retentions, now, losing, contents) if losing else ""
    return Pruned(losing, contents, size, hash_)


def _runs(connection: Connection) -> Mapping[str, list[AuditRun]]:
    """Return the runs by estate, the newest first."""
    found: dict[str, list[AuditRun]] = {}
    for row in connection.execute(select(RUNS.c.document, RUNS.c.hash).order_by(RUNS.c.number.desc())):
        run = run_of(row.document, row.hash)
        found.setdefault(run.estate, []).append(run)
    return found


def _old(runs: Mapping[str, list[AuditRun]], keep_runs: int | None, keep_since: datetime | None) -> set[int]:
    """Return the numbers of the runs to prune."""
    old: set[int] = set()
    for listed in runs.values():
        for position, run in enumerate(listed):
            recent = keep_since is not None and run.finished_at >= keep_since
            if position and not recent and (keep_runs is None or position >= keep_runs):
                old.add(run.number)
    return old


def _drop(connection: Connection, needed: Collection[str]) -> tuple[int, int]:
    """Delete all other contents, and return their number and size."""
    doomed: list[str] = []
    size = 0
    asked = select(CONTENTS.c.digest, func.length(CONTENTS.c.content))
    for digest, length in streamed(connection, asked):
        if digest not in needed:
            doomed.append(digest)
            size += length
    for batch in in_batches(doomed):
        connection.execute(delete(CONTENTS).where(CONTENTS.c.digest.in_(batch)))
    return len(doomed), size


def _note(connection: Connection, retentions: Retentions, now: datetime, losing: Sequence[int], contents: int) -> str:
    number, at, runs = len(retentions.hashes) + 1, now.isoformat(), orjson.dumps(losing).decode()
    previous = retentions.hashes[-1] if retentions.hashes else ""
    hash_ = retention_hash(number, at, runs, contents, previous)
    row = {"number": number, "at": at, "runs": runs, "dropped": contents, "previous": previous, "hash": hash_}
    connection.execute(insert(RETENTIONS), row)
    return hash_
