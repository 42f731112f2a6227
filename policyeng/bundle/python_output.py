"""Keep what Python policies print out of reports: it goes to standard error."""

from __future__ import annotations

import sys
from threading import Lock
from typing import TextIO


class _ToStandardError:
    """A context in which `sys.stdout` is standard error; threads may be in it at the same time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._output: TextIO | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._output, sys.stdout = sys.stdout, sys.stderr

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                sys.stdout = self._output


#: The context in which modules of policies and their functions run.
printing_to_standard_error = _ToStandardError()
