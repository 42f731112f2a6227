"""JSON, strictly: one meaning per document, or a refusal that names the place and the remedy."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from functools import cache
from threading import Lock

import orjson

from policyeng.errors import InputError
from policyeng.garbage import uncollected
from policyeng.strict.json_positions import Fault, find_fault, find_places

DEFAULT_MAX_BYTES = 128 * 1024 * 1024
MAX_DEPTH = 128
#: orjson lets no other thread run until it has read all of a text. A thread that waits, such as that of the event loop,
#: waits for one text at most.
_PARSING = Lock()

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
#: Where the zeros stand among the first bytes of UTF-16 and UTF-32 that begin with ASCII and no byte order mark.
_WIDE_ZEROS = ((0, 1, 0, 1), (1, 0, 1, 0), (0, 1, 1, 1), (1, 1, 1, 0), (0, 1), (1, 0))
_REMEDY_ENCODING = "save it as UTF-8 without a byte order mark"
#: Maps bytes so that each run of so many digits is the same.
_DIGITS_ALIKE = bytes(ord("0") if chr(byte).isdecimal() and byte < 128 else ord(" ") for byte in range(256))
#: Digits of the shortest whole number that may be beyond 64 bits.
_LONG_RUN = b"0" * 19
#: Below so many bytes, brackets are counted faster than lists are put around.
_SHORT = 1 << 14
_LONG_INTEGER = re.compile(rb"(?:\A|[\s,:\[])-?[0-9]{19}")
_ESCAPED_COLON = re.compile(rb"\\u003[aA]")
#: What a fault is, as message and remedy.
_FAULTS: dict[str, tuple[str, str]] = {
    "utf8": ("not valid UTF-8", _REMEDY_ENCODING),
    "bom": ("begins with a byte order mark", _REMEDY_ENCODING),
    "syntax": ("not valid JSON", "correct the syntax there"),
    "duplicate-key": ("this key stands twice in one object", "remove one of the two"),
    "nan": ("NaN and Infinity are not JSON", "write a number or null"),
    "depth": (f"nested deeper than {MAX_DEPTH} levels", "flatten the document"),
    "wide": ("encoded as UTF-16 or UTF-32", _REMEDY_ENCODING),
    "lines": (
        "several JSON documents one after another, as in JSON Lines",
        "make them one list: `jq --slurp . FILE`, or keep one document per file",
    ),
    "trailing": ("more text follows the JSON document", "keep one document per file"),
    "empty": ("the file is empty", "give a JSON document"),
    "number": ("this number does not fit a double, or 64 bits if it is whole", "write a smaller number, or a string"),
}


def parse_json(content: bytes, file: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> object:
    """Parse bytes as one JSON document.

    Args:
        content: the document.
        file: how messages name the document.
        max_bytes: the largest size that is read.

    Raises:
        InputError: too large, not UTF-8, a byte order mark, not JSON, a duplicate key, NaN or Infinity, nested too
            deeply, or empty; with file, line, column and JSON Pointer.
    """
    refuse_size(len(content), file, max_bytes)
    refuse_encoding(content, file)
    try:
        with _PARSING, uncollected():
            document: object = orjson.loads(content)
        fault = None if _is_faultless(content, document) else find_fault(content, MAX_DEPTH)
    except orjson.JSONDecodeError as error:
        fault = find_fault(content, MAX_DEPTH) or Fault("syntax", "", error.lineno, error.colno)
    if fault is not None:
        raise _refusal_of(fault, content, file)
    return document


def require_readable(document: object, content: bytes, file: str) -> None:
    """Refuse a value that orjson wrote as `content` where `parse_json` refuses that.

    Raises:
        InputError: it is too large, or nested too deeply.
    """
    refuse_size(len(content), file, DEFAULT_MAX_BYTES)
    if not is_within(document, MAX_DEPTH) and (fault := find_fault(content, MAX_DEPTH)):
        raise _refusal_of(fault, content, file)


def is_within(document: object, levels: int) -> bool:
    """Whether a JSON value is nested in no more than so many levels."""
    return _written(document, levels) is not None


def _is_faultless(content: bytes, document: object) -> bool:
    """Whether what orjson read has no fault that orjson lets pass; False, too, where only a closer look can tell.

    Those faults are nesting, keys that appear twice, and whole numbers beyond 64 bits. A key that appears twice is read
    once: written again, the document has fewer colons, because those in strings stay unless they were escapes.
    """
    is_shallow = len(content) < _SHORT and content.count(b"[") + content.count(b"{") <= MAX_DEPTH
    written = _written(document, _most_levels() if is_shallow else MAX_DEPTH)
    return (
        written is not None
        and written.count(b":") == content.count(b":")
        and not _ESCAPED_COLON.search(content)
        and not (_LONG_RUN in content.translate(_DIGITS_ALIKE) and _LONG_INTEGER.search(content))
    )


def _written(document: object, levels: int) -> bytes | None:
    """A value as orjson writes it, in lists around it; None where it is nested in more than so many levels.

    The lists make what is nested too deeply reach the depth at which orjson refuses to write.
    """
    for _ in range(_most_levels() - levels):
        document = [document]
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError:
        return None


@cache
def _most_levels() -> int:
    """Find the depth of nesting up to which orjson writes."""
    levels, nested = 0, list[object]()
    while True:
        try:
            orjson.dumps(nested)
        except orjson.JSONEncodeError:
            return levels
        levels, nested = levels + 1, [nested]


def refuse_encoding(content: bytes, file: str) -> None:
    """Refuse text that is no UTF-8 from its first bytes on, or begins with a byte order mark.

    Raises:
        InputError: it is.
    """
    if content.startswith(_WIDE_MARKS) or tuple(int(not byte) for byte in content[:4]) in _WIDE_ZEROS:
        raise refusal(file, "wide")
    if content.startswith(codecs.BOM_UTF8):
        raise refusal(file, "bom")


def refuse_size(size: int, file: str, max_bytes: int) -> None:
    """Refuse a document that is larger than what is read.

    Raises:
        InputError: naming the limit.
    """
    if size > max_bytes:
        message = f"larger than the limit of {max_bytes} bytes"
        raise InputError(message, place=(file,), remedy="split it, or raise the limit")


def _refusal_of(fault: Fault, content: bytes, file: str) -> InputError:
    kind, pointer, line, column = fault
    if kind == "trailing" and content.split(b"\n", line)[line - 1][column - 1 : column] in (b"{", b"["):
        kind = "lines"
    return refusal(file, kind, pointer=pointer, line=line, column=column)


def refusal(file: str, kind: str, *, pointer: str = "", line: int = 1, column: int = 1) -> InputError:
    """The error for one kind of fault at one place."""
    message, remedy = _FAULTS[kind]
    return InputError(message, place=(f"{file}:{line}:{column}", shortened(pointer, 120)), remedy=remedy)


def lines_of(content: bytes, pointers: Sequence[str]) -> list[int]:
    """The line, from 1, at which each JSON Pointer's value begins; 1 where there is none."""
    return [1 if place is None else place[0] for place in places_of(content, pointers)]


def places_of(
    content: bytes, pointers: Sequence[str], starts: dict[int, list[int]] | None = None
) -> list[tuple[int, int] | None]:
    """The line and column, from 1, at which each JSON Pointer's value begins; None where there is none."""
    return find_places(content, pointers, starts) if pointers else []


def shortened(text: str, limit: int = 80) -> str:
    """User input cut to a length that a message can carry, control characters made visible."""
    visible = "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in text[: limit + 1])
    return visible if len(text) <= limit else visible[:limit] + "…"
