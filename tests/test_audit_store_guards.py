"""Each guard of `verify-history` has a store that only it notices; every fault is compared as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import orjson
import pytest
from sqlalchemy import Connection, delete, insert, select, update

from policyeng.audit.store.integrity import prune, verified
from policyeng.audit.store.tables import PARTS, RETENTIONS, RUNS, canonical, run_hash
from tests.audits import START, Audited

_OTHERS = "its parts, its policies or its retention are not those that it was made of"


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    """Three runs with a retention before the third, and a fourth without any part."""
    kept = Audited(tmp_path_factory.mktemp("guards"))
    kept.audit()
    kept.audit()
    prune(kept.store, now=START + timedelta(days=9), keep_runs=1)
    kept.audit()
    kept.estate = kept.estate.model_copy(update={"name": "empty", "inputs": ()})
    kept.audit()
    yield kept
    kept.close()


@pytest.fixture
def connection(audited: Audited) -> Iterator[Connection]:
    """A transaction whose changes are taken back."""
    with audited.store.engine.connect() as connection, connection.begin() as transaction:
        yield connection
        transaction.rollback()


def faults(connection: Connection, table: str) -> list[tuple[int | None, str]]:
    """What is wrong with a table."""
    return [(fault.run, fault.message) for fault in verified(connection).faults if fault.table == table]


def rewrite(connection: Connection, **values: object) -> None:
    """Change what the document of the newest run states, with a hash that fits."""
    text = connection.scalar(select(RUNS.c.document).where(RUNS.c.number == 4)) or ""
    document = canonical({**orjson.loads(text), **values}).decode()
    changed = {"document": document, "hash": run_hash(document)}
    connection.execute(update(RUNS).where(RUNS.c.number == 4).values(changed))


def test_a_store_as_it_was_written_has_no_faults(connection: Connection) -> None:
    """Also with a run without parts, and with a retention."""
    found = verified(connection)
    assert (found.faults, found.runs, found.pruned, found.unused) == ([], 4, [1], 0)


def test_a_run_whose_parts_were_all_deleted(connection: Connection) -> None:
    """Nothing of the run but its hash shows that it had some."""
    connection.execute(delete(PARTS).where(PARTS.c.run == 3))
    assert faults(connection, "parts") == [(3, "its parts are missing")]


def test_a_run_whose_parts_and_document_are_gone(connection: Connection) -> None:
    """The document is the fault; its parts cannot be compared with anything."""
    connection.execute(delete(PARTS).where(PARTS.c.run == 3))
    connection.execute(update(RUNS).where(RUNS.c.number == 3).values(document="[", hash=run_hash("[")))
    assert faults(connection, "parts") == []
    assert (3, "its document or its hash was altered") in faults(connection, "runs")


def test_parts_of_a_run_without_a_document(connection: Connection) -> None:
    """The same where the parts are there."""
    connection.execute(update(RUNS).where(RUNS.c.number == 3).values(document="[]", hash=run_hash("[]")))
    assert faults(connection, "parts") == []
    assert (3, "its document or its hash was altered") in faults(connection, "runs")


def test_a_hash_that_is_not_of_the_document(connection: Connection) -> None:
    """Of the newest run, which none follows."""
    connection.execute(update(RUNS).where(RUNS.c.number == 4).values(hash="0" * 64))
    assert faults(connection, "runs") == [(4, "its document or its hash was altered")]


@pytest.mark.parametrize("changed", [{"number": 5}, {"estate": "other"}, {"number": 5, "estate": "other"}])
def test_a_document_of_another_run(connection: Connection, changed: dict[str, object]) -> None:
    """With a hash that fits, its columns show it."""
    rewrite(connection, **changed)
    assert faults(connection, "runs") == [(4, "its document is of another number or estate")]


def test_a_run_that_follows_another(connection: Connection) -> None:
    """With a hash that fits, the run before it shows it."""
    rewrite(connection, previous="0" * 64)
    assert faults(connection, "runs") == [(4, "it does not follow the run before it")]


def test_a_run_in_the_midst_is_missing(connection: Connection) -> None:
    """What follows is not looked at any more."""
    connection.execute(delete(RUNS).where(RUNS.c.number == 2))
    assert faults(connection, "runs") == [(2, "the run is missing: after 1 comes 3")]
    assert faults(connection, "parts") == [(2, "there are parts of a run that is not there")]


@pytest.mark.parametrize(("number", "retention"), [(4, "0" * 64), (4, "")])
def test_a_retention_that_is_not_there_or_out_of_order(connection: Connection, number: int, retention: str) -> None:
    """A run cannot follow an older retention than the run before it."""
    connection.execute(update(RUNS).where(RUNS.c.number == number).values(retention=retention))
    assert faults(connection, "runs") == [(number, "the retention that it follows is not there, or not in order")]


def test_a_later_retention_than_the_run_knew(connection: Connection) -> None:
    """It is in order, and the parts show it."""
    newest = connection.scalar(select(RETENTIONS.c.hash))
    connection.execute(update(RUNS).where(RUNS.c.number == 2).values(retention=newest))
    assert faults(connection, "runs") == []
    assert faults(connection, "parts") == [(2, _OTHERS)]


def test_a_part_at_another_position(connection: Connection) -> None:
    """Its content is the same, and its order is."""
    last = connection.scalar(select(PARTS.c.position).where(PARTS.c.run == 3).order_by(PARTS.c.position.desc()))
    moved = (PARTS.c.run == 3) & (PARTS.c.position == last)
    connection.execute(update(PARTS).where(moved).values(position=9))
    assert faults(connection, "parts") == [(3, _OTHERS)]


def test_other_policies(connection: Connection) -> None:
    """A run without parts is tied to them, too."""
    other = "0" * 64
    connection.execute(update(RUNS).where(RUNS.c.number == 4).values(policies=other))
    assert faults(connection, "parts") == [(4, "its parts are missing")]


def test_a_part_of_no_run(connection: Connection) -> None:
    """It is named by the number that it states, next to those that are well."""
    row = connection.execute(select(PARTS).where(PARTS.c.run == 3)).mappings().first()
    assert row is not None
    connection.execute(insert(PARTS).values({**row, "run": 99}))
    assert faults(connection, "parts") == [(99, "there are parts of a run that is not there")]


def test_a_retention_of_a_run_that_is_not_there(connection: Connection) -> None:
    """Also where no other run is there."""
    for table in (PARTS, RUNS):
        connection.execute(delete(table))
    assert faults(connection, "retentions") == [(1, "retention took something of a run that is not there")]


def test_the_heads_are_the_newest(connection: Connection) -> None:
    """Of runs and of retentions; hashes of both can be expected."""
    hashes = connection.scalars(select(RUNS.c.hash).order_by(RUNS.c.number)).all()
    retention = connection.scalar(select(RETENTIONS.c.hash))
    found = verified(connection, [hashes[0], hashes[3], str(retention), "x"])

    assert (found.head, found.retention) == (hashes[3], retention)
    assert [fault.message for fault in found.faults] == ["no run and no retention has the expected hash `x`"]
