"""Numbers as documents write them: counts. `whole` is that of `policies/lib/numbers.rego`, which reads amounts too."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"[0-9]{1,9}")
_LIMIT = 1_000_000_000


def parse_whole_number(value: object) -> int | None:
    """Return a whole number of at most nine digits, also when it is written as text, as templates do.

    None for others.
    """
    if isinstance(value, str):
        return int(value) if _DIGITS.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < _LIMIT and value == int(value) else None
