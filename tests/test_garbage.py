"""Switching the collector off: for as long as requested, and not longer."""

from __future__ import annotations

import gc

import pytest

from policyeng._performance import uncollected


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


def test_a_collector_that_was_off_before_stays_off() -> None:
    """A program that runs without the collector does so after a run, too."""
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
