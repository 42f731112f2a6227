"""Integrity checks of a store, and retention: the removal of what only old runs need."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count, groupby
from typing import NamedTuple

import orjson
from sqlalchemy import Connection, Row, RowMapping, delete, func, insert, select

from policyeng.audit.records import AuditRun
from policyeng.audit.store.connection import (
    IntegrityFault,
    Verified,
    convert_errors,
    lock_writes,
    retention_lock,
    streamed,
    writing,
)
from policyeng.audit.store.store import Direct, Reference, Store, direct_of, needed_by, references_of, run_of
from policyeng.audit.store.tables import (
    CONTENTS,
    PARTS,
    RETENTIONS,
    RUNS,
    SPANS,
    PartRow,
    SpanState,
    content_of,
    digest_span_states,
    fetch,
    in_batches,
    read_span_states,
    retention_hash,
    run_hash,
    span_key,
    unpack,
)
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
    statement = select(CONTENTS.c.digest, func.length(CONTENTS.c.content))
    for digest, length in streamed(connection, statement):
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


_NOTHING = digest_span_states(())


def verify_spans(connection: Connection, estates: Mapping[str, Sequence[int]]) -> Iterator[IntegrityFault]:
    """Yield the faults of spans.

    Args:
        connection: the connection to read from.
        estates: the numbers of the runs in order, by estate.
    """
    for estate in connection.scalars(select(SPANS.c.estate).distinct().order_by(SPANS.c.estate)).all():
        if estate not in estates:
            yield IntegrityFault("spans", None, f"there are spans of the estate `{estate}`, which has no run")
    for estate, numbers in estates.items():
        yield from _Sweep(connection, estate, numbers).faults()


class _Sweep:
    """A check of the spans of an estate, run by run.

    Attributes:
        standing: by part, the span states at the current run.
        digests: by part, the digests of these states.
        ending: by number, the states that end with that run.
    """

    def __init__(self, connection: Connection, estate: str, numbers: Sequence[int]) -> None:
        self._connection = connection
        self._estate = estate
        self._numbers = numbers
        self.standing: dict[str, set[SpanState]] = {}
        self.digests: dict[str, str] = {}
        self.ending: dict[int, list[tuple[str, SpanState]]] = {}

    def faults(self) -> Iterator[IntegrityFault]:
        """Yield the faults."""
        statement = select(SPANS).where(SPANS.c.estate == self._estate).order_by(SPANS.c.first)
        with closing(streamed(self._connection, statement)) as rows:
            yield from self._swept(rows)
        for number in self.ending:
            yield IntegrityFault("spans", number, "a span ends at a run after which there is none of its estate")

    def _swept(self, rows: Iterable[Row[*tuple[object, ...]]]) -> Iterator[IntegrityFault]:
        beginning = groupby(rows, key=lambda row: row.first)
        group = next(beginning, None)
        previous = 0
        for number in self._numbers:
            while group is not None and group[0] < number:
                yield _find_foreign_rows(group[0])
                group = next(beginning, None)
            ended = self.ending.pop(previous, [])
            for part, standing in ended:
                self._touch(part).discard(standing)
            if group is not None and group[0] == number:
                for row in group[1]:
                    yield from self._begin(row._mapping, set(ended))
                group = next(beginning, None)
            yield from self._compare_current(number)
            previous = number
        if group is not None:
            yield _find_foreign_rows(group[0])

    def _touch(self, part: str) -> set[SpanState]:
        """Return the mutable span states of a part."""
        self.digests.pop(part, None)
        return self.standing.setdefault(part, set())

    def _begin(self, row: RowMapping, ended: set[tuple[str, SpanState]]) -> Iterator[IntegrityFault]:
        part, number, last = row["part"], row["first"], row["last"]
        standing = SpanState(*(row[name] for name in SpanState._fields))
        if row["key"] != span_key(part, standing):
            yield IntegrityFault("spans", number, f"a span of `{part}` was altered")
        if standing in self._touch(part) or (part, standing) in ended:
            yield IntegrityFault("spans", number, f"a span of `{part}` begins during another span of the same finding")
        self.standing[part].add(standing)
        if last is not None:
            if last < number or last not in self._numbers:
                yield IntegrityFault("spans", number, f"a span of `{part}` ends at a run at which it cannot")
            self.ending.setdefault(last, []).append((part, standing))

    def _compare_current(self, number: int) -> Iterator[IntegrityFault]:
        """Compare the current spans with the parts of a run."""
        statement = select(PARTS.c.name, PARTS.c.standing).where(PARTS.c.run == number)
        stated = {name: standing or _NOTHING for name, standing in self._connection.execute(statement)}
        for part, standing in self.standing.items():
            if part not in self.digests:
                self.digests[part] = digest_span_states(standing)
            if stated.pop(part, _NOTHING) != self.digests[part]:
                yield IntegrityFault("spans", number, f"the spans of `{part}` differ from its findings")
        for part, expected in stated.items():
            if expected != _NOTHING:
                yield IntegrityFault("spans", number, f"spans of `{part}` are missing")


def _find_foreign_rows(number: int) -> IntegrityFault:
    return IntegrityFault("spans", number, "a span begins at a run that is none of its estate")


_FETCHED = 200


def verify_contents(
    connection: Connection, numbers: Sequence[int], pruned: Collection[int]
) -> tuple[list[IntegrityFault], int]:
    """Return the faults of contents, and the number of contents that no run refers to.

    Args:
        connection: the connection to read from.
        numbers: the numbers of all runs.
        pruned: the numbers of the pruned runs.
    """
    present, broken = _read_all(connection)
    whole = [number for number in numbers if number not in pruned]
    direct = direct_of(connection, whole)
    references = list(references_of(connection, direct, broken))
    wanted = direct.policies | direct.frames | direct.heads
    wanted.update(digest for reference in references for digest in reference.below)
    faults = [*_check_contents(connection, wanted - present, direct, references, "is missing")]
    faults += _check_contents(connection, broken & wanted, direct, references, "is not what was stored")
    faults += [
        IntegrityFault("contents", None, f"the content `{digest[:12]}` is not what was stored, and no run needs it")
        for digest in sorted(broken - wanted)
    ]
    faults += _check_parts(connection, whole, direct, references, broken)
    return faults, len(present - wanted - broken)


def _read_all(connection: Connection) -> tuple[set[str], set[str]]:
    """Return the digests of all contents, and of those that are not what was stored."""
    present: set[str] = set()
    broken: set[str] = set()
    for digest, content in streamed(connection, select(CONTENTS), _FETCHED):
        present.add(digest)
        try:
            unpack(digest, content)
        except StoreError:
            broken.add(digest)
    return present, broken


def _check_contents(
    connection: Connection, lost: Collection[str], direct: Direct, references: Sequence[Reference], what: str
) -> Iterator[IntegrityFault]:
    """Report each content that is missing or changed, with the first run that needs it."""
    if not lost:
        return
    above = {digest: reference.digest for reference in references for digest in reference.below if digest in lost}
    for digest in sorted(lost):
        holder = above.get(digest, digest)
        columns = (PARTS.c.snapshot, PARTS.c.evaluation)
        in_parts = select(PARTS.c.run).where(columns[holder in direct.heads] == holder).order_by(PARTS.c.run)
        in_runs = select(RUNS.c.number).where(RUNS.c.policies == digest).order_by(RUNS.c.number)
        number = connection.scalar((in_runs if digest in direct.policies else in_parts).limit(1))
        yield IntegrityFault("contents", number, f"the content `{digest[:12]}` {what}")


def _check_parts(
    connection: Connection,
    numbers: Sequence[int],
    direct: Direct,
    references: Sequence[Reference],
    broken: Collection[str],
) -> Iterator[IntegrityFault]:
    """Compare the rows of parts with the findings."""
    below = {reference.digest: reference.below[0] for reference in references if reference.digest in direct.heads}
    stated: dict[str, str] = {}
    for batch in in_batches(sorted(set(below.values()).difference(broken)), _FETCHED):
        stated.update(
            (digest, digest_span_states(read_span_states(findings)))
            for digest, findings in fetch(connection, batch).items()
        )
    for some in in_batches(numbers):
        yield from _find_differences(connection, some, below, stated)


def _find_differences(
    connection: Connection, numbers: Sequence[int], below: Mapping[str, str], stated: Mapping[str, str]
) -> Iterator[IntegrityFault]:
    statement = select(PARTS.c.run, PARTS.c.name, PARTS.c.evaluation, PARTS.c.standing).where(PARTS.c.run.in_(numbers))
    for number, name, evaluation, standing in connection.execute(statement):
        expected = stated.get(below.get(evaluation, ""))
        if expected is not None and expected != standing:
            yield IntegrityFault("parts", number, f"the stored findings of `{name}` differ from its evaluation")


#: A row of the table of runs, and its document as JSON; None when it is none.
_Run = tuple[Row[tuple[int, str, str, str, str, str]], Mapping[str, object] | None]


def verify(store: Store, expected: Sequence[str] = ()) -> Verified:
    """Check every row of a store.

    Args:
        store: a store.
        expected: hashes of runs or of retentions from elsewhere; only they show whether the newest rows are still
            there.

    Raises:
        StoreError: the database reports an error.
    """
    with store.reading() as connection:
        return verified(connection, expected)


def verified(connection: Connection, expected: Sequence[str] = ()) -> Verified:
    """Check every row in one transaction, as `verify`."""
    retentions = retentions_of(connection)
    runs = [(row, _document(row.document)) for row in connection.execute(select(RUNS).order_by(RUNS.c.number))]
    faults = [*retentions.faults, *_chain(runs, retentions), *_parts(connection, runs)]
    faults += _pruned_runs(runs, retentions)
    found, unused = verify_contents(connection, [row.number for row, _ in runs], retentions.pruned)
    faults += [*found, *verify_spans(connection, _by_estate(runs))]
    hashes = [row.hash for row, _ in runs]
    faults += [_missing(given) for given in expected if given not in (*hashes, *retentions.hashes)]
    head, retention = (entries[-1] if entries else "" for entries in (hashes, retentions.hashes))
    return Verified(faults, len(runs), sorted(retentions.pruned), unused, head, retention)


def _document(text: str) -> Mapping[str, object] | None:
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None


def _chain(runs: Sequence[_Run], retentions: Retentions) -> Iterator[IntegrityFault]:
    """Check that numbers have no gaps, that hashes match, and that each document has the previous hash."""
    previous = ""
    order = {"": -1, **{hash_: position for position, hash_ in enumerate(retentions.hashes)}}
    newest = -1
    for number, (row, document) in zip(count(1), runs, strict=False):
        at = row.number
        if at != number:
            yield IntegrityFault("runs", number, f"the run is missing: after {number - 1} comes {at}")
            return  # all that follows is out of place
        if run_hash(row.document) != row.hash or document is None:
            yield IntegrityFault("runs", at, "its document or its hash was altered")
        elif (document.get("number"), document.get("estate")) != (row.number, row.estate):
            yield IntegrityFault("runs", at, "its document is of another number or estate")
        elif document.get("previous") != previous:
            yield IntegrityFault("runs", at, "it does not follow the run before it")
        retained = order.get(row.retention)
        if retained is None or retained < newest:
            yield IntegrityFault("runs", at, "the retention that it follows is not there, or not in order")
        newest = newest if retained is None else retained
        previous = row.hash


def _parts(connection: Connection, runs: Sequence[_Run]) -> Iterator[IntegrityFault]:
    """Check that each run has the parts that its hash covers, and that each part has a run."""
    known = {row.number: (row, document) for row, document in runs}
    columns = (PARTS.c.run, PARTS.c.position, *(PARTS.c[name] for name in PartRow._fields))
    rows = streamed(connection, select(*columns).order_by(PARTS.c.run, PARTS.c.position))
    seen: set[int] = set()
    for number, group in groupby(rows, key=lambda row: row[0]):
        parts = list(group)
        seen.add(number)
        if number not in known:
            yield IntegrityFault("parts", number, "there are parts of a run that is not there")
            continue
        row, document = known[number]
        in_order = [part[1] for part in parts] == list(range(len(parts)))
        content = content_of(row.policies, row.retention, (PartRow(*part[2:]) for part in parts))
        if document is not None and not (in_order and content == document.get("content")):
            yield IntegrityFault(
                "parts", number, "its parts, its policies or its retention are not those that it was made of"
            )
    for number, (row, document) in known.items():
        if number in seen or document is None:
            continue
        if content_of(row.policies, row.retention, ()) != document.get("content"):
            yield IntegrityFault("parts", number, "its parts are missing")


def _pruned_runs(runs: Sequence[_Run], retentions: Retentions) -> Iterator[IntegrityFault]:
    for number in sorted(retentions.pruned - {row.number for row, _ in runs}):
        yield IntegrityFault("retentions", number, "retention took something of a run that is not there")


def _by_estate(runs: Sequence[_Run]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row, _ in runs:
        found.setdefault(row.estate, []).append(row.number)
    return found


def _missing(given: str) -> IntegrityFault:
    return IntegrityFault("runs", None, f"no run and no retention has the expected hash `{given}`")
