"""Integrity faults of a store."""

from __future__ import annotations

from typing import NamedTuple


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
