"""Writing of a run: contents are written ahead, and one transaction at its end makes the run visible."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import orjson
from sqlalchemy import Connection, func, insert, select

from policyeng.audit.records import AuditRun
from policyeng.audit.store.codecs import (
    PartRow,
    SpanState,
    content_of,
    digest_of,
    document_of,
    encode_span_states,
    in_batches,
    pack,
    run_hash,
    store_missing,
)
from policyeng.audit.store.connection import convert_errors, lock_writes, run_lock, writing
from policyeng.audit.store.store import Store, load_span_states, move
from policyeng.audit.store.tables import PARTS, RETENTIONS, RUNS

#: Contents wait in memory until there is so much of them, in bytes.
_BATCH = 4 * 1024 * 1024


class StoredPart(NamedTuple):
    """A part to store.

    Attributes:
        snapshot, evaluation: digests of `contents`; empty for a part that could not be read.
        contents: by digest, and packed by `blobs.packed`; without some that are stored already.
        standing: its findings other than passes, or their digest if they are those of the estate's last run.
        holding: the key for reusing the evaluation; empty if it cannot be reused.
        summary: as JSON.
    """

    name: str
    snapshot: str
    evaluation: str
    contents: Mapping[str, bytes]
    standing: list[SpanState] | str
    exit_code: int
    summary: str
    holding: str = ""


class RunWriter:
    """A run that is not visible yet."""

    def __init__(self, store: Store, estate: str, policies: bytes) -> None:
        self._store = store
        self._estate = estate
        self._policies = digest_of(policies)
        self._waiting: dict[str, bytes] = {self._policies: pack(policies)}
        self._size = len(policies)
        self._rows: list[tuple[PartRow, bytes]] = []

    def add(self, entry: StoredPart) -> None:
        """Add a part. Its contents are written now or later.

        Raises:
            StoreError: the database reports an error.
        """
        self._waiting.update(entry.contents)
        self._size += sum(map(len, entry.contents.values()))
        encoded = encode_span_states([] if isinstance(entry.standing, str) else entry.standing)
        anew = digest_of(encoded) if entry.evaluation else ""
        standing = entry.standing if isinstance(entry.standing, str) else anew
        row = PartRow(
            entry.name, entry.snapshot, entry.evaluation, standing, entry.holding, entry.exit_code, entry.summary
        )
        self._rows.append((row, zlib.compress(encoded, 1)))
        if self._size > _BATCH:
            self._flush()

    def finish(self, run: AuditRun) -> AuditRun:
        """Make the run visible, and return it with its number, content, place in the chain and hash.

        Raises:
            StoreError: the database reports an error; the run is not visible then.
        """
        self._flush()
        with convert_errors(self._store.url), writing(self._store.engine) as connection:
            lock_writes(connection)
            number, previous = _place(connection)
            retention = _retention(connection)
            rows = [row for row, _ in self._rows]
            content = content_of(self._policies, retention, rows)
            run = run.model_copy(update={"number": number, "content": content, "previous": previous})
            document = document_of(run)
            self._move_spans(connection, number)
            for batch in in_batches(enumerate(rows)):
                placed = [{"run": number, "position": position, **row._asdict()} for position, row in batch]
                connection.execute(insert(PARTS), placed)
            columns = {"estate": self._estate, "policies": self._policies, "retention": retention}
            hash_ = run_hash(document)
            connection.execute(insert(RUNS).values(number=number, document=document, hash=hash_, **columns))
        return run.model_copy(update={"hash": hash_})

    def _flush(self) -> None:
        with convert_errors(self._store.url), writing(self._store.engine) as connection:
            store_missing(connection, self._waiting)
        self._waiting, self._size = {}, 0

    def _move_spans(self, connection: Connection, number: int) -> None:
        """End and start spans; unchanged parts are skipped."""
        newest = select(func.max(RUNS.c.number)).where(RUNS.c.estate == self._estate)
        before: int = connection.scalar(newest) or 0
        stated = connection.execute(select(PARTS.c.name, PARTS.c.standing).where(PARTS.c.run == before))
        earlier = {row.name: row.standing for row in stated}
        for row, compressed in self._rows:
            if earlier.pop(row.name, "") != row.standing:
                now = {SpanState(*entry) for entry in orjson.loads(zlib.decompress(compressed))}
                self._move(connection, row.name, (before, number), now)
        for name, standing in earlier.items():
            if standing:
                self._move(connection, name, (before, number), set())

    def _move(self, connection: Connection, part: str, runs: tuple[int, int], now: set[SpanState]) -> None:
        stood = load_span_states(connection, self._estate, part) if runs[0] else set()
        move(connection, self._estate, part, runs=runs, ends=stood - now, begins=now - stood)


@contextmanager
def start_run(store: Store, estate: str, policies: bytes) -> Iterator[RunWriter]:
    """Start a run of an estate, and lock the estate until it ends.

    Raises:
        StoreError: the estate is being audited already, or the database reports an error.
    """
    with convert_errors(store.url), run_lock(store.engine, estate):
        yield RunWriter(store, estate, policies)


def _place(connection: Connection) -> tuple[int, str]:
    """Return the number of the next run and the hash of the last."""
    last = connection.execute(select(RUNS.c.number, RUNS.c.hash).order_by(RUNS.c.number.desc()).limit(1)).first()
    return (1, "") if last is None else (last.number + 1, last.hash)


def _retention(connection: Connection) -> str:
    """Return the hash of the newest retention; empty without one."""
    newest: str | None = connection.scalar(select(RETENTIONS.c.hash).order_by(RETENTIONS.c.number.desc()).limit(1))
    return newest or ""
