"""What the last run of an estate says of its parts, for the run after it: what still holds is not judged again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import select

from policyeng.audit.history import Run
from policyeng.audit.store.contents import fetch
from policyeng.audit.store.digests import PartRow
from policyeng.audit.store.kept import Store
from policyeng.audit.store.kept_evaluations import head_of
from policyeng.audit.store.tables import PARTS


def rows_of(store: Store, run: Run) -> dict[str, PartRow]:
    """The parts of a run with all that the store has of them, by name."""
    with store.reading() as connection:
        rows = connection.execute(select(*(PARTS.c[name] for name in PartRow._fields)).where(PARTS.c.run == run.number))
        return {row.name: PartRow(*row) for row in rows}


def heads_of(store: Store, rows: Iterable[PartRow]) -> Mapping[str, bytes]:
    """What parts were found to be but for the findings, by the digest of the evaluation; without what is gone.

    Raises:
        StoreError: one of them is not what was stored.
    """
    with store.reading() as connection:
        return fetch(connection, [row.evaluation for row in rows])


def findings_of(store: Store, head: bytes) -> bytes | None:
    """The findings that a head names; None where they are gone.

    Raises:
        StoreError: they are not what was stored.
    """
    digest = head_of(head).findings
    with store.reading() as connection:
        return fetch(connection, [digest]).get(digest)
