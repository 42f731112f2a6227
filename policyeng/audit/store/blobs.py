"""Contents by their digests, compressed, each stored once and verified when it is read."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from policyeng.audit.store.digests import digest_of
from policyeng.audit.store.tables import CONTENTS
from policyeng.errors import StoreError

_Value = TypeVar("_Value")

#: Higher levels take twice the time and save a twentieth.
_LEVEL = 3
#: How many digests one question names; SQLite takes 32,766 variables.
_ASKED = 500
_CHECKSUM = 4
#: Bytes that a content may have: more than the largest document that is read.
MAX_CONTENT = 1 << 28


def in_batches(values: Iterable[_Value], size: int = _ASKED) -> Iterator[Sequence[_Value]]:
    """Yield values in lists of at most `size`."""
    iterator = iter(values)
    while batch := list(islice(iterator, size)):
        yield batch


def pack(content: bytes) -> bytes:
    """Return the stored form of a content. Its checksum also covers the bits that decompression ignores.

    Raises:
        StoreError: it is too large.
    """
    if len(content) > MAX_CONTENT:
        message = f"a content of {len(content)} bytes is too large; a store takes {MAX_CONTENT}"
        raise StoreError(message, remedy="split the estate into smaller parts")
    deflated = zlib.compress(content, _LEVEL)
    return zlib.crc32(deflated).to_bytes(_CHECKSUM, "big") + deflated


def unpack(digest: str, stored: bytes) -> bytes:
    """Return the content of its stored form.

    Raises:
        StoreError: the bytes do not match the digest.
    """
    deflated = stored[_CHECKSUM:]
    whole = zlib.crc32(deflated).to_bytes(_CHECKSUM, "big") == stored[:_CHECKSUM]
    content = _inflated(deflated) if whole else None
    if content is None or digest_of(content) != digest:
        remedy = "restore the store from a backup; `policyeng audit verify-history` says which runs it concerns"
        raise StoreError(
            f"the content `{digest[:12]}` is not the one that was stored", place=("contents",), remedy=remedy
        )
    return content


def _inflated(deflated: bytes) -> bytes | None:
    """Decompress bytes; None where they are none, or are more than a content can have."""
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(deflated, MAX_CONTENT)
    except zlib.error:
        return None
    return content if stream.eof else None


def store_missing(connection: Connection, contents: Mapping[str, bytes]) -> None:
    """Store the packed contents that are missing, in the order of their digests to avoid deadlocks of writers."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    for batch in in_batches(sorted(contents)):
        known = set(connection.scalars(select(CONTENTS.c.digest).where(CONTENTS.c.digest.in_(batch))))
        rows = [{"digest": digest, "content": contents[digest]} for digest in batch if digest not in known]
        if rows:
            connection.execute(insert(CONTENTS).on_conflict_do_nothing(), rows)


def fetch(connection: Connection, digests: Iterable[str]) -> dict[str, bytes]:
    """Return contents by digest, without those that are missing.

    Raises:
        StoreError: one of them is not what was stored.
    """
    found: dict[str, bytes] = {}
    for batch in in_batches(dict.fromkeys(digests)):
        rows = connection.execute(select(CONTENTS).where(CONTENTS.c.digest.in_(batch)))
        found.update((digest, unpack(digest, content)) for digest, content in rows)
    return found
