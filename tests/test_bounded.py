"""What a small input can make the product keep in memory is bounded: refusals by number, contents by size."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable

import pytest

from policyeng.audit.store import tables
from policyeng.audit.store.tables import digest_of
from policyeng.errors import StoreError
from policyeng.sources import native
from policyeng.sources.parsed import MAX_REFUSALS, reading_of, refuse

MANY = 100_000


def peak(use: Callable[[], object]) -> int:
    """Bytes that a call takes at most beyond what was there."""
    tracemalloc.start()
    try:
        use()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.attack
def test_refusals_are_counted_from_the_thousandth_on() -> None:
    """The first ones are reported, and how many there are beyond them; neighbours of one reason count once."""
    entries = (refuse(f"/{number}", f"reason {number // 2}") for number in range(2 * MAX_REFUSALS + 3))
    refusals = reading_of(entries).refusals

    assert len(refusals) == MAX_REFUSALS + 1
    assert refusals[0].message == "reason 0 (same for the next one)"
    assert refusals[-2].message == f"reason {MAX_REFUSALS - 1} (same for the next one)"
    assert refusals[-1].message == "3 more parts of the document cannot be read"
    assert len(reading_of(refuse("", f"{number}") for number in range(MAX_REFUSALS)).refusals) == MAX_REFUSALS


@pytest.mark.slow
@pytest.mark.parametrize("key", ["resources", "approvals"])
def test_a_list_of_numbers_takes_no_more_than_itself(key: str) -> None:
    """No refusal is kept for each member."""
    document = {"snapshotVersion": 1, key: [1] * MANY}
    [refusal, *more] = native.read(document).refusals

    assert refusal.place == f"/{key}/0"
    assert len(more) in (0, MAX_REFUSALS)
    assert peak(lambda: native.read(document)) < 20 * MANY


def test_unknown_keys_are_bounded() -> None:
    """A document may have as many keys as entries."""
    document = {"snapshotVersion": 1, **{f"k{number}": 1 for number in range(MAX_REFUSALS + 5)}}

    assert native.read(document).refusals[-1].message == "5 more parts of the document cannot be read"


@pytest.mark.attack
def test_a_content_that_decompresses_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By how much it decompresses to, before all of it is there; a content as large as allowed is read."""
    monkeypatch.setattr(tables, "MAX_CONTENT", 1000)
    largest = b"x" * 1000
    assert tables.unpack(digest_of(largest), tables.pack(largest)) == largest
    with pytest.raises(StoreError, match="a content of 1001 bytes is too large"):
        tables.pack(b"x" * 1001)

    bomb = bytes(50_000_000)
    deflated = zlib.compress(bomb)
    stored = zlib.crc32(deflated).to_bytes(4, "big") + deflated
    digest = digest_of(bomb)
    del bomb

    def unpack() -> None:
        with pytest.raises(StoreError, match="is not the one that was stored"):
            tables.unpack(digest, stored)

    assert peak(unpack) < 1_000_000
