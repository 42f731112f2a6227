"""Write the files that a command line names."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from policyeng.cli.context import chosen
from policyeng.errors import UsageError

if TYPE_CHECKING:
    from mmap import mmap

#: What a file that may be written says where nothing may be put beside it or in its place, such as one mounted alone.
_IN_PLACE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY}


def require_directory(path: Path | None, what: str) -> None:
    """Refuse a place for a file, if one is named, before a long run would find out.

    Raises:
        UsageError: its directory does not exist.
    """
    if path is not None and not path.absolute().parent.is_dir():
        raise UsageError(f"cannot write the {what}: no such directory", place=(str(path),), remedy="make it first")


class FileWriter:
    """Writes files beside a report that is printed after them; what cannot be written must not cost the report."""

    def __init__(self) -> None:
        self._faults: list[UsageError] = []

    def write(self, path: Path, content: str | bytes, what: str) -> bool:
        """Write a file as `write` does; whether it was written."""
        try:
            write(path, content, what)
        except UsageError as error:
            self._faults.append(error)
            return False
        return True

    def require_all(self) -> None:
        """Say what was not written, once the report is printed.

        Raises:
            UsageError: the first file could not be written.
        """
        if self._faults:
            raise self._faults[0]


def output_of(entry: str, formats: Iterable[str]) -> tuple[str, Path]:
    """The format and the file of an `--output FORMAT=PATH`.

    Raises:
        UsageError: it is none, or there is no such format.
    """
    name, equals, path = entry.partition("=")
    known = list(formats)
    if not equals or path.strip() in ("", "-"):
        remedy = "write, for example, --output json=report.json; --format prints"
        raise UsageError(f"`{entry}` is not FORMAT=PATH", remedy=remedy)
    return chosen(name, known, "report format"), Path(path)


def write(path: Path, content: str | bytes | mmap, what: str, *, private: bool = True) -> None:
    """Write the whole file or leave what was there, which others may be reading; text as UTF-8.

    A file that is there keeps its mode.

    Args:
        path: where the user wants it; a link is followed, and a device or a pipe is written to.
        content: all of it.
        what: what it is to the user, such as `report`.
        private: a new file is only for the user whatever the umask, because it has the names and values of an estate.

    Raises:
        UsageError: it cannot be written there.
    """
    octets = content.encode() if isinstance(content, str) else content
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(octets)
        else:
            _replace(Path(os.path.realpath(path)), octets, 0o600 if private else 0o666)
    except (OSError, ValueError) as error:  # the latter for a NUL in the name
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise UsageError(f"cannot write the {what}: {reason}", place=(str(path),)) from error


def _replace(path: Path, octets: bytes | mmap, mode: int) -> None:
    beside = path.with_name(f".policyeng-{os.getpid()}")
    try:
        try:
            beside.unlink(missing_ok=True)  # of a process that was killed
            os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
            beside.write_bytes(octets)
            if path.exists():
                beside.chmod(path.stat().st_mode)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        if error.errno not in _IN_PLACE or not path.exists():
            raise
        path.write_bytes(octets)
