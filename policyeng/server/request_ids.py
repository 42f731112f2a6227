"""Ids of requests and decisions."""

from __future__ import annotations

import os
from random import Random

#: Seeded by the system once: to ask it for each id would give the interpreter to another thread each time.
_chance = Random()  # noqa: S311  # an id is no secret
os.register_at_fork(after_in_child=_chance.seed)  # or all workers would give the same ids


def new_id() -> str:
    """One that no other has, 32 hexadecimal digits."""
    return f"{_chance.getrandbits(128):032x}"
