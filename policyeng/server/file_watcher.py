"""Watch files, and load policies and state again when they change."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, TypeVar

from policyeng.configuration import Settings
from policyeng.context import EvaluationSetup
from policyeng.errors import InputError, PolicyengError
from policyeng.sources.parsed import raise_errors

_T = TypeVar("_T", covariant=True)
#: A value that changes with the files.
Fingerprint = tuple[object, ...]
_log = logging.getLogger("policyeng.server")


@dataclass(frozen=True, slots=True)
class ReloadFault:
    """Why the last reload failed, and since when reloads fail."""

    message: str
    since: datetime


class Watched(Generic[_T]):
    """A value read from files, reloaded when they change.

    Args:
        what: its name in messages.
        load: reads the value; raises `PolicyengError` if that fails.
        paths: the files and directories to watch.
        seconds: the polling interval.

    Attributes:
        what: its name in messages.
        loaded: the time of the last good reading.
        fault: why the last reload failed; None if it succeeded.
        failures: the number of failed reloads.
        seen: the fingerprint of the files when they were last read.
        then: called after each successful reload, by the thread that reloads.

    Raises:
        PolicyengError: the first reading failed.
    """

    def __init__(self, what: str, load: Callable[[], _T], paths: Sequence[Path], *, seconds: float = 2.0) -> None:
        self.what = what
        self.failures = 0
        self.then: Callable[[], None] | None = None
        self._load = load
        self._paths = paths
        self._seconds = seconds
        self.seen = self._pending = fingerprint(self._files())
        self._current = load()
        self.loaded = datetime.now(UTC)
        self.fault: ReloadFault | None = None
        self._reading = threading.Lock()
        self._woken = threading.Event()
        self._requested = False
        self._ended = False
        self._thread: threading.Thread | None = None

    @property
    def current(self) -> _T:
        """The last good value."""
        return self._current

    def reload(self) -> None:
        """Reload; a failure keeps the last good value and sets `fault`."""
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
        """Read the files without activating the value.

        Args:
            seen: the fingerprint of the files that another process has read.

        Raises:
            PolicyengError: reading failed, or the files changed meanwhile, so the value may mix two versions.
        """
        # Taken first, to detect changes during the read.
        self.seen = fingerprint(self._files()) if seen is None else seen
        current = self._load()
        if fingerprint(self._files()) != self.seen:
            raise InputError("the files changed while they were read", remedy="they are reloaded soon")
        return current

    def take(self, current: _T) -> None:  # type: ignore[misc]  # the only use of what is otherwise given
        """Activate a value."""
        self._current = current
        self.loaded = datetime.now(UTC)
        if self.fault is not None:
            _log.warning("%s: reloaded; the current files are active", self.what)
        self.fault = None

    def keep(self, error: PolicyengError) -> None:
        """Keep the last good value active, and record and log the error."""
        self.failures += 1
        since = self.fault.since if self.fault is not None else datetime.now(UTC)
        self.fault = ReloadFault(str(error), since)
        # Log one line only; an excerpt of the file follows.
        _log.warning(
            "%s: reload failed, the last good version stays active: %s", self.what, str(error).partition("\n")[0]
        )

    def keep_as(self, fault: ReloadFault, failures: int) -> None:
        """Keep the last good value active, with the fault that another process reported."""
        self.fault, self.failures = fault, failures

    def request_reload(self) -> None:
        """Request a reload by the watching thread, without blocking."""
        self._requested = True
        self._woken.set()

    def start(self) -> None:
        """Start to poll the files."""
        self._ended = False
        self._thread = threading.Thread(target=self._watch, name=f"policyeng-watch-{self.what}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop polling."""
        self._ended = True
        self._woken.set()
        if self._thread is not None:
            self._thread.join()

    def _files(self) -> Sequence[Path]:
        """Return the files and directories to watch."""
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
            except Exception:  # the thread must survive, or the value would become stale unnoticed
                _log.exception("%s: polling failed", self.what)

    def is_due(self) -> bool:
        """Poll the files, and return whether to reload: on request, or when they changed and are stable again.

        Stable means equal in two consecutive polls, so that a process that writes several files can finish. A
        half-written file that is read anyway most often fails to load, and is reloaded when complete.
        """
        there = fingerprint(self._files())
        is_due = self._requested or (there != self.seen and there == self._pending)
        if is_due:
            self._requested = False
        self._pending = there
        return is_due


def fingerprint(paths: Sequence[Path]) -> Fingerprint:
    """Return a value that changes with the files at and below these paths: inodes, sizes, times of change.

    Follows links: Kubernetes updates a ConfigMap by replacing a symbolic link.
    """
    return tuple(entry for path in paths for entry in _below(path))


def _below(path: Path) -> Iterator[tuple[object, ...]]:
    if not path.is_dir():
        yield _stat(str(path))
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        linked = (name for name in folders if (Path(folder) / name).is_symlink())
        yield from (_stat(str(Path(folder) / name)) for name in sorted((*names, *linked)))


def _stat(path: str) -> tuple[object, ...]:
    try:
        status = os.stat(path)  # noqa: PTH116  # runs every second over whole trees; Path is slow
    except OSError as error:
        return path, error.errno
    return path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


class PolicyReload(Watched[EvaluationSetup]):
    """The last good reading of all of it together; a request keeps what it began with.

    A configuration file that appears, or names other exemption files or another key, is a change as well.

    Args:
        settings: reads the settings; raises `UsageError` when that cannot be.
        load: reads the active value from them; a faulty exemption is a fault here, and the last good reading stays.
        paths: files and directories besides those that the settings name.
        seconds: how often they are looked at.

    Raises:
        PolicyengError: of the first reading.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        load: Callable[[Settings], EvaluationSetup],
        paths: Sequence[Path],
        *,
        seconds: float = 2.0,
    ) -> None:
        self._settings = settings
        self._named: tuple[Path, ...] = ()

        def read() -> EvaluationSetup:
            setup = load(settings())
            raise_errors(setup.problems)
            return setup

        super().__init__("policies", read, paths, seconds=seconds)

    def _files(self) -> Sequence[Path]:
        with suppress(PolicyengError):  # unreadable settings name no files; reading them reports why
            self._named = tuple(_list_named_files(self._settings()))
        return (*self._paths, *self._named)


def _list_named_files(settings: Settings) -> Iterator[Path]:
    yield from (*settings.exemptions, *settings.azure_policy)
    yield from (path for path in (settings.verification_key, settings.aliases) if path is not None)
