"""What is read from files and read again when they change: a bad reading keeps the last good one and says why."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, TypeVar

from policyeng.errors import InputError, PolicyengError

_T = TypeVar("_T", covariant=True)
#: What is another one after files changed.
Fingerprint = tuple[object, ...]
_log = logging.getLogger("policyeng.server")


@dataclass(frozen=True, slots=True)
class ReloadFault:
    """Why the last reading is not in force, and since when."""

    message: str
    since: datetime


class Watched(Generic[_T]):
    """The last good reading of files.

    Args:
        what: how messages name it.
        load: reads it; raises what `PolicyengError` is when that cannot be.
        paths: files and directories that it is read from.
        seconds: how often they are looked at.

    Attributes:
        what: how messages name it.
        failures: how many readings were bad.
        then: called after each good reading but the first, by who has it read.

    Raises:
        PolicyengError: as `load`, of the first reading.
    """

    def __init__(self, what: str, load: Callable[[], _T], paths: Sequence[Path], *, seconds: float = 2.0) -> None:
        self.what = what
        self.failures = 0
        self.then: Callable[[], None] | None = None
        self._load = load
        self._paths = paths
        self._seconds = seconds
        self._seen = self._pending = fingerprint(self._files())
        self._current = load()
        self._loaded = datetime.now(UTC)
        self._fault: ReloadFault | None = None
        self._reading = threading.Lock()
        self._woken = threading.Event()
        self._asked = False
        self._ended = False
        self._thread: threading.Thread | None = None

    @property
    def current(self) -> _T:
        """The last good reading."""
        return self._current

    @property
    def fault(self) -> ReloadFault | None:
        """Why a later reading is not in force; None when the last one is."""
        return self._fault

    @property
    def loaded(self) -> datetime:
        """When the last good reading was made."""
        return self._loaded

    @property
    def seen(self) -> Fingerprint:
        """The fingerprint of the files when they were last read."""
        return self._seen

    def reload(self) -> None:
        """Read again; what cannot be read leaves what was read before, and a fault."""
        with self._reading:
            try:
                current = self.read()
            except PolicyengError as error:
                self.keep(error)
                return
            self.take(current)
        if self.then is not None:
            self.then()

    def read(self, seen: Fingerprint | None = None) -> _T:
        """Read again, and change nothing of what is in force.

        Args:
            seen: the fingerprint of the files that another process has read.

        Raises:
            PolicyengError: they cannot be read, or change meanwhile: it may be half of the one and half of the other.
        """
        self._seen = fingerprint(self._files()) if seen is None else seen  # a change while they are read is seen
        current = self._load()
        if fingerprint(self._files()) != self._seen:
            raise InputError("the files changed while they were read", remedy="they are read again soon")
        return current

    def take(self, current: _T) -> None:  # type: ignore[misc]  # the only use of what is otherwise given
        """Put a good reading in force."""
        self._current = current
        self._loaded = datetime.now(UTC)
        if self._fault is not None:
            _log.warning("%s: what is there now is in force", self.what)
        self._fault = None

    def keep(self, error: PolicyengError) -> None:
        """Leave in force what was read before, and say why."""
        self.failures += 1
        since = self._fault.since if self._fault is not None else datetime.now(UTC)
        self._fault = ReloadFault(str(error), since)
        # An excerpt of the file follows the first line; an entry of a log has one.
        _log.warning("%s: what was read before stays in force: %s", self.what, str(error).partition("\n")[0])

    def keep_as(self, fault: ReloadFault, failures: int) -> None:
        """Leave in force what was read before, for the reason that another process has said."""
        self._fault, self.failures = fault, failures

    def look(self) -> None:
        """Read again if the files are others than those of the last reading."""
        if fingerprint(self._files()) != self._seen:
            self.reload()

    def ask(self) -> None:
        """Have it read again soon, by the thread that watches; it takes no time."""
        self._asked = True
        self._woken.set()

    def start(self) -> None:
        """Look at the files again and again, from now on."""
        self._ended = False
        self._thread = threading.Thread(target=self._watch, name=f"policyeng-watch-{self.what}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look at them no more."""
        self._ended = True
        self._woken.set()
        if self._thread is not None:
            self._thread.join()

    def _files(self) -> Sequence[Path]:
        """What it is read from."""
        return self._paths

    def _watch(self) -> None:
        while True:
            self._woken.wait(self._seconds)
            self._woken.clear()
            if self._ended:
                return
            try:
                if self.is_due():
                    self.reload()
            except Exception:  # nothing ends the watch, or what is in force would grow old without a word
                _log.exception("%s: cannot be watched", self.what)

    def is_due(self) -> bool:
        """Look at the files, and say whether to read them again: when asked to, or when they changed and stand still.

        Who writes several files is given the time to end: those that changed have to be as they were at the look
        before. What is read half-written all the same is most often bad, and read again when the rest is there.
        """
        there = fingerprint(self._files())
        is_due = self._asked or (there != self._seen and there == self._pending)
        if is_due:
            self._asked = False
        self._pending = there
        return is_due


def fingerprint(paths: Sequence[Path]) -> Fingerprint:
    """What is another one after the files at and below these paths changed: inodes, sizes and times of change.

    Links are followed, so that the links which Kubernetes turns to a new version count as a change.
    """
    return tuple(entry for path in paths for entry in _below(path))


def _below(path: Path) -> Iterator[tuple[object, ...]]:
    if not path.is_dir():
        yield _stated(str(path))
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        linked = (name for name in folders if (Path(folder) / name).is_symlink())
        yield from (_stated(str(Path(folder) / name)) for name in sorted((*names, *linked)))


def _stated(path: str) -> tuple[object, ...]:
    try:
        status = os.stat(path)  # noqa: PTH116  # the tree is walked every second, and paths cost more than what they say
    except OSError as error:
        return path, error.errno
    return path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
