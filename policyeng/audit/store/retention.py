"""Take away what only old runs need: their snapshots, evaluations and policies; headers, hashes and spans stay."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import orjson
from sqlalchemy import Connection, delete, func, insert, select

from policyeng.audit.history import Run
from policyeng.audit.store.chained_retentions import Retentions, retentions_of
from policyeng.audit.store.contents import in_batches
from policyeng.audit.store.digests import retention_hash
from policyeng.audit.store.kept import Store, run_of
from policyeng.audit.store.locks import retention_lock
from policyeng.audit.store.opening import alone, said, streamed, writing
from policyeng.audit.store.references import needed_by
from policyeng.audit.store.tables import CONTENTS, RETENTIONS, RUNS
from policyeng.errors import StoreError


class Pruned(NamedTuple):
    """What retention did.

    Attributes:
        runs: the numbers of those that lost something now.
        contents: how many it took away, those that no run refers to among them.
        size: of these in bytes, as they were stored.
        hash: of the retention; empty when no run lost anything.
    """

    runs: Sequence[int]
    contents: int
    size: int
    hash: str


def prune(store: Store, *, now: datetime, keep_runs: int | None = None, keep_since: datetime | None = None) -> Pruned:
    """Take away what no run needs that is kept whole; of every estate the newest run is.

    Args:
        store: what is pruned; no audit may be running.
        now: by the machine's clock.
        keep_runs: so many of the newest runs of every estate stay whole.
        keep_since: the runs that ended then or later do.

    Raises:
        StoreError: audits do not end, a content is not what was stored, or the database refuses something.
    """
    with said(store.url), retention_lock(store.engine), writing(store.engine) as connection:
        alone(connection)
        retentions = retentions_of(connection)
        if retentions.faults:
            remedy = "`policyeng audit verify-history` says more"
            raise StoreError(retentions.faults[0].message, place=("retentions",), remedy=remedy)
        old = _old(_runs(connection), keep_runs, keep_since) - retentions.pruned
        numbers = set(connection.scalars(select(RUNS.c.number)))
        needed = needed_by(connection, sorted(numbers - old - retentions.pruned))
        losing = [number for number in sorted(old) if not needed_by(connection, [number], needed) <= needed]
        contents, size = _drop(connection, needed | needed_by(connection, sorted(old.difference(losing)), needed))
        hash_ = _note(connection, retentions, now, losing, contents) if losing else ""
    return Pruned(losing, contents, size, hash_)


def _runs(connection: Connection) -> Mapping[str, list[Run]]:
    """The runs by estate, the newest first."""
    found: dict[str, list[Run]] = {}
    for row in connection.execute(select(RUNS.c.document, RUNS.c.hash).order_by(RUNS.c.number.desc())):
        run = run_of(row.document, row.hash)
        found.setdefault(run.estate, []).append(run)
    return found


def _old(runs: Mapping[str, list[Run]], keep_runs: int | None, keep_since: datetime | None) -> set[int]:
    """The numbers of the runs that need not stay whole."""
    old: set[int] = set()
    for listed in runs.values():
        for position, run in enumerate(listed):
            recent = keep_since is not None and run.finished_at >= keep_since
            if position and not recent and (keep_runs is None or position >= keep_runs):
                old.add(run.number)
    return old


def _drop(connection: Connection, needed: Collection[str]) -> tuple[int, int]:
    """Take away all contents but those, and say how many there were and of what size."""
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
