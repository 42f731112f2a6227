"""Lines that go to a file which is rotated by size, so that a crash at any moment leaves whole lines.

The workers of a server write the same file, one at a time.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from policyeng.errors import UsageError
from policyeng.server.shared_memory import SharedLock

#: The file that is written; those that were stand beside it as `decisions-TIME.jsonl`.
NAME = "decisions.jsonl"
_CLOSED = -1


class Segments:
    """A folder of such files, which one server at a time writes.

    Args:
        folder: made when it is not there.
        longest: bytes from which on a file is full.
        keep: how many files there may be, the one that is written among them.

    Attributes:
        torn: bytes of a last line that another process began and did not end, which were taken away; reset by who
            says so.

    Raises:
        UsageError: the folder cannot be written, or another process writes it.
    """

    def __init__(self, folder: Path, *, longest: int = 64 << 20, keep: int = 10) -> None:
        self._folder, self._longest, self._keep = folder, longest, keep
        self.torn = 0
        self._file = _CLOSED
        self._size = 0
        self._writing = SharedLock()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._open()
        except BlockingIOError:
            remedy = "give each server a folder of its own"
            raise UsageError(
                "another process writes its decision log to this folder", place=(str(folder),), remedy=remedy
            ) from None
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            message = f"cannot write the decision log ({reason})"
            raise UsageError(message, place=(str(folder),), remedy="use a writable folder") from None

    def write(self, lines: bytes) -> None:
        """Append whole lines, all of them or none.

        Raises:
            OSError: they could not be written; nothing of them is there, and the next ones are tried anew.
        """
        with self._writing as was_killed:
            if self._file == _CLOSED or was_killed or not self._is_there():
                self._open()
            else:
                self._size = os.fstat(self._file).st_size
            self._append(lines)

    def _append(self, lines: bytes) -> None:
        if self._size and self._size + len(lines) > self._longest:
            self._rotate()
        try:
            written = os.write(self._file, lines)
            while written < len(lines):
                written += os.write(self._file, lines[written:])
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
            self._close()
            raise
        self._size += len(lines)

    def close(self) -> None:
        """Have all of it on the disk, and let others write."""
        if self._file != _CLOSED:
            with suppress(OSError):
                os.fsync(self._file)
        self._close()
        os.close(self._lock)

    def _open(self) -> None:
        self._close()
        path = self._folder / NAME
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._file).st_size
        whole = _count_whole_lines(self._file, self._size)
        if whole < self._size:
            self.torn += self._size - whole
            os.ftruncate(self._file, whole)
            self._size = whole

    def _close(self) -> None:
        if self._file != _CLOSED:
            os.close(self._file)
            self._file = _CLOSED

    def _is_there(self) -> bool:
        """Whether the file is still the one of that name; others may rotate it, too."""
        try:
            return os.path.samestat((self._folder / NAME).stat(), os.fstat(self._file))
        except OSError:
            return False

    def _rotate(self) -> None:
        """Give the file its last name, which is one step, and begin another; too many of them go, the oldest first."""
        os.fsync(self._file)
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        (self._folder / NAME).rename(self._folder / f"decisions-{moment}.jsonl")
        self._open()
        ended = sorted(self._folder.glob("decisions-*.jsonl"))
        for path in ended[: max(0, len(ended) - self._keep + 1)]:
            path.unlink(missing_ok=True)


def _count_whole_lines(file: int, size: int) -> int:
    """How many bytes of a file are whole lines."""
    end = size
    while end > 0:
        begin = max(0, end - 65536)
        found = os.pread(file, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0
