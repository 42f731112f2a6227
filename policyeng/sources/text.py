"""From bytes to JSON values and back to places: one file as the documents in it, each with its JSON Pointer.

The documents of a YAML stream count as the entries of a list, so the second one has the pointer `/1`. Words in YAML
mean what they mean to the Azure CLI and to Kubernetes, which both read YAML 1.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from policyeng.errors import InputError
from policyeng.frozen import frozen
from policyeng.later import lazy_pattern
from policyeng.parsing.json_pointer import list_index
from policyeng.parsing.json_text import parse_json, places_of
from policyeng.parsing.template_markers import refuse_placeholders

if TYPE_CHECKING:  # YAML is loaded only where there is some
    from policyeng.parsing.yaml_text import YamlDocument

#: A string, which is left as it is, or a comment; one that does not end goes to the end, so each byte is met once.
_STRINGS_AND_COMMENTS = lazy_pattern(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|//[^\n]*+|/\*(?:.*?\*/|.*+)', re.DOTALL)
_LINE_BREAK = lazy_pattern(rb"\r?\n")


def parse_commented_json(content: bytes, file: str, *, max_bytes: int) -> tuple[object, bytes] | None:
    """Parse JSON with comments and strings of several lines.

    Returns:
        The value, and the same bytes with comments blanked, in which it is found by line and column; None when there
        is neither a comment nor such a string.

    Raises:
        InputError: it is not JSON without them either, with the line and column in `content`.
    """
    plain = _STRINGS_AND_COMMENTS.sub(_blanked, content)
    one_line = _STRINGS_AND_COMMENTS.sub(_on_one_line, plain)
    if one_line == content:
        return None
    try:
        return parse_json(one_line, file, max_bytes=max(max_bytes, len(one_line))), plain
    except InputError as error:
        raise _moved_back(error, file, plain) from None


def _blanked(part: re.Match[bytes]) -> bytes:
    """A comment as spaces, so that everything else keeps its line and column; one that does not end is none."""
    text = part[0]
    open_ended = text.startswith(b"/*") and (len(text) < len("/**/") or not text.endswith(b"*/"))
    return text if open_ended or text.startswith(b'"') else re.sub(rb"[^\r\n]", b" ", text)


def _on_one_line(part: re.Match[bytes]) -> bytes:
    return _LINE_BREAK.sub(rb"\\n", part[0])


def _moved_back(error: InputError, file: str, plain: bytes) -> InputError:
    """The error with the line and column that its place has where strings go over several lines."""
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

_Place = tuple[int, int]

#: What is compiled or planned before it says what will be there, by suffix: what it is, and the command that does it.
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
#: How JSON begins, also that with comments.
_JSON_BEGINS = (b"{", b"[", b"//", b"/*")
#: So many places in a file are kept, beside those of the last question.
_MOST_PLACES = 1 << 16
#: The first of the lines that Terraform and OpenTofu log as JSON.
_TERRAFORM_LOG = lazy_pattern(rb'\s*\{"@level":"[a-z]+","@message":')


@frozen
class Text:
    """One file that was read.

    Attributes:
        file: as the user named it.
        documents: each with its JSON Pointer in the file; one, with an empty pointer, unless it is a YAML stream.
        find: line and column by pointer, None where there is nothing.
    """

    __eq__ = object.__eq__  # two are never compared by what they have
    __hash__ = object.__hash__

    file: str
    documents: tuple[tuple[str, object], ...]
    find: Callable[[Sequence[str]], Sequence[_Place | None]]

    def places(self, pointers: Sequence[str]) -> list[_Place]:
        """Line and column (from 1) of each JSON Pointer, or of what stands nearest above one that is not there."""
        lines = {pointer: _upwards(pointer) for pointer in pointers}
        asked = list(dict.fromkeys(step for steps in lines.values() for step in steps))
        found = dict(zip(asked, self.find(asked), strict=True))
        return [next((place for step in lines[pointer] if (place := found[step])), (1, 1)) for pointer in pointers]


class _Finding:
    """The places in JSON text; who asks for the same ones with every decision has the text read once for them."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._known: dict[str, _Place | None] = {}
        self._starts: dict[int, list[int]] = {}

    def __call__(self, pointers: Sequence[str]) -> list[_Place | None]:
        known = self._known
        missing = [pointer for pointer in pointers if pointer not in known]
        if len(known) + len(missing) > _MOST_PLACES:
            known, missing = {}, [*pointers]
            self._known = known
        known.update(zip(missing, places_of(self._content, missing, self._starts), strict=True))
        return [known[pointer] for pointer in pointers]


def read_text(content: bytes, file: str, *, max_bytes: int) -> Text:
    """Parse the bytes of a file as JSON or YAML: what begins as JSON is JSON, whatever its suffix says.

    A file with a suffix of YAML that begins so and is no JSON is YAML; one with a suffix of JSON that begins otherwise,
    too, if it holds a mapping or a list.

    Raises:
        InputError: it is source code that has to be compiled first, empty, or what the strict readers refuse.
    """
    refuse_source_code(file)
    if content.startswith(_ARCHIVE):
        remedy = "a Terraform plan file is printed by `terraform show -json FILE`"
        raise InputError("not text: a ZIP archive", place=(file,), remedy=remedy)
    if not content.strip():
        raise InputError("the file is empty", place=(file,), remedy="give a JSON or YAML document")
    suffix = PurePath(file).suffix.lower()
    if content.lstrip().startswith(_JSON_BEGINS):
        if suffix not in YAML_SUFFIXES:
            return _json(content, file, max_bytes)
        try:
            return _plain_json(content, file, max_bytes)
        except InputError:
            return _yaml(content, file, max_bytes)
    elif suffix in JSON_SUFFIXES:
        return _yaml_called_json(content, file, max_bytes)
    return _yaml(content, file, max_bytes)


def refuse_source_code(file: str) -> None:
    """Refuse a file whose suffix says that it has to be compiled or planned first.

    Raises:
        InputError: it does, with the command.
    """
    for suffix, (what, remedy) in SOURCE_CODE.items():
        if not file.lower().endswith(suffix):
            continue
        raise InputError(f"{what}, which is not judged as it is", place=(file,), remedy=remedy.format(file=file))


def _plain_json(content: bytes, file: str, max_bytes: int) -> Text:
    return Text(file, (("", parse_json(content, file, max_bytes=max_bytes)),), _Finding(content))


def _json(content: bytes, file: str, max_bytes: int) -> Text:
    """JSON; with comments and strings of several lines, which ARM takes in templates, where it is not JSON without."""
    try:
        return _plain_json(content, file, max_bytes)
    except InputError as refused:
        if _TERRAFORM_LOG.match(content):
            remedy = "give what `terraform plan -out tfplan && terraform show -json tfplan > plan.json` prints"
            raise InputError("the log of `terraform plan -json`, not the plan", place=(file,), remedy=remedy) from None
        if len(content) > max_bytes or not _is_utf8(content):
            raise
        value, plain = _commented(content, file, max_bytes, refused)
    return Text(file, (("", value),), _Finding(plain))


def _commented(content: bytes, file: str, max_bytes: int, refused: InputError) -> tuple[object, bytes]:
    try:
        commented = parse_commented_json(content, file, max_bytes=max_bytes)
        if commented is None:
            raise refused
    except InputError as error:
        if error.message.startswith("not valid JSON"):
            refuse_placeholders(content.decode(), file, "JSON")
        raise error from None
    return commented


def _yaml(content: bytes, file: str, max_bytes: int) -> Text:
    from policyeng.parsing.yaml_text import parse_kubernetes_yaml

    read = parse_kubernetes_yaml(content, file, max_bytes=max_bytes)
    if all(each.value is None for each in read):
        raise InputError("holds empty documents only", place=(file,), remedy="give a JSON or YAML document")
    if len(read) == 1:
        return Text(file, (("", read[0].value),), lambda pointers: [read[0].places.get(entry) for entry in pointers])
    documents = tuple((f"/{index}", each.value) for index, each in enumerate(read) if each.value is not None)
    return Text(file, documents, lambda pointers: [_in_stream(read, pointer) for pointer in pointers])


def _yaml_called_json(content: bytes, file: str, max_bytes: int) -> Text:
    """What `-o yaml > file.json` writes; text that is neither is refused as JSON."""
    try:
        return _json(content, file, max_bytes)
    except InputError as refused:
        try:
            text = _yaml(content, file, max_bytes)
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


def _upwards(pointer: str) -> list[str]:
    """A pointer and those above it, nearest first."""
    parts = pointer.split("/")
    return ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]


def _in_stream(documents: Sequence[YamlDocument], pointer: str) -> _Place | None:
    index, _, rest = pointer[1:].partition("/")
    at = list_index(index)
    if at is None or at >= len(documents):
        return None
    return documents[at].places.get(f"/{rest}" if rest else "")
