"""Holding the collector back: for as long as it is asked, and not longer."""

from __future__ import annotations

import gc

import pytest

from policyeng.garbage import uncollected
from policyeng.strict.json_text import parse_json


def test_the_collector_runs_again_afterwards() -> None:
    """Also after an error, and only when the outermost block ends."""
    with uncollected():
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="broken"), uncollected():
        raise ValueError("broken")
    assert gc.isenabled()


def test_who_held_it_back_before_keeps_it_so() -> None:
    """A program that runs without the collector does so after a run, too."""
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_reading_json_is_not_interrupted_to_collect() -> None:
    """Nothing in it is garbage, and a collection walks through all of it while no other thread runs."""
    collections: list[str] = []
    gc.callbacks.append(lambda phase, _: collections.append(phase))
    try:
        parse_json(b"[" + b"[]," * 10_000 + b"[]]", "lists")
        stopped = len(collections)
        _ = [[] for _ in range(10_000)]
    finally:
        gc.callbacks.pop()

    assert len(collections) > stopped
    assert stopped <= 2  # of what the reader left behind
