"""The databases that stores are tested on: SQLite in a file, and a real PostgreSQL that the suite starts."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4

import psycopg
import pytest

#: PostgreSQL refuses to run as root; then it runs as this user.
_NOBODY = "nobody"
_STARTING = 60.0
_OWNER = "policyeng"


class Postgres:
    """A server on a socket in a directory of its own.

    Attributes:
        folder: where its socket is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._names = (f"audits_{uuid4().hex[:8]}_{number}" for number in count())

    def database(self) -> str:
        """The URL of a new, empty database."""
        name = next(self._names)
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql://{_OWNER}@/{name}?host={self.folder}"

    def connect(self) -> psycopg.Connection:
        """A connection to the server, outside of transactions."""
        return psycopg.connect(f"postgresql://{_OWNER}@/postgres?host={self.folder}", autocommit=True)


@contextmanager
def running() -> Iterator[Postgres]:
    """Start a server, and end it with everything that it kept."""
    folder = Path(mkdtemp(prefix="policyeng-pg-", dir="/tmp"))  # the path of a socket must be short
    user = _NOBODY if os.geteuid() == 0 else None
    if user:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    try:
        # A language other than C, so that nothing relies on how the server sorts text.
        words = ["--locale-provider=icu", "--icu-locale=en", "--encoding=UTF8", "--auth=trust", f"--username={_OWNER}"]
        start = [str(_program("initdb")), *words, "--no-sync", f"--pgdata={folder}/kept"]
        subprocess.run(start, check=True, capture_output=True, user=user, cwd=folder)
        settings = [f"unix_socket_directories={folder}", "listen_addresses=", "fsync=off", "shared_buffers=32MB"]
        words = [word for setting in settings for word in ("-c", setting)]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [str(_program("postgres")), "-D", f"{folder}/kept", *words], stderr=log, user=user, cwd=folder
            )
        try:
            postgres = Postgres(folder)
            _await(postgres)
            yield postgres
        finally:
            server.send_signal(signal.SIGINT)  # a fast shutdown
            server.wait(_STARTING)
    finally:
        shutil.rmtree(folder)


def _program(name: str) -> Path:
    """A program of PostgreSQL; its absence is a failure, as half of the suite of stores would not be run."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    on_path = shutil.which(name)
    if not found and on_path is None:
        pytest.fail(f"PostgreSQL has no `{name}` here: install the package postgresql-15")
    return found[-1] if found else Path(str(on_path))


def _await(postgres: Postgres) -> None:
    until = time.monotonic() + _STARTING
    while True:
        try:
            postgres.connect().close()
        except psycopg.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server for all tests of this process."""
    with running() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without a store, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/audits.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.database()
