"""The contents that runs refer to, directly and through frames of snapshots and heads of evaluations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from sqlalchemy import Connection, select

from policyeng.audit.store.blobs import fetch, in_batches
from policyeng.audit.store.codecs import head_of, resources_of
from policyeng.audit.store.tables import PARTS, RUNS


class Reference(NamedTuple):
    """A content that refers to others: a frame to resources, a head to findings."""

    digest: str
    below: list[str]


class Direct(NamedTuple):
    """The contents that runs refer to directly: bundles, frames and heads."""

    policies: set[str]
    frames: set[str]
    heads: set[str]


def direct_of(connection: Connection, numbers: Iterable[int]) -> Direct:
    """Return the contents that runs refer to directly."""
    found = Direct(set(), set(), set())
    for batch in in_batches(numbers):
        found.policies.update(connection.scalars(select(RUNS.c.policies).where(RUNS.c.number.in_(batch))))
        for frame, head in connection.execute(
            select(PARTS.c.snapshot, PARTS.c.evaluation).where(PARTS.c.run.in_(batch))
        ):
            if frame:
                found.frames.add(frame)
                found.heads.add(head)
    return found


def references_of(connection: Connection, direct: Direct, unread: Collection[str] = ()) -> Iterator[Reference]:
    """Yield the references of stored frames and heads.

    Args:
        connection: the connection to read from.
        direct: the frames and heads.
        unread: digests of contents to skip.

    Raises:
        StoreError: a frame or a head is not what was stored.
    """
    for digests, below in ((direct.frames, resources_of), (direct.heads, _findings_of)):
        for batch in in_batches(sorted(digests.difference(unread))):
            for digest, content in fetch(connection, batch).items():
                yield Reference(digest, below(content))


def needed_by(connection: Connection, numbers: Iterable[int], known: Collection[str] = ()) -> set[str]:
    """Return all contents that runs refer to, except those that only `known` contents refer to.

    Raises:
        StoreError: one of them is not what was stored.
    """
    direct = direct_of(connection, numbers)
    found = direct.policies | direct.frames | direct.heads
    for reference in references_of(connection, direct, known):
        found.update(reference.below)
    return found


def _findings_of(head: bytes) -> list[str]:
    return [head_of(head).findings]
