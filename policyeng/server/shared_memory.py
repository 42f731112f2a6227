"""What the workers of a server have together, though each is a process: values, and a lock that outlives its holder.

Everything is made before the workers are forked. It is in memory, so that a server needs no folder to write to.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import pickle
import tempfile
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class SharedLock:
    """A lock for threads of several processes; the system releases it when its holder is killed.

    `with` gives whether the last holder was killed, and may have left what it wrote unfinished.
    """

    def __init__(self) -> None:
        self.file = _file_in_memory()
        self._threads = threading.Lock()
        self._is_held = mmap.mmap(-1, 1)

    def __enter__(self) -> bool:
        """Wait for the lock."""
        self._threads.acquire()
        fcntl.lockf(self.file, fcntl.LOCK_EX)
        was_killed = self._is_held[0] != 0
        self._is_held[0] = 1
        return was_killed

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        self._is_held[0] = 0
        fcntl.lockf(self.file, fcntl.LOCK_UN)
        self._threads.release()


class Shared(Generic[_T]):
    """A value that one worker replaces and all of them read.

    A worker that is killed while it replaces the value leaves the earlier one.
    """

    #: Bytes of the header: a version, and where the pickled value begins and ends.
    _HEADER = 24

    def __init__(self, value: _T) -> None:
        self._lock = SharedLock()
        self._file = self._lock.file
        self._version, self._value = 0, value
        self._write(value)

    @property
    def value(self) -> _T:
        """The value; the same object until it is replaced."""
        if os.pread(self._file, 8, 0) != self._version.to_bytes(8, "little"):
            with self._lock:
                self._read()
        return self._value

    def replace(self, make: Callable[[_T], _T]) -> _T:
        """Replace the value by what is made of it, maybe the same object; no other worker replaces it meanwhile."""
        with self._lock:
            self._read()
            if (made := make(self._value)) is not self._value:
                self._write(made)
            return made

    def _read(self) -> None:
        version, begin, end = self._header()
        if version != self._version:
            self._value = pickle.loads(os.pread(self._file, end - begin, begin))  # noqa: S301  # a worker wrote it
            self._version = version

    def _write(self, value: _T) -> None:
        """Write the value next to the earlier one, and then, in one step, the header with its place."""
        content = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        version, begin, end = self._header()
        to = self._HEADER if begin >= self._HEADER + len(content) else max(end, self._HEADER)
        written = 0
        while written < len(content):
            written += os.pwrite(self._file, content[written:], to + written)
        header = (version + 1, to, to + len(content))
        os.pwrite(self._file, b"".join(number.to_bytes(8, "little") for number in header), 0)
        self._version, self._value = version + 1, value

    def _header(self) -> tuple[int, int, int]:
        header = os.pread(self._file, self._HEADER, 0).ljust(self._HEADER, b"\0")
        version, begin, end = (int.from_bytes(header[place : place + 8], "little") for place in (0, 8, 16))
        return version, begin, end


def _file_in_memory() -> int:
    """Create an unnamed file, which disappears with its last process."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("policyeng")
    with tempfile.TemporaryFile() as file:  # not on Linux
        return os.dup(file.fileno())
