"""Discovery of input files in paths and directories, their selection by patterns, and what reading them depended on."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import orjson

from policyeng.errors import InputError, UsageError
from policyeng.later import lazy_pattern
from policyeng.models import LedgerEntry
from policyeng.parsing.json_text import build_refusal, refuse_size, shortened

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


class FileDependency(NamedTuple):
    """A query and its result.

    Attributes:
        question: a name in `_QUESTIONS`.
        path: as it was queried.
        answer: the digest of a content or of names; empty if there is none.
    """

    question: str
    path: Path
    answer: str


_recorder: ContextVar[list[FileDependency] | None] = ContextVar("policyeng_witness", default=None)


@contextmanager
def record_queries() -> Iterator[list[FileDependency]]:
    """Record the queries that are made inside the block."""
    recorded: list[FileDependency] = []
    token = _recorder.set(recorded)
    try:
        yield recorded
    finally:
        _recorder.reset(token)


def note_content(path: Path, content: bytes | None) -> None:
    """Record the content of a file as far as it was read; None if it could not be read."""
    _record("content", path, lambda: digest_of(content))


def note_names(path: Path, names: list[str]) -> None:
    """Record the names in a directory."""
    _record("names", path, lambda: _digest_of_names(names))


def note_file(path: Path, *, is_file: bool) -> None:
    """Record whether a file exists."""
    _record("file", path, lambda: _yes_or_no(is_file=is_file))


def answer(question: str, path: Path) -> str:
    """Return the current result of a recorded query."""
    return _QUESTIONS[question](path)


def digest_of(content: bytes | None) -> str:
    """Return the recorded form of a file's content."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _record(question: str, path: Path, make_result: Callable[[], str]) -> None:
    recorded = _recorder.get()
    if recorded is not None:
        recorded.append(FileDependency(question, path, make_result()))


def _content(path: Path) -> str:
    try:
        return digest_of(path.read_bytes())
    except (OSError, ValueError):
        return ""


def _names(path: Path) -> str:
    try:
        return _digest_of_names(sorted(inner.name for inner in path.iterdir()))
    except OSError:
        return _digest_of_names([])


def _file(path: Path) -> str:
    return _yes_or_no(is_file=path.is_file())


def _digest_of_names(names: list[str]) -> str:
    return digest_of(json.dumps(names).encode())


def _yes_or_no(*, is_file: bool) -> str:
    return "yes" if is_file else "no"


_QUESTIONS: Mapping[str, Callable[[Path], str]] = {"content": _content, "names": _names, "file": _file}


EXCLUDED = "excluded by `exclude`"
IGNORED = "ignored by a `.gitignore` (`--no-gitignore` reads it)"
NAMED_ELSEWHERE = "another option names it"

_SPECIAL = lazy_pattern(r"([*?\[\]\\ !#])")


class FileWalk(NamedTuple):
    """What is excluded from directories.

    Attributes:
        exclude: patterns as `excluded` returns them.
        gitignore: exclude what `.gitignore` files list.
        others: absolute paths of files that other options name.
        config: the configuration file with the patterns of `exclude`, if it was found and not named. In the directory
            that is read, it counts like a `.gitignore`, because who writes the inputs writes it, too.
        all_files: also read hidden directories, directories that tools create, what `.gitignore` files and a found
            configuration exclude, and files with any suffix.
    """

    exclude: tuple[str, ...] = ()
    gitignore: bool = True
    others: frozenset[Path] = frozenset()
    config: Path | None = None
    all_files: bool = False

    def excludes_for_operator(self, directory: Path) -> bool:
        """Check whether `exclude` is a decision of who runs the command, not of who writes an absolute directory."""
        config = self.config and _resolve(self.config)
        return config is None or not config.is_relative_to(directory)


#: Everything but what `.gitignore` files list.
EVERYTHING = FileWalk()


def excluded(patterns: Iterable[str], folder: Path) -> tuple[str, ...]:
    """Return patterns that are relative to a directory in the form for `FileWalk.exclude`.

    Raises:
        UsageError: one of them is not a pattern.
    """
    found = []
    for pattern in patterns:
        whole = _anchor(pattern, folder.resolve())
        if not whole or not _is_pattern(whole):
            remedy = "use the syntax of `.gitignore`, such as `tests/fixtures/`"
            raise UsageError(f"`{pattern}` is not a file pattern", remedy=remedy)
        found.append(whole)
    return tuple(found)


def resolve_paths(paths: Iterable[str | Path | None]) -> frozenset[Path]:
    """Return absolute paths for `FileWalk.others`; None is ignored."""
    return frozenset(whole for path in paths if path is not None and (whole := _resolve(Path(path))))


def _anchor(pattern: str, folder: Path) -> str:
    """Convert a pattern of a directory's `.gitignore` to one relative to the root; empty for a comment."""
    sign, text = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    text = text.removeprefix("\\") if text.startswith(("\\!", "\\#")) else text
    if not text.strip() or pattern.startswith("#"):
        return ""
    anywhere = "" if "/" in text.rstrip().removesuffix("/") else "**/"
    return f"{sign}{_SPECIAL.sub(_escape, folder.as_posix()).rstrip('/')}/{anywhere}{text.removeprefix('/')}"


def _escape(letter: re.Match[str]) -> str:
    return f"\\{letter[1]}"


class Rules:
    """The rules that exclude files below one directory."""

    def __init__(self, directory: Path, walk: FileWalk) -> None:
        """Read the `.gitignore` files above an absolute directory, up to the top of its repository.

        A rule that excludes the directory itself is ignored, because the user named the directory.
        """
        self._root = directory
        self._walk = walk
        self._is_operators = walk.excludes_for_operator(directory)
        self._reads_gitignore = walk.gitignore and not walk.all_files
        patterns = () if walk.all_files and not self._is_operators else walk.exclude
        self._exclude = _make_spec(self._without_root(patterns))
        above: list[str] = []
        folders = [self._root, *self._root.parents]
        top = next((at for at, folder in enumerate(folders) if (folder / ".git").exists()), 0)
        for folder in reversed(folders[1 : top + 1]) if self._reads_gitignore else ():
            above += _read_gitignore(folder)
        self._lines = {self._root.parent: self._without_root(above)}
        self._specs: dict[Path, GitIgnoreSpec | None] = {}

    def why_left_out(self, path: Path, end: str = "") -> str:
        """Return why an absolute path is excluded, or an empty string; `end` is a slash for a directory.

        Call it for the entries of a directory before those of its subdirectories.
        """
        name = path.as_posix().lstrip("/") + end
        if path in self._walk.others:
            return NAMED_ELSEWHERE
        if self._exclude is not None and self._exclude.match_file(name):
            return EXCLUDED
        spec = self._ignored_in(path.parent) if self._reads_gitignore else None
        return IGNORED if spec is not None and spec.match_file(name) else ""

    def is_decided(self, why: str) -> bool:
        """Check whether a result of `why_left_out` is a decision of who runs the command."""
        return why == NAMED_ELSEWHERE or (why == EXCLUDED and self._is_operators)

    def _ignored_in(self, folder: Path) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            above = self._lines.get(folder.parent, self._lines[self._root.parent])
            own = _read_gitignore(folder)
            self._lines[folder] = [*above, *own]
            known = self._specs.get(folder.parent)
            self._specs[folder] = known if known is not None and not own else _make_spec(self._lines[folder])
        return self._specs[folder]

    def _without_root(self, patterns: Sequence[str]) -> list[str]:
        name = f"{self._root.as_posix().lstrip('/')}/"
        return [one for one in patterns if (spec := _make_spec([one])) is not None and not spec.match_file(name)]


def _make_spec(patterns: Sequence[str]) -> GitIgnoreSpec | None:
    if not patterns:
        return None
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns)


def _read_gitignore(folder: Path) -> list[str]:
    """Return the patterns of a directory's `.gitignore`."""
    path = folder / ".gitignore"
    try:
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    except OSError:
        content = b""
    note_content(path, content or None)
    lines = content.decode("utf-8", "replace").removeprefix("\ufeff").splitlines()
    return [one for line in lines if (one := _anchor(line, folder)) and _is_pattern(one)]


def _is_pattern(pattern: str) -> bool:
    """Check whether a pattern can be matched; Git also ignores lines that cannot."""
    if "[" not in pattern and "\\" not in pattern:  # all others can, and most runs need not load `pathspec`
        return True
    try:
        return _make_spec([pattern]) is not None
    except (ValueError, re.error):
        return False


def _resolve(path: Path) -> Path | None:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return None


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
#: A text in place of a path can be of any length; paths of Linux have at most 4096 bytes.
_LONGEST_NAME = 512
_REMEDY_UNREADABLE = "give a file that exists and that you can read"
#: The directory of git, or the file that names it. It is never read, because nothing is deployed from it.
GIT = ".git"
#: Directories that tools create. Hidden directories are not searched either, except the one of the Azure ML SDK.
_TOOLS = frozenset({"__pycache__", "node_modules"})
_SDK = ".azureml"
_OF_GIT = "a directory or a file of git"
_ALL = "`--all-files` reads it"
_NAME_IT = "give its path to read it"
_OTHER_SUFFIX = "the suffix is not one of JSON or YAML (`--all-files` reads documents with any suffix)"


class Named(NamedTuple):
    """One document to read.

    Attributes:
        file: how messages and origins name it.
        path: None for standard input and documents in memory.
        found: it was found in a directory, not named by the user.
        content: the bytes of a document in memory; None for other documents.
        any_suffix: it was found without a suffix of documents, and is read only if its content is one.
    """

    file: str
    path: Path | None
    found: bool = False
    content: bytes | None = None
    any_suffix: bool = False


class LeftOut(NamedTuple):
    """What is not read of a directory, before anyone looks at it.

    Attributes:
        file: how messages name it; a directory ends with a slash.
        path: a file, or a directory with everything below it.
        names: only these files of the directory.
        read: resolved paths of files that are read under another name, as in a volume of Kubernetes.
        is_expected: there is no entry for it unless it is relevant.
    """

    file: str
    path: Path
    reason: str
    names: tuple[str, ...] = ()
    read: frozenset[Path] = frozenset()
    is_expected: bool = False


Found = Named | LeftOut | LedgerEntry | InputError


def name_document(document: object, name: str) -> Named:
    """Return a parsed document as an input.

    Args:
        document: a JSON value, as `json.loads` returns it.
        name: how messages and origins name it.

    Raises:
        InputError: it is not a JSON value.
    """
    try:
        content = orjson.dumps(document, default=_as_dict)
    except TypeError as error:
        message = f"not JSON: {shortened(str(error).lower())}"
        raise InputError(message, place=(name,), remedy="give what `json.loads` returns") from None
    if b"null" in content:  # orjson writes NaN and Infinity as null
        try:
            json.dumps(document, allow_nan=False, default=_as_plain)
        except ValueError:
            raise build_refusal(name, "nan") from None
    return Named(name, None, content=content)


def _as_dict(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a type of JSON")


def _as_plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


def refuse_text(source: str | Path, remedy: str) -> None:
    """Refuse a text in place of a path: one that is blank, or that names nothing and looks like a document.

    Raises:
        InputError: it is one, with the remedy.
    """
    if isinstance(source, Path):
        return
    text = source.strip()
    if not text:
        raise InputError("an empty text is not a path", remedy=remedy)
    if text.startswith(("{", "[", '"', "\ufeff")) or not text.isprintable():
        try:
            is_path = Path(source).exists()
        except (OSError, ValueError):
            is_path = False
        if not is_path:
            raise InputError(f"a text is read as a path, and there is no file `{shortened(source)}`", remedy=remedy)


def find_inputs(
    paths: Iterable[str | Path | Found],
    suffixes: tuple[str, ...] = (".json",),
    walk: FileWalk = EVERYTHING,
    *,
    deep: bool = True,
) -> Iterator[Found]:
    """Yield the files of the inputs in order; a directory yields every file below it that has one of the suffixes.

    Without `deep`, a directory yields only the files directly in it.
    """
    for entry in paths:
        if isinstance(entry, Named | LeftOut | LedgerEntry | InputError):
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
    left_out: dict[str, LeftOut | LedgerEntry] = {}
    top = directory.resolve()
    rules = Rules(top, walk)

    def leave_out(path: Path, why: str, end: str = "") -> None:
        file = f"{display(path)}{end}"
        is_decided = rules.is_decided(why)
        left_out[file] = LedgerEntry(place=file, reason=why, relevant=False) if is_decided else LeftOut(file, path, why)

    for folder, inner, names in os.walk(directory, onerror=faults.append):
        note_names(Path(folder), sorted([*inner, *names]))
        here, whole = Path(folder), top / Path(folder).relative_to(directory)
        everything, candidates = list(inner), [name for name in inner if deep and name != GIT]
        why_not = {name: _why_directory_left_out(here / name, whole / name, rules, walk) for name in candidates}
        inner[:] = [name for name in candidates if not why_not[name]]
        for name, why in why_not.items():
            if why:
                leave_out(here / name, why, "/")
        if deep and GIT in {*everything, *names}:
            left_out[f"{display(here / GIT)}"] = LeftOut(display(here / GIT), here / GIT, _OF_GIT, is_expected=True)
        others = []
        for name in names:
            path = here / name
            if name.lower().endswith(suffixes) or (walk.all_files and name != GIT):
                files.append(path)
                if why := _why_file_left_out(path, top) or rules.why_left_out(whole / name):
                    leave_out(path, why)
            elif name != GIT and whole / name not in walk.others:
                others.append(name)
        if others:
            file = f"{display(here)}/"
            left_out[f"{file}*"] = LeftOut(file, here, _OTHER_SUFFIX, tuple(sorted(others)))
    yield from (_read_error(Path(fault.filename), fault) for fault in faults)
    if not files and not faults:
        sought = " or ".join(f"`*{suffix}`" for suffix in suffixes)
        remedy = "give a directory with JSON or YAML documents, or a file"
        yield InputError(f"the directory contains no {sought} file", place=(display(directory),), remedy=remedy)
    included = [path for path in sorted(files) if display(path) not in left_out]
    real = {path.resolve() for path in included if not path.is_symlink()}
    linked = {path.resolve() for path in included if path.is_symlink()} if left_out else set()
    for _, entry in sorted(left_out.items()):
        yield entry._replace(read=frozenset(real | linked)) if isinstance(entry, LeftOut) else entry
    for path in included:
        if not path.is_symlink() or path.resolve() not in real:  # findings name the file, not a link to it
            yield Named(display(path), path, found=True, any_suffix=not path.name.lower().endswith(suffixes))


def _why_directory_left_out(folder: Path, absolute: Path, rules: Rules, walk: FileWalk) -> str:
    """Return why a directory is not searched, or an empty string."""
    why = rules.why_left_out(absolute, "/")
    if rules.is_decided(why):
        return why
    if folder.is_symlink():
        return f"a link to a directory, which is not followed; {_NAME_IT}"
    if folder.name in _TOOLS and not walk.all_files:
        return f"a directory that tools create; {_ALL}"
    is_hidden = folder.name.startswith(".") and folder.name != _SDK and not walk.all_files
    return f"a hidden directory; {_ALL}" if is_hidden else why


def _why_file_left_out(path: Path, top: Path) -> str:
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
    return InputError(message, place=(shortened(display(path), _LONGEST_NAME),), remedy=_REMEDY_UNREADABLE)
