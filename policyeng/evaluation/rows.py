"""Where members of lists change, come or go, and the lists after that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from policyeng.evaluation.estate import Resource

_Member = TypeVar("_Member")


class Row(NamedTuple):
    """A subject that changes.

    Attributes:
        position: where it stands before, or in front of which of the subjects of before it comes.
        key: by which the subjects of its kind are sorted.
        before, after: None where it is not there.
        text: what it becomes, as JSON.
        now: where it stands after the change; -1 where it is there no more.
    """

    position: int
    key: str
    before: Resource | None
    after: Resource | None
    text: bytes = b""
    now: int = -1


class Slot(NamedTuple):
    """Where a resource changes, comes or goes; the first three members are those of its row."""

    position: int
    key: str
    before: Resource | None
    stays: bool


def late_first(row: Row | Slot) -> tuple[int, bool, str]:
    """Rows, in reverse, in an order in which none moves those that are still to be put in their places."""
    return row.position, row.before is not None, row.key


def spliced(members: Iterable[_Member], rows: Iterable[Row | Slot], become: Iterable[_Member | None]) -> list[_Member]:
    """Members of which some become others, or go where they become None; `rows` come late ones first."""
    changed = list(members)
    for row, member in zip(rows, become, strict=True):
        end = row.position + (row.before is not None)
        changed[row.position : end] = [] if member is None else [member]
    return changed


def numbered(rows: Sequence[Row]) -> list[Row]:
    """Rows, late ones first, told where they stand after the change."""
    found, shift = [], 0
    for row in reversed(rows):
        found.append(row if row.after is None else row._replace(now=row.position + shift))
        shift += (row.before is None) - (row.after is None)
    return found[::-1]
