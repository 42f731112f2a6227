"""Writing of output files."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from policyeng.cli.context import find_known
from policyeng.errors import UsageError

if TYPE_CHECKING:
    from mmap import mmap

#: Errors for a writable file whose directory cannot be written or that cannot be replaced, such as a mounted file.
_IN_PLACE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY}


def require_directory(path: Path | None, what: str) -> None:
    """Refuse an output path whose directory does not exist, before a long run.

    Raises:
        UsageError: the directory does not exist.
    """
    if path is not None and not path.absolute().parent.is_dir():
        raise UsageError(f"cannot write the {what}: no such directory", place=(str(path),), remedy="create it first")


class FileWriter:
    """A writer that defers errors, so that a report is printed even if a file cannot be written."""

    def __init__(self) -> None:
        self._faults: list[UsageError] = []

    def write(self, path: Path, content: str | bytes, what: str) -> bool:
        """Write a file as `write` does and return whether it was written."""
        try:
            write(path, content, what)
        except UsageError as error:
            self._faults.append(error)
            return False
        return True

    def require_all(self) -> None:
        """Raise the first deferred error.

        Raises:
            UsageError: a file could not be written.
        """
        if self._faults:
            raise self._faults[0]


def output_of(entry: str, formats: Iterable[str]) -> tuple[str, Path]:
    """Parse the `FORMAT=PATH` of `--output`.

    Raises:
        UsageError: the text is malformed, or the format is unknown.
    """
    name, equals, path = entry.partition("=")
    known = list(formats)
    if not equals or path.strip() in ("", "-"):
        remedy = "use, for example, `--output json=report.json`, or `--format` to print"
        raise UsageError(f"`{entry}` is not FORMAT=PATH", remedy=remedy)
    return find_known(name, known, "report format"), Path(path)


def write(path: Path, content: str | bytes | mmap | Iterator[str], what: str, *, private: bool = True) -> None:
    """Write a file atomically; text as UTF-8. An existing file keeps its mode.

    Args:
        path: a link is followed, and a device or a pipe is written to.
        content: the complete content; an iterator yields it in parts, and it may be larger than memory.
        what: for error messages, such as `report`.
        private: make a new file readable only by the user, whatever the umask, because it contains names and values
            of resources.

    Raises:
        UsageError: the file cannot be written.
    """
    if isinstance(content, Iterator):
        from mmap import ACCESS_READ, mmap  # few runs write a file
        from tempfile import TemporaryFile

        with TemporaryFile() as spooled:
            spooled.writelines(part.encode() for part in content)
            spooled.flush()
            if spooled.tell():
                write(path, mmap(spooled.fileno(), 0, access=ACCESS_READ), what, private=private)
                return
        content = b""
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
    temporary = path.with_name(f".policyeng-{os.getpid()}")
    try:
        try:
            temporary.unlink(missing_ok=True)  # left by a process that was killed
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
            temporary.write_bytes(octets)
            if path.exists():
                temporary.chmod(path.stat().st_mode)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        if error.errno not in _IN_PLACE or not path.exists():
            raise
        path.write_bytes(octets)
