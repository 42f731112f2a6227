"""Look at files and folders that are not read: could one of them hold or change a Machine Learning resource?

Only the structure counts: a document that a format reads and that names Azure Machine Learning. A program, a page of
documentation or a package that mentions it is not relevant. Every file is looked at, whatever its name, because the
name is chosen by the one who is checked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from policyeng.errors import InputError
from policyeng.later import lazy_pattern
from policyeng.models import LedgerEntry, relevant_entries
from policyeng.sources.discovery import LeftOut, as_utf8, display
from policyeng.sources.parsed import Format
from policyeng.sources.relevance import (
    contains_any,
    is_shaped_as_ours,
    may_be_ours,
    mentions_machine_learning,
    other_document,
)
from policyeng.sources.text import JSON_SUFFIXES, SOURCE_CODE, YAML_SUFFIXES, read_text

#: The limits of one run: names in folders, files that are opened, and bytes of files that look like documents. A large
#: virtual environment and a large `node_modules` together have half of each.
MOST_NAMES = 1_000_000
MOST_FILES = 250_000
MOST_BYTES = 256 << 20

#: How much of a file shows whether it may be a document.
HEAD = 4096
_SOURCE_CODE = tuple(SOURCE_CODE)
#: Names of documents, which are looked at first.
_DOCUMENTS = (*JSON_SUFFIXES, *YAML_SUFFIXES, *SOURCE_CODE, ".json5", ".template", ".armtemplate")
#: Where `terraform init` keeps a copy of the modules.
_TERRAFORM = ".terraform"
#: Comments longer than this hide what follows, and the file counts as a document.
_LONGEST_COMMENT = 1 << 16

#: Blank lines and comments of JSON and most programming languages. Each byte is read once.
_COMMENTS = lazy_pattern(rb"(?:\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?|#[^\n]*+|%[^\n]*+|---(?=\s))*+")
#: Those of YAML, which has more line breaks: YAML 1.1, section 4.2.
_YAML_COMMENTS = lazy_pattern(
    rb"(?:\s++|\xc2\x85|\xe2\x80[\xa8\xa9]|[#%](?:[^\r\n\xc2\xe2]++|\xc2(?!\x85)|\xe2(?!\x80[\xa8\xa9]))*+|---(?=\s))*+"
)
#: The beginnings of JSON; `{{`, `{%` and `[![` begin templates of other languages and Markdown.
_JSON = lazy_pattern(rb"\{\s*+(?:[^{%#]|\Z)|\[\s*+(?:[\[{\"'\]/&#]|!(?!\[)|\Z)")
#: The beginnings of YAML, or of another list or mapping; the first document of a stream can be any text.
#: Without `\A`, a search would look at the rest of a line from each of its bytes.
_YAML = lazy_pattern(rb"\A(?:[&!?\[{]|-[ \t\r\n]|[^\n]*?:(?:\s|\Z))")
_NEXT_DOCUMENT = lazy_pattern(rb"^(?:---|\.\.\.)(?:\s|\Z)|[\r\x85\xa8\xa9]---(?:\s|\Z)", re.MULTILINE)

#: Words of Azure CLI files without a `$schema`: each kind has one of them. The structure decides.
_CLI_WORDS = (
    *(b"account_name", b"auth_mode", b"azureml:", b"command", b"component", b"compute", b"create_", b"credentials"),
    *(b"discovery_url", b"enable_data_isolation", b"endpoint", b"environment", b"feature_store"),
    *(b"hbi_workspace", b"import_data", b"jobs", b"managed_network", b"mlflow_tracking_uri", b"name_node_address"),
    *(b"one_lake", b"provision_network_now", b"public_network_access", b"replication_locations", b"resource_id"),
    *(b"search_space", b"spark", b"store_name", b"student_model", b"synapse", b"target", b"task", b"training_data"),
    *(b"virtualmachine", b"api_key", b"api_base"),
)
#: Templates can compute the types of their resources.
_TEMPLATE = b"deploymenttemplate.json"


class _LimitError(Exception):
    """A limit of the run is reached."""


class Inspection:
    """Look at what one run leaves out, within the limits of the run."""

    def __init__(self, formats: Mapping[str, Format]) -> None:
        self._formats = formats
        self._names, self._files, self._bytes = MOST_NAMES, MOST_FILES, MOST_BYTES

    def entries(self, left_out: LeftOut) -> Iterator[LedgerEntry]:
        """Yield one entry for a folder or a file; for several files of a folder, one for each relevant file.

        Of several files, those that are certainly no documents, such as programs, are no part of the inputs.
        """
        if left_out.names:
            paths = filter(self._may_be_document, map(left_out.path.joinpath, left_out.names))
            files = [LeftOut(display(path), path, left_out.reason) for path in paths]
            entries = [entry for file in files for entry in self.entries(file)]
            yield from relevant_entries(entries)
            others = [Path(entry.place).name for entry in entries if not entry.relevant]
            if others:
                shown = f"`{others[0]}`" if len(others) == 1 else f"{len(others)} files"
                yield LedgerEntry(place=left_out.file, reason=f"{shown}: {left_out.reason}", relevant=False)
        else:
            why = self._why_relevant(left_out)
            reason = f"{left_out.reason}; {why}" if why else left_out.reason
            if why or not left_out.is_expected:
                yield LedgerEntry(place=left_out.file, reason=reason, relevant=bool(why))

    def is_document(self, content: bytes, file: str) -> bool:
        """Check whether a file of any name has the structure of one of the formats."""
        is_named = file.lower().endswith(_DOCUMENTS)
        return (is_named or looks_like_document(content)) and self._has_structure(content, file)

    def _is_relevant(self, content: bytes, file: str) -> bool:
        """Check whether a file is a document about Azure Machine Learning."""
        if not mentions_machine_learning(content) and not contains_any((*_CLI_WORDS, _TEMPLATE), content):
            return False
        return file.lower().endswith(_SOURCE_CODE) or self.is_document(content, file)

    def _has_structure(self, content: bytes, file: str) -> bool:
        try:
            documents = read_text(content, file, max_bytes=len(content)).documents
        except InputError:
            is_json = _JSON.match(content[_end_of_comments(content) :]) is not None
            if file.lower().endswith((*JSON_SUFFIXES, *YAML_SUFFIXES)):
                return may_be_ours(content, is_json=is_json)
            return is_json and mentions_machine_learning(content)
        return any(self._is_ours(document) for _, document in documents)

    def _is_ours(self, document: object) -> bool:
        name = next((name for name, each in self._formats.items() if each.detect(document)), "")
        if name in ("", "changes") and other_document(document) and not is_shaped_as_ours(document):
            return False
        return not self._formats[name].read(document).nothing if name else is_shaped_as_ours(document)

    def _why_relevant(self, left_out: LeftOut) -> str:
        """Return why a file or a folder is relevant; empty if it is not."""
        path = top = str(left_out.path)
        try:
            for path in self._list_files(left_out):
                if self._look(path):
                    break
            else:
                return ""
        except _LimitError:
            return "too many files to look at"
        except (OSError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            return f"`{display(Path(path))}` cannot be read ({reason})"
        return "it is about Machine Learning" if path == top else f"`{display(Path(path))}` is about Machine Learning"

    def _list_files(self, left_out: LeftOut) -> Iterator[str]:
        """Yield the files that are not read at all, those with names of documents first.

        Raises:
            _LimitError: there are too many names.
            OSError: a folder cannot be listed, or something is neither a file nor a folder.
        """
        if not left_out.path.is_dir():
            yield from _require_file(left_out.path)
            return
        is_read, others = set(map(str, left_out.read)), list[str]()
        waiting, seen = [(str(left_out.path), str(left_out.path.resolve()))], set[str]()
        while waiting:
            folder, real = waiting.pop()
            if real in seen:  # links can lead in a circle
                continue
            seen.add(real)
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
            self._names -= len(entries)
            if self._names < 0:
                raise _LimitError
            for entry in entries:
                target = _resolve_link(entry.path) if entry.is_symlink() else f"{real}{os.sep}{entry.name}"
                if not target or target in is_read:
                    continue
                if entry.is_dir():
                    waiting.append((entry.path, target))
                elif entry.name.lower().endswith(_DOCUMENTS):
                    yield from [entry.path] if entry.is_file() else _require_file(Path(entry.path))
                else:
                    others += [entry.path] if entry.is_file() else _require_file(Path(entry.path))
        yield from others

    def _may_be_document(self, path: Path) -> bool:
        """Check whether a file has to be looked at; what cannot be read has to."""
        try:
            if not path.is_file():
                return True
            with path.open("rb", buffering=0) as stream:
                return looks_like_document(stream.read(HEAD))
        except (OSError, ValueError):
            return True

    def _look(self, path: str) -> bool:
        """Check whether a file is relevant.

        Raises:
            _LimitError: too many files or bytes were looked at.
            OSError: it cannot be read.
        """
        self._files -= 1
        if self._files < 0:
            raise _LimitError
        is_code = path.lower().endswith(_SOURCE_CODE)
        if is_code and _TERRAFORM in Path(path).parts:  # the modules of the configuration that is planned
            return False
        with open(path, "rb", buffering=0) as stream:  # noqa: PTH123  # a virtual environment has 40,000 files
            content = stream.read(HEAD)
            is_named = is_code or path.lower().endswith(_DOCUMENTS)
            if not is_named and not looks_like_document(content):
                return False
            self._bytes -= os.fstat(stream.fileno()).st_size
            if self._bytes < 0:
                raise _LimitError
            content += stream.readall()
        return self._is_relevant(as_utf8(content), path)


def _require_file(path: Path) -> list[str]:
    """Return a path of a file as a list, which is empty for a link to nothing.

    Raises:
        OSError: it is a pipe or a device, which is not opened.
    """
    if path.is_file():
        return [str(path)]
    if path.exists():
        raise OSError("not a regular file")
    return []


def _resolve_link(path: str) -> str:
    """Return what a link leads to; empty if it leads to itself."""
    try:
        return str(Path(path).resolve())
    except (OSError, RuntimeError):
        return ""


def looks_like_document(content: bytes) -> bool:
    """Check whether a file that begins like this may be JSON (with comments, or JSON5) or YAML."""
    text = as_utf8(content)
    if b"\0" in text:  # binary, or UTF-16 that ends within a character
        text = as_utf8(content[:-2])
    if b"\0" in text:
        return False
    is_whole = len(content) < HEAD
    if any(_begins(text, *each, is_whole=is_whole) for each in ((_COMMENTS, _JSON), (_YAML_COMMENTS, _YAML))):
        return True
    return (b"---" in text or b"..." in text) and _NEXT_DOCUMENT.search(text) is not None


def _begins(text: bytes, comments: re.Pattern[bytes], beginning: re.Pattern[bytes], *, is_whole: bool) -> bool:
    """Check whether text begins so after comments, or may do so after more text."""
    end = _end_of_comments(text, comments)
    # Nothing but comments so far; the beginning may end within the sign of the next.
    if end >= _LONGEST_COMMENT or (end + len(b"---") > len(text) and not is_whole):
        return True
    return end < len(text) and beginning.match(text[end : end + HEAD]) is not None


def _end_of_comments(content: bytes, comments: re.Pattern[bytes] | None = None) -> int:
    match = (comments or _COMMENTS).match(content)
    return match.end() if match else 0
