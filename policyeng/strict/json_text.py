"""JSON, strictly: one meaning per document, or a refusal that names the place and the remedy."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from threading import Lock

import orjson

from policyeng import _native
from policyeng.errors import InputError

DEFAULT_MAX_BYTES = 128 * 1024 * 1024
MAX_DEPTH = 128
#: orjson lets no other thread run until it has read all of a text. A thread that waits, such as that of the event loop,
#: waits for one text at most.
_PARSING = Lock()

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
#: Where the zeros stand among the first bytes of UTF-16 and UTF-32 that begin with ASCII and no byte order mark.
_WIDE_ZEROS = ((0, 1, 0, 1), (1, 0, 1, 0), (0, 1, 1, 1), (1, 1, 1, 0), (0, 1), (1, 0))
_REMEDY_ENCODING = "save it as UTF-8 without a byte order mark"
#: What the native reader calls a fault, as message and remedy.
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
    require_json(content, file, max_bytes=max_bytes)
    try:
        with _PARSING:
            document: object = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise refusal(file, "syntax", line=error.lineno, column=error.colno, detail=error.msg) from None
    return document


def require_json(content: bytes, file: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
    """Refuse bytes that `parse_json` would refuse, without building values.

    Raises:
        InputError: as `parse_json` does.
    """
    refuse_size(len(content), file, max_bytes)
    refuse_encoding(content, file)
    fault = _native.check_json(content, MAX_DEPTH)
    if fault is not None:
        kind: str = fault[0]
        _, pointer, line, column = fault
        if kind == "trailing" and content.split(b"\n", line)[line - 1][column - 1 : column] in (b"{", b"["):
            kind = "lines"
        raise refusal(file, kind, pointer=pointer, line=line, column=column)


def refuse_encoding(content: bytes, file: str) -> None:
    """Refuse text that is no UTF-8 from its first bytes on, or begins with a byte order mark.

    Raises:
        InputError: it is.
    """
    if content.startswith(_WIDE_MARKS) or tuple(int(not byte) for byte in content[:4]) in _WIDE_ZEROS:
        raise refusal(file, "wide")
    if content.startswith(codecs.BOM_UTF8):
        raise refusal(file, "bom")


def is_json(content: bytes, *, deeper: int = 0) -> bool:
    """Whether bytes are JSON as `parse_json` reads it, of any size and nested `deeper` levels more."""
    return _native.check_json(content, MAX_DEPTH + deeper) is None


def refuse_size(size: int, file: str, max_bytes: int) -> None:
    """Refuse a document that is larger than what is read.

    Raises:
        InputError: naming the limit.
    """
    if size > max_bytes:
        message = f"larger than the limit of {max_bytes} bytes"
        raise InputError(message, place=(file,), remedy="split it, or raise the limit")


def refusal(file: str, kind: str, *, pointer: str = "", line: int = 1, column: int = 1, detail: str = "") -> InputError:
    """The error for one kind of fault at one place."""
    message, remedy = _FAULTS[kind]
    place = (f"{file}:{line}:{column}", shortened(pointer, 120))
    return InputError(f"{message} ({detail})" if detail else message, place=place, remedy=remedy)


def lines_of(content: bytes, pointers: Sequence[str]) -> list[int]:
    """The line, from 1, at which each JSON Pointer's value begins; 1 where there is none."""
    return [1 if place is None else place[0] for place in places_of(content, pointers)]


def places_of(content: bytes, pointers: Sequence[str]) -> list[tuple[int, int] | None]:
    """The line and column, from 1, at which each JSON Pointer's value begins; None where there is none."""
    return _native.locate(content, list(pointers)) if pointers else []


def shortened(text: str, limit: int = 80) -> str:
    """User input cut to a length that a message can carry, control characters made visible."""
    visible = "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in text[: limit + 1])
    return visible if len(text) <= limit else visible[:limit] + "…"
