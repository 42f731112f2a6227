"""The contents that runs refer to, directly and through frames of snapshots and heads of evaluations."""

from __future__ import annotations

import bisect
import zlib
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import NamedTuple

import orjson
from sqlalchemy import Connection, Engine, RowMapping, bindparam, collate, func, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from policyeng.audit.records import AuditRun, FindingSpan, RunPart
from policyeng.audit.store.connection import convert_errors, lock_writes, run_lock, streamed, writing
from policyeng.audit.store.tables import (
    PARTS,
    RETENTIONS,
    RUNS,
    SPANS,
    PartRow,
    SpanState,
    content_of,
    digest_of,
    document_of,
    encode_span_states,
    evaluation_of,
    fetch,
    head_of,
    in_batches,
    pack,
    part_key,
    resources_of,
    run_hash,
    snapshot_of,
    span_key,
    store_missing,
)
from policyeng.bundle import Bundle
from policyeng.bundle.assembling import unpack_bundle
from policyeng.errors import StoreError, UsageError
from policyeng.models import Evaluation, Outcome, Severity, Snapshot, Summary


class Reference(NamedTuple):
    """A content that refers to others: a frame to resources, a head to findings."""

    digest: str
    below: list[str]


class Direct(NamedTuple):
    """The contents that runs refer to directly: bundles, frames and heads."""

    policies: set[str]
    frames: set[str]
    heads: set[str]


def direct_of(connection: Connection, numbers: Iterable[int]) -> Direct:
    """Return the contents that runs refer to directly."""
    found = Direct(set(), set(), set())
    for batch in in_batches(numbers):
        found.policies.update(connection.scalars(select(RUNS.c.policies).where(RUNS.c.number.in_(batch))))
        for frame, head in connection.execute(
            select(PARTS.c.snapshot, PARTS.c.evaluation).where(PARTS.c.run.in_(batch))
        ):
            if frame:
                found.frames.add(frame)
                found.heads.add(head)
    return found


def references_of(connection: Connection, direct: Direct, unread: Collection[str] = ()) -> Iterator[Reference]:
    """Yield the references of stored frames and heads.

    Args:
        connection: the connection to read from.
        direct: the frames and heads.
        unread: digests of contents to skip.

    Raises:
        StoreError: a frame or a head is not what was stored.
    """
    for digests, below in ((direct.frames, resources_of), (direct.heads, _findings_of)):
        for batch in in_batches(sorted(digests.difference(unread))):
            for digest, content in fetch(connection, batch).items():
                yield Reference(digest, below(content))


def needed_by(connection: Connection, numbers: Iterable[int], known: Collection[str] = ()) -> set[str]:
    """Return all contents that runs refer to, except those that only `known` contents refer to.

    Raises:
        StoreError: one of them is not what was stored.
    """
    direct = direct_of(connection, numbers)
    found = direct.policies | direct.frames | direct.heads
    for reference in references_of(connection, direct, known):
        found.update(reference.below)
    return found


def _findings_of(head: bytes) -> list[str]:
    return [head_of(head).findings]


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
    statement = select(*finding).where(SPANS.c.estate == estate, SPANS.c.outcome == str(Outcome.FAIL))
    begun = {tuple(row) for row in connection.execute(statement.where(SPANS.c.first == number))}
    ended = {tuple(row) for row in connection.execute(statement.where(SPANS.c.last == before))}
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
    statement = select(SPANS).where(SPANS.c.estate == estate)
    begin = bisect.bisect_left(numbers, since)
    if begin:  # what ended in a run after the one before `since` has that one as its last
        statement = statement.where(SPANS.c.last.is_(None) | (SPANS.c.last >= numbers[begin - 1]))
    order = [_by_code(connection, name) for name in ("part", "policy", "resource")]
    rows = streamed(connection, statement.order_by(*order, SPANS.c.first, SPANS.c.key))
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
            until=None if last is None else numbers[bisect.bisect_right(numbers, last)],
        )


def _by_code(connection: Connection, name: str) -> ColumnElement[str]:
    """Return a column in the order of its code points in every database."""
    column: ColumnElement[str] = SPANS.c[name]
    return collate(column, "C") if connection.dialect.name == "postgresql" else column


_COLUMNS = (PARTS.c.name, PARTS.c.snapshot, PARTS.c.evaluation, PARTS.c.exit_code, PARTS.c.summary)

#: The largest number of a run that fits into its column.
_LARGEST = 2**31 - 1


class Store:
    """A database with the runs of estates; a context manager. It implements `records.History`.

    Attributes:
        engine: of the database.
        url: as it was given.
    """

    def __init__(self, engine: Engine, url: str) -> None:
        self.engine = engine
        self.url = url

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that reads.

        Raises:
            StoreError: the database reports an error.
        """
        with convert_errors(self.url), self.engine.connect() as connection, connection.begin():
            yield connection

    def estates(self) -> Sequence[str]:
        """Return the names of all estates that have a run, sorted."""
        with self.reading() as connection:
            return sorted(connection.scalars(select(RUNS.c.estate).distinct()))

    def runs(self, estate: str, *, last: int | None = None) -> Sequence[AuditRun]:
        """Return the runs of an estate, the oldest first; only the newest `last` of them if given."""
        statement = select(RUNS.c.document, RUNS.c.hash).where(RUNS.c.estate == estate).order_by(RUNS.c.number.desc())
        with self.reading() as connection:
            rows = connection.execute(statement if last is None else statement.limit(last)).all()
        return [run_of(*row) for row in reversed(rows)]

    def run(self, number: int) -> AuditRun:
        """Return a run by its number.

        Raises:
            UsageError: there is no such run.
        """
        row = None
        if 0 < number <= _LARGEST:  # a database refuses to compare with a larger one
            with self.reading() as connection:
                row = connection.execute(select(RUNS.c.document, RUNS.c.hash).where(RUNS.c.number == number)).first()
        if row is None:
            raise UsageError(f"there is no run {number}", remedy="`policyeng audit runs` lists them")
        return run_of(*row)

    def head(self) -> AuditRun | None:
        """Return the newest run of all estates; None before the first."""
        statement = select(RUNS.c.document, RUNS.c.hash).order_by(RUNS.c.number.desc()).limit(1)
        with self.reading() as connection:
            row = connection.execute(statement).first()
        return row and run_of(*row)

    def missing(self, expected: Sequence[str]) -> list[str]:
        """Return the expected hashes that no run and no retention has."""
        if not expected:
            return []
        with self.reading() as connection:
            there = {
                found
                for table in (RUNS, RETENTIONS)
                for found in connection.scalars(select(table.c.hash).where(table.c.hash.in_(expected)))
            }
        return [each for each in expected if each not in there]

    def parts(self, run: AuditRun) -> Iterator[RunPart]:
        """Yield the parts of a run in order."""
        statement = select(*_COLUMNS).where(PARTS.c.run == run.number).order_by(PARTS.c.position)
        with self.reading() as connection:
            for row in streamed(connection, statement):
                yield _part(row._mapping)

    def rows(self, run: AuditRun) -> Iterator[PartRow]:
        """Yield the stored rows of the parts of a run, in order."""
        statement = select(*(PARTS.c[name] for name in PartRow._fields)).where(PARTS.c.run == run.number)
        with self.reading() as connection:
            for row in streamed(connection, statement.order_by(PARTS.c.position)):
                yield PartRow(*row)

    def content(self, run: AuditRun, rows: Iterable[PartRow]) -> str:
        """Return the content hash of a run with these parts."""
        statement = select(RUNS.c.policies, RUNS.c.retention).where(RUNS.c.number == run.number)
        with self.reading() as connection:
            policies, retention = connection.execute(statement).one()
        return content_of(policies, retention, rows)

    def head_and_findings(self, row: PartRow) -> tuple[bytes, bytes]:
        """Return the stored evaluation of a part that could be read.

        Raises:
            UsageError: retention removed it.
        """
        what = f"the evaluation of `{row.name}`"
        with self.reading() as connection:
            head = _content(connection, row.evaluation, what)
            return head, _content(connection, head_of(head).findings, what)

    def part(self, run: AuditRun, name: str) -> RunPart | None:
        """Return the part of a name; None if the run has none."""
        with self.reading() as connection:
            row = connection.execute(select(*_COLUMNS).where(PARTS.c.run == run.number, PARTS.c.name == name)).first()
        return None if row is None else _part(row._mapping)

    def bundle(self, run: AuditRun) -> Bundle:
        """Return the policies of a run, with its selection.

        Raises:
            UsageError: retention removed them.
        """
        with self.reading() as connection:
            digest: str | None = connection.scalar(select(RUNS.c.policies).where(RUNS.c.number == run.number))
            found = fetch(connection, [digest]) if digest else {}
            if digest is None or digest not in found:
                raise _refuse_missing(connection, f"the policies of run {run.number}", digest or "")
        return unpack_bundle(found[digest])

    def snapshot(self, part: RunPart) -> Snapshot:
        """Return the snapshot of a part.

        Raises:
            UsageError: the run could not read it, or retention removed it.
        """
        _require_read(part)
        with self.reading() as connection:
            frame = _content(connection, part.snapshot, f"the snapshot of `{part.name}`")
            resources = resources_of(frame)
            contents = fetch(connection, resources)
            if missing := next((digest for digest in resources if digest not in contents), ""):
                raise _refuse_missing(connection, f"the snapshot of `{part.name}`", missing)
        return snapshot_of(frame, contents)

    def evaluation(self, part: RunPart) -> Evaluation:
        """Return the evaluation of a part.

        Raises:
            UsageError: the run could not read it, or retention removed it.
        """
        _require_read(part)
        what = f"the evaluation of `{part.name}`"
        with self.reading() as connection:
            head = _content(connection, part.evaluation, what)
            findings = _content(connection, head_of(head).findings, what)
        return evaluation_of(head, findings)

    def turned(self, run: AuditRun) -> Turned:
        """Return how many failures a run started and ended."""
        read = {part.name for part in self.parts(run) if part.snapshot}
        before = select(func.max(RUNS.c.number)).where(RUNS.c.estate == run.estate, RUNS.c.number < run.number)
        with self.reading() as connection:
            return list_span_changes(connection, run.estate, run.number, connection.scalar(before) or 0, read)

    def spans(self, estate: str, *, since: int = 0) -> Iterator[FindingSpan]:
        """Yield the spans of an estate, sorted by part, policy, resource and first run.

        Args:
            estate: its name.
            since: only spans that include a run of this number or a later one, or ended there.
        """
        with self.reading() as connection:
            yield from spans_of(connection, estate, clocks_of(connection, estate), since)


def clocks_of(connection: Connection, estate: str) -> dict[int, datetime]:
    """Return the clocks of the runs of an estate, by number."""
    rows = connection.execute(select(RUNS.c.number, RUNS.c.document).where(RUNS.c.estate == estate))
    return {number: datetime.fromisoformat(orjson.loads(document)["asOf"]) for number, document in rows}


def run_of(document: str, hash_: str) -> AuditRun:
    """Return the run of a row.

    Raises:
        StoreError: the document is invalid.
    """
    try:
        return AuditRun.model_validate({**orjson.loads(document), "hash": hash_})
    except ValueError:
        remedy = "`policyeng audit verify-history` reports which one"
        raise StoreError("the document of a run was altered", place=("runs",), remedy=remedy) from None


def _part(row: RowMapping) -> RunPart:
    return RunPart.model_validate({**row, "summary": Summary.model_validate_json(row["summary"])})


def _require_read(part: RunPart) -> None:
    if not part.snapshot:
        raise UsageError(f"`{part.name}` could not be read in that run", remedy="see the problems of the run")


def _content(connection: Connection, digest: str, what: str) -> bytes:
    found = fetch(connection, [digest])
    if digest not in found:
        raise _refuse_missing(connection, what, digest)
    return found[digest]


def _refuse_missing(connection: Connection, what: str, digest: str) -> UsageError | StoreError:
    if connection.scalar(select(RETENTIONS.c.number).limit(1)) is not None:
        return UsageError(f"{what} was deleted by retention", remedy="ask for a newer run")
    remedy = "`policyeng audit verify-history` lists what is missing"
    return StoreError(f"{what} is not in the store", place=("contents", digest[:12]), remedy=remedy)


def rows_of(store: Store, run: AuditRun) -> dict[str, PartRow]:
    """Return the stored rows of the parts of a run, by name."""
    with store.reading() as connection:
        rows = connection.execute(select(*(PARTS.c[name] for name in PartRow._fields)).where(PARTS.c.run == run.number))
        return {row.name: PartRow(*row) for row in rows}


def contents_of(store: Store, digests: Iterable[str]) -> Mapping[str, bytes]:
    """Return contents by digest, such as heads of evaluations, without those that are missing.

    Raises:
        StoreError: one of them is not what was stored.
    """
    with store.reading() as connection:
        return fetch(connection, digests)


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
        fresh = digest_of(encoded) if entry.evaluation else ""
        standing = entry.standing if isinstance(entry.standing, str) else fresh
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
