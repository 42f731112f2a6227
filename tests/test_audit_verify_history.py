"""`audit verify-history` notices every altered, removed, inserted or exchanged row of every table."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Column, Connection, RowMapping, Table, and_, select, update
from sqlalchemy import delete as removal
from sqlalchemy import insert as insertion
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.elements import ColumnElement

from policyeng.audit.store.connection import writing
from policyeng.audit.store.integrity import prune, verified, verify
from policyeng.audit.store.tables import CONTENTS, METADATA, RUNS
from tests.audits import START, Audited, exemption
from tests.command import policyeng
from tests.databases import Postgres
from tests.effort import effort

pytestmark = pytest.mark.slow

TABLES = sorted(METADATA.tables)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def audited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    """A store with seven runs of two estates, in which findings come, go and are exempted, and two retentions."""
    server: Postgres | None = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    kept = Audited(tmp_path_factory.mktemp("audited"), server.database() if server else "")
    fill(kept)
    yield kept
    kept.close()


def fill(kept: Audited) -> None:
    """Make the runs."""
    production = kept.estate
    kept.audit()
    kept.put("b", {"three": {"x": 1}})
    kept.audit()
    kept.estate = production.model_copy(update={"name": "development"})
    kept.audit(exemptions=[exemption("one")])
    prune(kept.store, now=START + timedelta(days=1), keep_runs=1)
    kept.estate = production
    kept.put("b", {"three": {"x": 0, "owner": "o"}})
    kept.drop("c")
    kept.audit(exemptions=[exemption("one")])
    kept.put("b", {"three": {"x": 1, "owner": "o"}})
    kept.write("a", b'{"resources": [')
    kept.audit()
    prune(kept.store, now=START + timedelta(days=2), keep_runs=1)
    kept.put("a", {"one": {"x": 1, "owner": "o"}})
    kept.audit()
    kept.audit()


def rows_of(connection: Connection, table: Table) -> Sequence[RowMapping]:
    """All rows in an order that is the same every time."""
    return connection.execute(select(table).order_by(*table.primary_key.columns)).mappings().all()


def only(table: Table, row: RowMapping) -> ColumnElement[bool]:
    """That row and no other."""
    return and_(*(column == row[column.name] for column in table.primary_key.columns))


def other(column: Column[object], value: object, chance: random.Random) -> object:
    """Another value that the column takes."""
    if value is None:
        return chance.randint(1, 9)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + chance.choice([-1, 1]) if not column.nullable or chance.random() < 0.8 else None
    if isinstance(value, bytes):
        content = bytearray(value)
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        return bytes(content)
    text = str(value)
    if not text:
        return "0" * 64
    at = chance.randrange(len(text))
    return text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :]


def alter(connection: Connection, table: Table, chance: random.Random) -> str:
    """Alter one value of one row."""
    row, column = chance.choice(rows_of(connection, table)), chance.choice([*table.columns])
    value = other(column, row[column.name], chance)
    connection.execute(update(table).where(only(table, row)).values({column.name: value}))
    return f"{column.name} of {row} became {value!r}"


def remove(connection: Connection, table: Table, chance: random.Random) -> str:
    """Remove one row."""
    row = chance.choice(rows_of(connection, table))
    connection.execute(removal(table).where(only(table, row)))
    return f"{row} was removed"


def put_in(connection: Connection, table: Table, chance: random.Random) -> str:
    """Put in a copy of a row under another key."""
    row = chance.choice(rows_of(connection, table))
    column = chance.choice([*table.primary_key.columns])
    copy = {**row, column.name: other(column, row[column.name], chance)}
    connection.execute(insertion(table).values(copy))
    return f"{copy} was put in"


def exchange(connection: Connection, table: Table, chance: random.Random) -> str:
    """Exchange the values that two rows have of some columns besides their keys, or of all of them."""
    rows = rows_of(connection, table)
    first, second = chance.sample([*rows], 2) if len(rows) > 1 else (rows[0], rows[0])
    names = [column.name for column in table.columns if not column.primary_key]
    names = names if chance.random() < 0.5 else [chance.choice(names)]
    for row, values in ((first, second), (second, first)):
        connection.execute(update(table).where(only(table, row)).values({name: values[name] for name in names}))
    return f"{names} of {first} and {second} were exchanged" if any(first[n] != second[n] for n in names) else ""


WAYS: Sequence[Callable[[Connection, Table, random.Random], str]] = (alter, remove, put_in, exchange)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_tampering_goes_unnoticed(
    audited: Audited, name: str, way: Callable[[Connection, Table, random.Random], str]
) -> None:
    """Whatever row is touched, the store is no longer consistent; the same store untouched is."""
    table, chance = METADATA.tables[name], random.Random(f"{name} {way.__name__}")
    tried = 0
    for _ in range(effort(12, 150)):
        with audited.store.engine.connect() as connection, connection.begin() as transaction:
            try:
                done = way(connection, table, chance)
            except DBAPIError:  # the database itself refuses it
                continue
            if done:
                tried += 1
                assert verified(connection).faults, done
            transaction.rollback()
    assert tried
    assert verify(audited.store).faults == []


def test_what_was_altered_is_named_with_its_table_and_run(audited: Audited) -> None:
    """A reader learns where to look."""
    with writing(audited.store.engine) as connection:
        run = audited.store.run(7)
        part = next(iter(audited.store.parts(run)))
        connection.execute(removal(CONTENTS).where(CONTENTS.c.digest == part.snapshot))
        fault = verified(connection).faults[0]
        connection.rollback()
    assert (fault.table, fault.run) == ("contents", 6)
    assert fault.message == f"the content `{part.snapshot[:12]}` is missing"


def test_only_a_hash_that_was_noted_shows_that_the_newest_runs_are_gone(tmp_path: Path) -> None:
    """A chain cannot show what was cut off its end."""
    audited = Audited(tmp_path)
    audited.audit()
    head = audited.audit().hash
    again = Audited(tmp_path / "again")
    first = again.audit()
    assert verify(again.store).faults == []
    assert [fault.message for fault in verify(again.store, [head]).faults] == [
        f"no run and no retention has the expected hash `{head}`"
    ]
    assert verify(again.store, [first.hash]).faults == []
    audited.close()
    again.close()


def test_the_command_reports_what_is_verified_and_what_is_not(tmp_path: Path) -> None:
    """Exit 0 and the head; exit 2 with the fault on standard error."""
    audited = Audited(tmp_path)
    head = audited.audit().hash
    url = ("--store", audited.url)
    checked = policyeng("audit", "verify-history", *url, "--expect", head)
    assert (checked.returncode, checked.stdout) == (0, f"1 run: no row was altered\nhead {head}\n")
    with writing(audited.store.engine) as connection:
        connection.execute(update(RUNS).values(estate="elsewhere"))
    broken = policyeng("audit", "verify-history", *url)
    assert broken.returncode == 2
    assert "policyeng: runs: run 1: its document is of another number or estate" in broken.stderr
    report = policyeng("audit", "verify-history", *url, "--format", "json")
    assert '"table": "runs"' in report.stdout
    audited.close()
