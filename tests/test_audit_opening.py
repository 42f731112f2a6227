"""Stores are opened at the newest migration, or refused with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import Column, Index, SchemaItem, Table

from policyeng.audit.store import open_store
from policyeng.audit.store.opening import HEAD, shown, writing
from policyeng.audit.store.tables import METADATA
from policyeng.errors import StoreError, UsageError
from tests.command import policyeng


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
    """Let the store say that it is of a version."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": version})


def test_a_database_without_a_store_is_refused_but_by_a_run(store_url: str) -> None:
    """Nothing is made in it."""
    for _ in range(2):
        with pytest.raises(StoreError, match="there is no store"):
            open_store(store_url)


def test_what_a_database_refuses_is_said_without_the_password(tmp_path: Path) -> None:
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
    """Whatever else it says."""
    assert shown("postgresql://me:secret@h/x") == "postgresql://me:***@h/x"


def test_a_damaged_store_gives_a_message(tmp_path: Path) -> None:
    """And no traceback, whatever is read."""
    (tmp_path / "no.db").write_bytes(b"this is no database" * 100)
    for words in (["runs"], ["verify-history"], ["replay", "1"], ["prune", "--keep-runs", "1"]):
        ran = policyeng("audit", *words, "--store", f"sqlite:///{tmp_path}/no.db")
        assert ran.returncode == 2
        assert "the database refuses (file is not a database)" in ran.stderr
