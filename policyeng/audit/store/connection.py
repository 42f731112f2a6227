"""Connect to the database of an audit store, lock it, and report its errors."""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import Connection as SqliteConnection
from typing import NamedTuple, TypeVarTuple

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Row,
    Select,
    create_engine,
    event,
    inspect,
    make_url,
    text,
)
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from policyeng.audit.store.tables import digest_of
from policyeng.errors import StoreError, UsageError
from policyeng.processes import require_posix
from policyeng.report.escaping import visible


class IntegrityFault(NamedTuple):
    """A row that was altered, removed or added.

    Attributes:
        table: the name of the table.
        run: the number of the affected run; None if it is not known.
        message: a description.
    """

    table: str
    run: int | None
    message: str


class Verified(NamedTuple):
    """The result of `verify`.

    Attributes:
        faults: the integrity faults.
        runs: the number of runs.
        pruned: the numbers of the pruned runs.
        unused: the number of contents that no run refers to; the next `audit prune` removes them.
        head: the hash of the newest run; empty without one.
        retention: the hash of the newest retention; empty without one.
    """

    faults: list[IntegrityFault]
    runs: int
    pruned: list[int]
    unused: int
    head: str
    retention: str


#: How long a run waits for retention, and retention for runs, in seconds.
PATIENCE = 60.0
_PAUSE = 0.1
#: The message for an estate that another process is auditing.
RUNNING = "an audit of the estate is running already"
#: A lock of the whole store; those of estates have other numbers.
_WHOLE = 0


@contextmanager
def run_lock(engine: Engine, estate: str) -> Iterator[None]:
    """Lock an estate for an audit.

    Raises:
        StoreError: another process audits it, or retention does not end.
    """
    with _locking(engine) as take:
        _wait(lambda: take(_WHOLE, False), "retention is at work on the store")
        if not take(1 + int(digest_of(estate.encode())[:12], 16), True):
            remedy = "wait until it has ended"
            raise StoreError(RUNNING, place=(estate,), remedy=remedy)
        yield


@contextmanager
def retention_lock(engine: Engine) -> Iterator[None]:
    """Lock the store while contents are removed, because runs can depend on them.

    Raises:
        StoreError: an audit does not end.
    """
    with _locking(engine) as take:
        _wait(lambda: take(_WHOLE, True), "an audit is running")
        yield


#: Acquires the lock of a number, exclusive or shared, and returns whether it succeeded.
_Take = Callable[[int, bool], bool]


def _wait(take: Callable[[], bool], why_not: str) -> None:
    until = time.monotonic() + PATIENCE
    while not take():
        if time.monotonic() > until:
            raise StoreError(why_not, remedy="try again when it has ended")
        time.sleep(_PAUSE)


@contextmanager
def _locking(engine: Engine) -> Iterator[_Take]:
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:

            def take(number: int, alone: bool) -> bool:
                function = "pg_try_advisory_lock" if alone else "pg_try_advisory_lock_shared"
                statement = text(f"SELECT {function}(:ours + :number)")
                return bool(connection.scalar(statement, {"ours": _OURS, "number": number}))

            try:
                yield take
            finally:
                connection.execute(text("SELECT pg_advisory_unlock_all()"))
        return
    require_posix("a SQLite audit store", "use `postgresql://`, or run policyeng in WSL or a container")
    descriptor = _open_lock(Path(str(engine.url.database)))
    try:
        yield lambda number, alone: _take_byte(descriptor, number, alone)
    finally:
        os.close(descriptor)  # its locks end with it


#: Where our advisory locks begin, that others in the database have theirs.
_OURS = int.from_bytes(b"policy") << 13


def _open_lock(database: Path) -> int:
    """Open the lock file; a new one gets the mode of the database, as with SQLite's own files."""
    path, flags = f"{database}-lock", os.O_RDWR | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(path, flags)
    os.fchmod(descriptor, database.stat().st_mode & 0o666)
    return descriptor


def _take_byte(descriptor: int, number: int, alone: bool) -> bool:
    """Lock one byte of a file for this open file, not for the process as `lockf` would. Return whether it could."""
    import fcntl  # Windows has none, and `_locking` refuses it

    kind = fcntl.F_WRLCK if alone else fcntl.F_RDLCK
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, number, 1, 0))
    except BlockingIOError:
        return False
    return True


_Columns = TypeVarTuple("_Columns")

#: The newest migration.
HEAD = "0002"
#: The option of a connection that writes: SQLite locks the database when its transaction begins, and not in its midst.
_WRITES = "policyeng_writes"
#: Seconds that SQLite waits for another writer.
_BUSY = 60
_CREDENTIALS = re.compile(r"://[^/]*@")
_FORMS = "write `sqlite:///audits.db` or `postgresql://user@host/database`"


def engine_of(url: str, *, create: bool) -> Engine:
    """Return the engine of a store.

    Raises:
        UsageError: the URL is not of a store.
        StoreError: there is no store, it cannot be reached, or it has another version.
    """
    address = _address(url)
    if address.drivername == "sqlite" and not create and not Path(str(address.database)).is_file():
        raise _absent(hide_password(url))
    if address.drivername == "sqlite":
        _make_private(str(address.database))
        engine = create_engine(address, poolclass=NullPool)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    else:
        from policyeng.audit.store.postgresql import limit, statement_seconds  # it needs psycopg

        address, seconds = statement_seconds(address)
        engine = create_engine(address, poolclass=NullPool)
        limit(engine, seconds)
    try:
        with convert_errors(url):
            _migrate(engine, url, create=create)
    except ValueError as error:  # a driver raises it for a name with a NUL, or for a parameter
        raise UsageError(f"`{hide_password(url)}` cannot be used ({error})", remedy=_FORMS) from None
    return engine


def hide_password(url: str) -> str:
    """Return a URL without its password; an invalid URL without any credentials."""
    try:
        return make_url(url).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        return visible(_CREDENTIALS.sub("://***@", url))


@contextmanager
def convert_errors(url: str) -> Iterator[None]:
    """Convert errors of the database.

    Raises:
        StoreError: the database reported an error.
    """
    try:
        yield
    except DBAPIError as error:
        reason = str(error.orig).strip().splitlines()
        what = f"the database refuses ({reason[0].lower() if reason else type(error.orig).__name__})"
        raise StoreError(
            what, place=(hide_password(url),), remedy="see that it can be reached, read and written"
        ) from None


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Open a transaction that writes."""
    with engine.connect().execution_options(**{_WRITES: True}) as connection, connection.begin():
        yield connection


def streamed(connection: Connection, statement: Select[*_Columns], size: int = 1000) -> Generator[Row[*_Columns]]:
    """Yield the rows of a query, fetched in batches."""
    with connection.execute(statement, execution_options={"yield_per": size}) as rows:
        yield from rows


def lock_writes(connection: Connection) -> None:
    """Block other transactions that write runs until this one ends. Readers are not blocked."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE runs IN SHARE ROW EXCLUSIVE MODE"))


def _address(url: str) -> URL:
    try:
        address = make_url(url)
        url.encode()
    except (ArgumentError, ValueError):  # the latter for a port, an IPv6 address or a character that cannot be
        raise UsageError(f"`{hide_password(url)}` is no URL of a store", remedy=_FORMS) from None
    if address.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        try:
            import psycopg  # noqa: F401  # imported before it is needed, for the message
        except ImportError:
            raise UsageError("stores on PostgreSQL need psycopg", remedy="install `policyeng[postgresql]`") from None
        return address.set(drivername="postgresql+psycopg")
    if address.drivername != "sqlite" or not address.database or address.database == ":memory:":
        raise UsageError(f"`{hide_password(url)}` is no URL of a store", remedy=_FORMS)
    return address


def _make_private(path: str) -> None:
    """Create the file of a new database for this user only, whatever the umask: it contains configurations.

    SQLite gives its other files the mode of this one. The mode of an existing file does not change. If the file cannot
    be created, SQLite reports the reason.
    """
    with suppress(OSError, ValueError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _prepare_sqlite(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    assert isinstance(connection, SqliteConnection)  # noqa: S101  # for the type checker
    connection.isolation_level = None  # transactions begin as `_begin_sqlite` has them
    for pragma in (f"busy_timeout={_BUSY * 1000}", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get(_WRITES) else "BEGIN")


def _migrate(engine: Engine, url: str, *, create: bool) -> None:
    """See that the database is at the newest migration; with `create` it is brought there."""
    with engine.connect() as connection:
        found = _revision(connection)
    if found == HEAD:
        return
    if found is not None and found > HEAD:
        what = f"a newer version of policyeng wrote the store (migration `{found}`, known up to `{HEAD}`)"
        raise StoreError(what, place=(hide_password(url),), remedy="use that version, or a newer one")
    if create:
        from policyeng.audit.store.migrations.running import migrate  # Alembic takes long to load

        migrate(engine)
    elif found is None:
        raise _absent(hide_password(url))
    else:
        remedy = "`policyeng audit run` brings it to this one"
        raise StoreError("an older version of policyeng wrote the store", place=(hide_password(url),), remedy=remedy)


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return revision


def _absent(where: str) -> StoreError:
    return StoreError("there is no store", place=(where,), remedy="`policyeng audit run` makes it")
