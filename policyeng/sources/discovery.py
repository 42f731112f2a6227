"""Discovery of input files in paths and directories, and reading of their bytes."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from policyeng.errors import InputError
from policyeng.named import NamedTuple
from policyeng.parsing.json_text import refuse_size
from policyeng.sources.file_dependencies import note_content, note_names
from policyeng.sources.file_patterns import EVERYTHING, FileWalk, Rules

_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
#: The positions of zeros in the first bytes of UTF-16 without a byte order mark that begins with two ASCII characters,
#: or consists of one. Source: RFC 4627, section 3.
_ZEROS = {(0, 1, 0, 1): "utf-16-le", (1, 0, 1, 0): "utf-16-be", (0, 1): "utf-16-le", (1, 0): "utf-16-be"}


def as_utf8(content: bytes) -> bytes:
    """Convert text to UTF-8 without a byte order mark; return what is neither UTF-8 nor UTF-16 unchanged."""
    if content.startswith(codecs.BOM_UTF8):
        return content[len(codecs.BOM_UTF8) :]
    if content.startswith(_UTF_32):
        return content
    encoding = _UTF_16.get(content[:2]) or _ZEROS.get(tuple(int(not byte) for byte in content[:4]))
    if encoding is None:
        return content
    try:
        return content.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeError:
        return content


STDIN = "<stdin>"
#: Directories that tools create. Hidden directories are not searched either, except the one of the Azure ML SDK.
_TOOLS = frozenset({"__pycache__", "node_modules"})
_SDK = ".azureml"
_NAME_IT = "give its path to read it"


class Named(NamedTuple):
    """One document to read.

    Attributes:
        file: how messages and origins name it.
        path: None for standard input and documents in memory.
        found: it was found in a directory, not named by the user.
        content: the bytes of a document in memory; None for other documents.
    """

    file: str
    path: Path | None
    found: bool = False
    content: bytes | None = None


class Skipped(NamedTuple):
    """A file, a directory or one document of a file that is not evaluated, and the reason."""

    file: str
    reason: str


Found = Named | Skipped | InputError


def find_inputs(
    paths: Iterable[str | Path | Named],
    suffixes: tuple[str, ...] = (".json",),
    walk: FileWalk = EVERYTHING,
    *,
    deep: bool = True,
) -> Iterator[Found]:
    """Yield the files of the inputs in order; a directory yields every file below it that has one of the suffixes.

    Without `deep`, a directory yields only the files directly in it.
    """
    for entry in paths:
        if isinstance(entry, Named):
            yield entry
            continue
        if str(entry) == "-":
            yield Named(STDIN, None)
            continue
        path = Path(entry)
        try:
            is_directory = path.is_dir()
        except (OSError, ValueError) as error:
            yield _read_error(path, error)
            continue
        yield from _walk_directory(path, suffixes, walk, deep=deep) if is_directory else (Named(display(path), path),)


def content_of(named: Named, stdin: bytes | None, max_bytes: int) -> bytes:
    """Return the bytes of one file, converted to UTF-8 without a byte order mark if it is UTF-8 or UTF-16.

    Raises:
        InputError: it does not exist, cannot be read, or is larger than the limit.
    """
    if named.content is not None:
        refuse_size(len(named.content), named.file, max_bytes)
        return as_utf8(named.content)
    if named.path is None:
        if stdin is None:
            raise InputError(
                "there is no standard input", place=(STDIN,), remedy="pipe a document to it, or give a file"
            )
        return as_utf8(stdin)
    try:
        with named.path.open("rb") as stream:
            content = _read_at_most(stream, max_bytes + 1)
    except (OSError, ValueError) as error:
        note_content(named.path, None)
        raise _read_error(named.path, error) from None
    note_content(named.path, content)
    refuse_size(len(content), named.file, max_bytes)
    return as_utf8(content)


def display(path: Path) -> str:
    """Return a path as text; bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _walk_directory(directory: Path, suffixes: tuple[str, ...], walk: FileWalk, *, deep: bool) -> Iterator[Found]:
    faults: list[OSError] = []
    files: list[Path] = []
    skipped: list[Skipped] = []
    top = directory.resolve()
    rules = Rules(top, walk)
    for folder, inner, names in os.walk(directory, onerror=faults.append):
        note_names(Path(folder), sorted([*inner, *names]))
        here, whole = Path(folder), top / Path(folder).relative_to(directory)
        visible = [name for name in inner if deep and (name == _SDK or not name.startswith("."))]
        why_not = {name: _why_directory_skipped(here / name, rules.why_left_out(whole / name, "/")) for name in visible}
        inner[:] = [name for name in visible if not why_not[name]]
        skipped += (Skipped(f"{display(here / name)}/", why) for name, why in why_not.items() if why)
        for path in (here / name for name in names if name.lower().endswith(suffixes)):
            files.append(path)
            if why := _why_file_skipped(path, top) or rules.why_left_out(whole / path.name):
                skipped.append(Skipped(display(path), why))
    yield from (_read_error(Path(fault.filename), fault) for fault in faults)
    if not files and not faults:
        sought = " or ".join(f"`*{suffix}`" for suffix in suffixes)
        remedy = "give a directory with JSON or YAML documents, or a file"
        yield InputError(f"the directory contains no {sought} file", place=(display(directory),), remedy=remedy)
    yield from sorted(skipped)
    left = {entry.file for entry in skipped}
    included = [path for path in sorted(files) if display(path) not in left]
    real = {path.resolve() for path in included if not path.is_symlink()}
    for path in included:
        if not path.is_symlink() or path.resolve() not in real:  # findings name the file, not a link to it
            yield Named(display(path), path, found=True)


def _why_directory_skipped(folder: Path, why: str) -> str:
    """Return why a directory is not searched, or an empty string; `why` is the reason that the rules give."""
    if folder.is_symlink():
        return f"a link to a directory, which is not followed; {_NAME_IT}"
    return f"a directory that tools create; {_NAME_IT}" if folder.name in _TOOLS else why


def _why_file_skipped(path: Path, top: Path) -> str:
    """Return why a file is not opened, or an empty string; exclusion rules are checked separately."""
    if path.is_fifo():
        return "not a regular file"
    if not path.is_symlink():
        return ""
    try:
        return "" if path.resolve().is_relative_to(top) else f"a link to outside of the directory; {_NAME_IT}"
    except (OSError, RuntimeError):
        return "a link to itself"


def _read_at_most(stream: BinaryIO, count: int) -> bytes:
    """Read in pieces, because `stream.read(count)` allocates memory for all of `count` first."""
    pieces = []
    while count > 0 and (piece := stream.read(min(count, 1 << 20))):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _read_error(path: Path, error: OSError | ValueError) -> InputError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    message = f"cannot be read ({(reason or type(error).__name__).lower()})"
    return InputError(message, place=(display(path),), remedy="give a file that exists and that you can read")
