"""A store as `History` asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType

import orjson
from sqlalchemy import Connection, Engine, RowMapping, func, select

from policyeng.audit.records import AuditRun, FindingSpan, RunPart
from policyeng.audit.store import spans
from policyeng.audit.store.blobs import fetch
from policyeng.audit.store.codecs import evaluation_of, head_of, resources_of, snapshot_of
from policyeng.audit.store.connection import said, streamed
from policyeng.audit.store.digests import PartRow, content_of
from policyeng.audit.store.tables import PARTS, RETENTIONS, RUNS
from policyeng.bundle import Bundle
from policyeng.bundle.serialization import unpacked
from policyeng.errors import StoreError, UsageError
from policyeng.models import Evaluation, Snapshot, Summary

_COLUMNS = (PARTS.c.name, PARTS.c.snapshot, PARTS.c.evaluation, PARTS.c.exit_code, PARTS.c.summary)

#: The largest number of a run that its column can hold.
_LARGEST = 2**31 - 1


class Store:
    """A database with the runs of estates; a context manager. It implements `history.History`.

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
        """Give the database free."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that reads.

        Raises:
            StoreError: the database refuses something.
        """
        with said(self.url), self.engine.connect() as connection, connection.begin():
            yield connection

    def estates(self) -> Sequence[str]:
        """The names of all estates that have a run, sorted."""
        with self.reading() as connection:
            return sorted(connection.scalars(select(RUNS.c.estate).distinct()))

    def runs(self, estate: str, *, last: int | None = None) -> Sequence[AuditRun]:
        """The runs of an estate, the oldest first; only the newest `last` of them where that is given."""
        asked = select(RUNS.c.document, RUNS.c.hash).where(RUNS.c.estate == estate).order_by(RUNS.c.number.desc())
        with self.reading() as connection:
            rows = connection.execute(asked if last is None else asked.limit(last)).all()
        return [run_of(*row) for row in reversed(rows)]

    def run(self, number: int) -> AuditRun:
        """One run.

        Raises:
            UsageError: there is none of the number.
        """
        row = None
        if 0 < number <= _LARGEST:  # a database refuses to compare with a larger one
            with self.reading() as connection:
                row = connection.execute(select(RUNS.c.document, RUNS.c.hash).where(RUNS.c.number == number)).first()
        if row is None:
            raise UsageError(f"there is no run {number}", remedy="`policyeng audit runs` lists them")
        return run_of(*row)

    def head(self) -> AuditRun | None:
        """The newest run of all estates; None before the first."""
        asked = select(RUNS.c.document, RUNS.c.hash).order_by(RUNS.c.number.desc()).limit(1)
        with self.reading() as connection:
            row = connection.execute(asked).first()
        return row and run_of(*row)

    def missing(self, expected: Sequence[str]) -> list[str]:
        """The hashes among those expected that no run and no retention of the store has."""
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
        """The parts of a run in their order."""
        asked = select(*_COLUMNS).where(PARTS.c.run == run.number).order_by(PARTS.c.position)
        with self.reading() as connection:
            for row in streamed(connection, asked):
                yield _part(row._mapping)

    def rows(self, run: AuditRun) -> Iterator[PartRow]:
        """The parts of a run with all that the store has of them, in their order."""
        asked = select(*(PARTS.c[name] for name in PartRow._fields)).where(PARTS.c.run == run.number)
        with self.reading() as connection:
            for row in streamed(connection, asked.order_by(PARTS.c.position)):
                yield PartRow(*row)

    def content(self, run: AuditRun, rows: Iterable[PartRow]) -> str:
        """What the content of a run comes to with these parts."""
        asked = select(RUNS.c.policies, RUNS.c.retention).where(RUNS.c.number == run.number)
        with self.reading() as connection:
            policies, retention = connection.execute(asked).one()
        return content_of(policies, retention, rows)

    def head_and_findings(self, row: PartRow) -> tuple[bytes, bytes]:
        """The stored evaluation of a part that could be read.

        Raises:
            UsageError: retention has taken it.
        """
        what = f"the evaluation of `{row.name}`"
        with self.reading() as connection:
            head = _content(connection, row.evaluation, what)
            return head, _content(connection, head_of(head).findings, what)

    def part(self, run: AuditRun, name: str) -> RunPart | None:
        """The part of that name; None where the run has none."""
        with self.reading() as connection:
            row = connection.execute(select(*_COLUMNS).where(PARTS.c.run == run.number, PARTS.c.name == name)).first()
        return None if row is None else _part(row._mapping)

    def bundle(self, run: AuditRun) -> Bundle:
        """The policies that judged a run, as they were, with its selection.

        Raises:
            UsageError: retention has taken them.
        """
        with self.reading() as connection:
            digest: str | None = connection.scalar(select(RUNS.c.policies).where(RUNS.c.number == run.number))
            found = fetch(connection, [digest]) if digest else {}
            if digest is None or digest not in found:
                raise _gone(connection, f"the policies of run {run.number}", digest or "")
        return unpacked(found[digest])

    def snapshot(self, part: RunPart) -> Snapshot:
        """What was judged.

        Raises:
            UsageError: it could not be read then, or retention has taken it.
        """
        _require_read(part)
        with self.reading() as connection:
            frame = _content(connection, part.snapshot, f"the snapshot of `{part.name}`")
            resources = resources_of(frame)
            contents = fetch(connection, resources)
            if missing := next((digest for digest in resources if digest not in contents), ""):
                raise _gone(connection, f"the snapshot of `{part.name}`", missing)
        return snapshot_of(frame, contents)

    def evaluation(self, part: RunPart) -> Evaluation:
        """What came of it, with every finding.

        Raises:
            UsageError: it could not be read then, or retention has taken it.
        """
        _require_read(part)
        what = f"the evaluation of `{part.name}`"
        with self.reading() as connection:
            head = _content(connection, part.evaluation, what)
            findings = _content(connection, head_of(head).findings, what)
        return evaluation_of(head, findings)

    def turned(self, run: AuditRun) -> spans.Turned:
        """How many failures a run began and ended."""
        read = {part.name for part in self.parts(run) if part.snapshot}
        before = select(func.max(RUNS.c.number)).where(RUNS.c.estate == run.estate, RUNS.c.number < run.number)
        with self.reading() as connection:
            return spans.turned(connection, run.estate, run.number, connection.scalar(before) or 0, read)

    def spans(self, estate: str, *, since: int = 0) -> Iterator[FindingSpan]:
        """The spans of an estate, sorted by part, policy, resource and first run.

        Args:
            estate: its name.
            since: only spans that stand in a run of this number or a later one, or ended there.
        """
        with self.reading() as connection:
            yield from spans.spans_of(connection, estate, clocks_of(connection, estate), since)


def clocks_of(connection: Connection, estate: str) -> dict[int, datetime]:
    """By number, the clocks of the runs of an estate."""
    rows = connection.execute(select(RUNS.c.number, RUNS.c.document).where(RUNS.c.estate == estate))
    return {number: datetime.fromisoformat(orjson.loads(document)["asOf"]) for number, document in rows}


def run_of(document: str, hash_: str) -> AuditRun:
    """A run by the columns of its row.

    Raises:
        StoreError: the document is none of a run.
    """
    try:
        return AuditRun.model_validate({**orjson.loads(document), "hash": hash_})
    except ValueError:
        remedy = "`policyeng audit verify-history` says which one"
        raise StoreError("the document of a run was altered", place=("runs",), remedy=remedy) from None


def _part(row: RowMapping) -> RunPart:
    return RunPart.model_validate({**row, "summary": Summary.model_validate_json(row["summary"])})


def _require_read(part: RunPart) -> None:
    if not part.snapshot:
        raise UsageError(f"`{part.name}` could not be read in that run", remedy="see the problems of the run")


def _content(connection: Connection, digest: str, what: str) -> bytes:
    found = fetch(connection, [digest])
    if digest not in found:
        raise _gone(connection, what, digest)
    return found[digest]


def _gone(connection: Connection, what: str, digest: str) -> UsageError | StoreError:
    if connection.scalar(select(RETENTIONS.c.number).limit(1)) is not None:
        return UsageError(f"{what} is gone: retention took it", remedy="ask for a newer run")
    remedy = "`policyeng audit verify-history` says what is missing"
    return StoreError(f"{what} is not in the store", place=("contents", digest[:12]), remedy=remedy)


def rows_of(store: Store, run: AuditRun) -> dict[str, PartRow]:
    """The parts of a run with all that the store has of them, by name."""
    with store.reading() as connection:
        rows = connection.execute(select(*(PARTS.c[name] for name in PartRow._fields)).where(PARTS.c.run == run.number))
        return {row.name: PartRow(*row) for row in rows}


def contents_of(store: Store, digests: Iterable[str]) -> Mapping[str, bytes]:
    """Contents by digest, such as the heads of evaluations or their findings; without what is gone.

    Raises:
        StoreError: one of them is not what was stored.
    """
    with store.reading() as connection:
        return fetch(connection, digests)
