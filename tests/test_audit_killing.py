"""`kill -9` at any point loses no earlier run and leaves no half run; `python -m tests.killing` tries it more often."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.effort import effort
from tests.killing import Killing, Kills

pytestmark = pytest.mark.slow


def test_a_killed_audit_leaves_the_store_as_it_was(tmp_path: Path, store_url: str) -> None:
    """Or with the whole run; the next one and retention take away what it wrote ahead."""
    killing = Killing(tmp_path, store_url, seed=1)
    kills = Kills()
    for _ in range(effort(3, 50)):
        killing.kill(kills)
    killing.settle()
    killing.close()
