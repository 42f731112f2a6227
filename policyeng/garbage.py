"""Hold Python's garbage collector back where hundreds of thousands of objects are made and no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection while this is open; each would walk through the whole snapshot and find nothing.

    What several threads hold back is given free by the first that ends, which costs time and nothing else.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
