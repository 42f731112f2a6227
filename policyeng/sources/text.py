"""Parsing of a file into documents with JSON Pointers, and lookup of the lines and columns of pointers.

The documents of a YAML stream are numbered like the entries of a list, so the second one has the pointer `/1`. YAML is
read as YAML 1.1, as the Azure CLI and Kubernetes do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from policyeng.errors import InputError
from policyeng.later import lazy_pattern
from policyeng.parsing.json_places import JsonPlaces, Place
from policyeng.parsing.json_pointer import list_index
from policyeng.parsing.json_text import parse_json
from policyeng.parsing.template_markers import refuse_placeholders

if TYPE_CHECKING:  # YAML is loaded only where there is some
    from policyeng.parsing.yaml_text import YamlDocument

#: A string, which is unchanged, or a comment. An unterminated comment extends to the end, so each byte is read once.
_STRINGS_AND_COMMENTS = lazy_pattern(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|//[^\n]*+|/\*(?:.*?\*/|.*+)', re.DOTALL)
_LINE_BREAK = lazy_pattern(rb"\r?\n")


def parse_commented_json(content: bytes, file: str, *, max_bytes: int) -> tuple[object, bytes] | None:
    """Parse JSON with comments and multi-line strings.

    Returns:
        The value, and the bytes with comments replaced by spaces, for lines and columns; None if there is neither a
        comment nor such a string.

    Raises:
        InputError: the rest is not JSON either; with the line and column in `content`.
    """
    plain = _STRINGS_AND_COMMENTS.sub(_blank_comment, content)
    one_line = _STRINGS_AND_COMMENTS.sub(_join_lines, plain)
    if one_line == content:
        return None
    try:
        return parse_json(one_line, file, max_bytes=max(max_bytes, len(one_line))), plain
    except InputError as error:
        raise _correct_position(error, file, plain) from None


def _blank_comment(part: re.Match[bytes]) -> bytes:
    """Replace a comment by spaces, which preserves lines and columns; an unterminated comment is unchanged."""
    text = part[0]
    open_ended = text.startswith(b"/*") and (len(text) < len("/**/") or not text.endswith(b"*/"))
    return text if open_ended or text.startswith(b'"') else re.sub(rb"[^\r\n]", b" ", text)


def _join_lines(part: re.Match[bytes]) -> bytes:
    return _LINE_BREAK.sub(rb"\\n", part[0])


def _correct_position(error: InputError, file: str, plain: bytes) -> InputError:
    """Correct the line and column of an error for multi-line strings."""
    line, column = (int(number) for number in error.place[0][len(file) + 1 :].split(":"))
    lines = _STRINGS_AND_COMMENTS.sub(lambda part: _LINE_BREAK.sub(b"\0", part[0]), plain).split(b"\n")
    pieces = lines[line - 1].decode(errors="replace").split("\0")
    line += sum(text.count(b"\0") for text in lines[: line - 1])
    for piece in pieces[:-1]:
        if column <= len(piece) + len("\\n"):
            break
        column -= len(piece) + len("\\n")
        line += 1
    return InputError(error.message, place=(f"{file}:{line}:{column}", *error.place[1:]), remedy=error.remedy)


YAML_SUFFIXES = (".yaml", ".yml")
JSON_SUFFIXES = (".json", ".jsonc", ".tfstate")

#: Source code that must be compiled or planned first, by suffix: what it is, and the command.
SOURCE_CODE: Mapping[str, tuple[str, str]] = {
    ".bicep": ("a Bicep file", "compile it with `az bicep build --file {file}` and give the JSON template"),
    ".bicepparam": ("a Bicep parameter file", "compile it with `az bicep build-params --file {file}`"),
    ".tf": (
        "Terraform configuration",
        "give its plan: `terraform plan -out tfplan && terraform show -json tfplan > plan.json`",
    ),
    ".tf.json": (
        "Terraform configuration",
        "give its plan: `terraform plan -out tfplan && terraform show -json tfplan > plan.json`",
    ),
}
_ARCHIVE = b"PK\x03\x04"
#: The beginnings of JSON, including JSON with comments.
_JSON_BEGINS = (b"{", b"[", b"//", b"/*")
#: The beginning of the JSON log of Terraform and OpenTofu.
_TERRAFORM_LOG = lazy_pattern(rb'\s*\{"@level":"[a-z]+","@message":')


@dataclass(frozen=True)
class Text:
    """A file that was read.

    Attributes:
        file: as the user named it.
        documents: each with its JSON Pointer in the file; one with an empty pointer, unless it is a YAML stream.
        find: return the line and column of each pointer, or of the nearest existing one above it.
    """

    __eq__ = object.__eq__  # compared by identity
    __hash__ = object.__hash__

    file: str
    documents: tuple[tuple[str, object], ...]
    find: Callable[[Sequence[str]], list[Place]]

    def places(self, pointers: Sequence[str]) -> list[Place]:
        """Return line and column (from 1) of each JSON Pointer, or of the nearest existing one above it."""
        return self.find(pointers)


def read_text(content: bytes, file: str, *, max_bytes: int) -> Text:
    """Parse the bytes of a file as JSON or YAML; what begins like JSON is JSON, whatever its suffix.

    A file with a YAML suffix that begins like JSON but is not valid JSON is YAML. A file with a JSON suffix that does
    not begin like JSON is YAML if it contains a mapping or a list.

    Raises:
        InputError: it is source code that must be compiled first, it is empty, or the strict readers refuse it.
    """
    refuse_source_code(file)
    if content.startswith(_ARCHIVE):
        remedy = "if it is a Terraform plan, convert it with `terraform show -json FILE`"
        raise InputError("not text: a ZIP archive", place=(file,), remedy=remedy)
    if not content.strip():
        raise InputError("the file is empty", place=(file,), remedy="give a JSON or YAML document")
    suffix = PurePath(file).suffix.lower()
    if content.lstrip().startswith(_JSON_BEGINS):
        if suffix not in YAML_SUFFIXES:
            return _read_json(content, file, max_bytes)
        try:
            return _read_plain_json(content, file, max_bytes)
        except InputError:
            return _read_yaml(content, file, max_bytes)
    elif suffix in JSON_SUFFIXES:
        return _read_yaml_named_json(content, file, max_bytes)
    return _read_yaml(content, file, max_bytes)


def refuse_source_code(file: str) -> None:
    """Refuse a file whose suffix shows that it must be compiled or planned first.

    Raises:
        InputError: the file is refused; with the command.
    """
    for suffix, (what, remedy) in SOURCE_CODE.items():
        if not file.lower().endswith(suffix):
            continue
        raise InputError(f"{what}, which cannot be checked directly", place=(file,), remedy=remedy.format(file=file))


def _read_plain_json(content: bytes, file: str, max_bytes: int) -> Text:
    return Text(file, (("", parse_json(content, file, max_bytes=max_bytes)),), JsonPlaces(content).nearest)


def _read_json(content: bytes, file: str, max_bytes: int) -> Text:
    """Parse JSON; if that fails, allow comments and multi-line strings, which ARM accepts in templates."""
    try:
        return _read_plain_json(content, file, max_bytes)
    except InputError as refused:
        if _TERRAFORM_LOG.match(content):
            remedy = "give the output of `terraform plan -out tfplan && terraform show -json tfplan > plan.json`"
            raise InputError("the log of `terraform plan -json`, not the plan", place=(file,), remedy=remedy) from None
        if len(content) > max_bytes or not _is_utf8(content):
            raise
        value, plain = _parse_commented(content, file, max_bytes, refused)
    return Text(file, (("", value),), JsonPlaces(plain).nearest)


def _parse_commented(content: bytes, file: str, max_bytes: int, refused: InputError) -> tuple[object, bytes]:
    try:
        commented = parse_commented_json(content, file, max_bytes=max_bytes)
        if commented is None:
            raise refused
    except InputError as error:
        if error.message.startswith("not valid JSON"):
            refuse_placeholders(content.decode(), file, "JSON")
        raise error from None
    return commented


def _read_yaml(content: bytes, file: str, max_bytes: int) -> Text:
    from policyeng.parsing.yaml_text import parse_kubernetes_yaml

    read = parse_kubernetes_yaml(content, file, max_bytes=max_bytes)
    if all(each.value is None for each in read):
        raise InputError("contains only empty documents", place=(file,), remedy="give a JSON or YAML document")
    numbered = len(read) > 1
    documents = tuple((f"/{at}" * numbered, each.value) for at, each in enumerate(read) if each.value is not None)
    find = partial(_find_in_stream, read) if numbered else read[0].places.get
    return Text(file, documents, lambda pointers: [_find_nearest(find, pointer) for pointer in pointers])


def _read_yaml_named_json(content: bytes, file: str, max_bytes: int) -> Text:
    """Parse YAML in a file with a JSON suffix, such as from `-o yaml > file.json`; other text is refused as JSON."""
    try:
        return _read_json(content, file, max_bytes)
    except InputError as refused:
        try:
            text = _read_yaml(content, file, max_bytes)
        except InputError:
            raise refused from None
        if not all(isinstance(document, dict | list) for _, document in text.documents):
            raise
        return text


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _find_nearest(find: Callable[[str], Place | None], pointer: str) -> Place:
    parts = pointer.split("/")
    above = ("/".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next(filter(None, map(find, above)), (1, 1))


def _find_in_stream(documents: Sequence[YamlDocument], pointer: str) -> Place | None:
    index, _, rest = pointer[1:].partition("/")
    at = list_index(index)
    if at is None or at >= len(documents):
        return None
    return documents[at].places.get(f"/{rest}" if rest else "")
