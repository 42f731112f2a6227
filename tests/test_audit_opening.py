"""Stores are opened at the newest migration, or refused with what to do."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import Column, Index, SchemaItem, Table

from policyeng.audit.store import open_store, postgresql
from policyeng.audit.store.connection import HEAD, convert_errors, hide_password, lock_writes, run_lock, writing
from policyeng.audit.store.store import Store
from policyeng.audit.store.tables import METADATA
from policyeng.errors import StoreError, UsageError
from tests.command import policyeng
from tests.databases import Postgres

pytestmark = pytest.mark.slow


def test_the_migrations_make_the_tables_that_are_used(store_url: str) -> None:
    """Nothing is missing, and nothing is of another type; messages that wait to be sent are looked at elsewhere."""

    def ours(entry: SchemaItem, *_: object) -> bool:
        table = entry.table if isinstance(entry, Column | Index) else entry
        return not isinstance(table, Table) or table.name in METADATA.tables

    with open_store(store_url, create=True) as store, store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "include_object": ours})
        assert compare_metadata(context, METADATA) == []


def test_a_store_of_another_version_is_refused(store_url: str) -> None:
    """A newer one by all; an older one by all but a run, which migrates it."""
    for version, message, remedy in (
        ("9999", "a newer version of policyeng wrote the store", "use that version"),
        ("0000", "an older version of policyeng wrote the store", "`policyeng audit run`"),
    ):
        with open_store(store_url, create=True) as store, writing(store.engine) as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": version})
        with pytest.raises(StoreError) as refused:
            open_store(store_url)
        assert message in str(refused.value)
        assert remedy in refused.value.remedy
        set_version(store_url, HEAD)
    set_version(store_url, "9999")
    with pytest.raises(StoreError, match="newer"):
        open_store(store_url, create=True)


def set_version(url: str, version: str) -> None:
    """Set the version of the store."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": version})


def test_a_database_without_a_store_is_refused_but_by_a_run(store_url: str) -> None:
    """Nothing is made in it."""
    for _ in range(2):
        with pytest.raises(StoreError, match="there is no store"):
            open_store(store_url)


def test_what_a_database_refuses_is_reported_without_the_password(tmp_path: Path) -> None:
    """A server that is not there, a file that is no database, a directory that is not there."""
    with pytest.raises(StoreError) as refused:
        open_store(f"postgresql://me:secret@/x?host={tmp_path}", create=True)
    assert "the database refuses" in str(refused.value)
    assert "secret" not in str(refused.value)
    (tmp_path / "no.db").write_bytes(b"this is no database" * 100)
    with pytest.raises(StoreError, match="file is not a database"):
        open_store(f"sqlite:///{tmp_path}/no.db")
    with pytest.raises(StoreError, match="unable to open database file"):
        open_store(f"sqlite:///{tmp_path}/nowhere/a.db", create=True)


@pytest.mark.parametrize(
    "url", ["", "audits.db", "sqlite://", "sqlite:///:memory:", "mysql://h/x", "sqlite+aiosqlite:///x"]
)
def test_what_is_no_url_of_a_store_is_a_usage_error(url: str) -> None:
    """With the two forms that are."""
    with pytest.raises(UsageError) as refused:
        open_store(url, create=True)
    assert "postgresql://user@host/database" in refused.value.remedy


def test_a_url_is_shown_without_its_password() -> None:
    """Whatever its other content."""
    assert hide_password("postgresql://me:secret@h/x") == "postgresql://me:***@h/x"


def test_a_damaged_store_gives_a_message(tmp_path: Path) -> None:
    """And no traceback, whatever is read."""
    (tmp_path / "no.db").write_bytes(b"this is no database" * 100)
    for words in (["runs"], ["verify-history"], ["replay", "1"], ["prune", "--keep-runs", "1"]):
        ran = policyeng("audit", *words, "--store", f"sqlite:///{tmp_path}/no.db")
        assert ran.returncode == 2
        assert "the database refuses (file is not a database)" in ran.stderr


def query_a_frozen_backend(store: Store, backends: list[int]) -> None:
    """Stop the process of a connection, note its number, and send a query."""
    with store.reading() as connection:
        backends.append(connection.scalar(text("SELECT pg_backend_pid()")) or 0)
        os.kill(backends[0], signal.SIGSTOP)
        connection.scalar(text("SELECT 1"))


def test_a_frozen_server_is_given_up(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the midst of a statement, and when a connection is made; the kernel still acknowledges what is sent."""
    monkeypatch.setattr(postgresql, "GRACE", 0.5)
    monkeypatch.setattr(postgresql, "CONNECT", 2)
    url = f"{postgres.database()}&statement_timeout=1"
    with open_store(url, create=True) as store:
        backends: list[int] = []
        with pytest.raises(StoreError, match=r"the server did not answer within 1\.5 seconds"):
            query_a_frozen_backend(store, backends)
        os.kill(backends[0], signal.SIGCONT)
        parent = int((postgres.folder / "kept" / "postmaster.pid").read_text().split()[0])
        os.kill(parent, signal.SIGSTOP)
        try:
            with pytest.raises(StoreError, match="timeout expired"):
                store.estates()
        finally:
            os.kill(parent, signal.SIGCONT)
        assert store.estates() == []


def test_a_statement_and_a_lock_have_limits(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server ends them, and the connection can be used again."""
    monkeypatch.setattr(postgresql, "LOCK", 1)
    url = f"{postgres.database()}&statement_timeout=2"
    with open_store(url, create=True) as store:
        with pytest.raises(StoreError, match="statement timeout"), store.reading() as connection:
            connection.execute(text("SELECT pg_sleep(60)"))
        with writing(store.engine) as first:
            lock_writes(first)
            with pytest.raises(StoreError, match="lock timeout"), convert_errors(url), writing(store.engine) as second:
                lock_writes(second)
        assert store.head() is None


@pytest.mark.attack
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_the_files_of_a_store_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    """The database, its log and shared memory while it is open, and the locks."""
    before = os.umask(umask)
    try:
        with (
            open_store(f"sqlite:///{tmp_path}/a.db", create=True) as store,
            run_lock(store.engine, "e"),
            writing(store.engine) as connection,
        ):
            connection.execute(text("CREATE TABLE x (y)"))
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(before)

    assert sorted(modes) == ["a.db", "a.db-lock", "a.db-shm", "a.db-wal"]
    assert set(modes.values()) == {0o600}


def test_an_existing_store_keeps_its_mode(tmp_path: Path) -> None:
    """So that a group can share one; new files next to it get the same."""
    (tmp_path / "a.db").touch()
    (tmp_path / "a.db").chmod(0o660)
    with open_store(f"sqlite:///{tmp_path}/a.db", create=True) as store, run_lock(store.engine, "e"):
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o660}
