"""What is wrong with the rows of a store."""

from __future__ import annotations

from typing import NamedTuple


class IntegrityFault(NamedTuple):
    """A row that is not the one that was written, or is missing, or was put in.

    Attributes:
        table: where it stands.
        run: the number of the run that it concerns; None where that cannot be said.
        message: what is wrong.
    """

    table: str
    run: int | None
    message: str


class Verified(NamedTuple):
    """What `verify` found.

    Attributes:
        faults: what is wrong; empty where everything holds together.
        runs: how many there are.
        pruned: the numbers of the runs of which retention took something.
        unused: how many contents no run refers to; they are harmless, and the next `audit prune` takes them away.
        head: the hash of the newest run; empty without one.
        retention: the hash of the newest retention; empty without one.
    """

    faults: list[IntegrityFault]
    runs: int
    pruned: list[int]
    unused: int
    head: str
    retention: str
