"""How much the suite tries: enough for every change, and with `THOROUGH_TESTS=1` (`make thorough`) much more."""

from __future__ import annotations

import os

THOROUGH = os.environ.get("THOROUGH_TESTS", "") not in ("", "0")


def effort(usual: int, thorough: int) -> int:
    """How many examples, pairs or cases a test takes: the first number, or the second in a thorough run."""
    return thorough if THOROUGH else usual
