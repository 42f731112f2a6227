"""Locks of a store: runs of different estates are concurrent, runs of one estate are not, and retention runs alone.

The locks belong to the operating system or the database server, and end with the process, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, text

from policyeng.audit.store.digests import digest_of
from policyeng.errors import StoreError

#: How long a run waits for retention, and retention for runs, in seconds.
PATIENCE = 60.0
_PAUSE = 0.1
#: What is said of an estate that somebody else audits.
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


#: Takes the lock of a number, alone or with others, and says whether it could.
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
                asked = text(f"SELECT {function}(:ours + :number)")
                return bool(connection.scalar(asked, {"ours": _OURS, "number": number}))

            try:
                yield take
            finally:
                connection.execute(text("SELECT pg_advisory_unlock_all()"))
        return
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
    kind = fcntl.F_WRLCK if alone else fcntl.F_RDLCK
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, number, 1, 0))
    except BlockingIOError:
        return False
    return True
