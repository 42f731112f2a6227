"""The benchmark of the Rego compiler on a small estate: what it measures of two processes and of OPA."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.compiler import Figures, measured, page

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_a_small_estate_is_measured_against_this_checkout_itself(
    tmp_path: Path, opa: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal verdicts, then a figure for each target."""
    monkeypatch.setattr("benchmarks.compiler._ROUNDS", 1)
    figures = measured(tmp_path, opa, 12, ROOT, most=2)

    assert figures is not None
    assert figures.other is not None
    assert figures.pairs > 50
    assert figures.sampled == 2
    assert min(figures.ours, figures.ours_sampled, figures.opa, figures.text, figures.cached) > 0


def test_the_page_names_what_was_missed() -> None:
    """And what was met."""
    text = page(Figures(100, 5.0, 25.0, 10, 5.0, 60.0, 600.0, 9.0, (40.0, 55.0)), 12, "the engine before")

    assert "| per pair: the engine before | >= 4x | 5.0x | met |" in text
    assert "| per pair: `opa bench` | >= 15x | 12.0x | **missed** |" in text
    assert "adds 15 MB to a process of 40 MB" in text
