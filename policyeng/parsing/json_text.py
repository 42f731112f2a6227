"""Strict JSON parsing: ambiguous documents are refused, with the place and the remedy."""

from __future__ import annotations

import codecs
import math
import re
from functools import cache
from threading import Lock
from typing import Final, NamedTuple

import orjson

from policyeng._performance import uncollected
from policyeng.errors import InputError
from policyeng.later import lazy_pattern
from policyeng.parsing.json_pointer import escaped

_SPACE = lazy_pattern(r"[ \t\n\r]*+")
_DIGITS = lazy_pattern(r"[0-9]*+")
#: A string up to its closing quote, or up to what is at fault in it; surrogates come in pairs.
_STRING = lazy_pattern(
    r'"[^"\\\x00-\x1f]*+'
    r'(?:\\(?:["\\/bfnrt]|u(?:[0-9A-Ca-cE-Fe-f][0-9A-Fa-f]{3}|[Dd][0-7][0-9A-Fa-f]{2}'
    r"|[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}))"
    r'[^"\\\x00-\x1f]*+)*+'
)
#: What most scalars are, with the comma behind; a comma in it is no other one.
_PLAIN = (
    r'(?:"[^"\\,\x00-\x1f]*+"|-?(?:0|[1-9][0-9]{0,17}+)|true|false|null)'
    r"[ \t\n\r]*+,[ \t\n\r]*+"
)
_PLAIN_ITEMS = lazy_pattern(f"(?:{_PLAIN})*+")
#: A key as most are, with its value where that is plain.
_PLAIN_MEMBER = lazy_pattern(rf'"([^"\\\x00-\x1f]*+)"[ \t\n\r]*+:[ \t\n\r]*+({_PLAIN})?+')
_HEX = lazy_pattern(r"[0-9A-Fa-f]{4}")
_HIGH_SURROGATE = lazy_pattern(r"[Dd][89ABab]")
#: The characters of the longest whole number of 64 bits, with its sign.
_LONGEST_INTEGER = 20


class JsonFault(NamedTuple):
    """What is wrong first in a document.

    Attributes:
        kind: one of `utf8`, `syntax`, `duplicate-key`, `nan`, `depth`, `trailing`, `empty`, `number`.
        pointer: JSON Pointer of the place.
        line: from 1.
        column: from 1, in characters.
    """

    kind: str
    pointer: str
    line: int
    column: int


class _FaultError(Exception):
    """What is wrong, and where in the text."""

    def __init__(self, kind: str, at: int) -> None:
        super().__init__()
        self.kind: Final = kind
        self.at: Final = at


class _Frame:
    """An array or object that is being read: the place in it, as a token of a pointer, and the keys so far."""

    __slots__ = ("closing", "keys", "token")

    def __init__(self, opening: str) -> None:
        self.closing = "]" if opening == "[" else "}"
        self.keys: set[str] = set()
        self.token: int | str | None = 0 if opening == "[" else None


def find_fault(content: bytes, max_depth: int) -> JsonFault | None:
    """Find what `parse_json` refuses in a document, by the order of the text; None in a good one."""
    try:
        text, is_utf8 = content.decode(), True
    except UnicodeDecodeError as error:
        text, is_utf8 = content[: error.start].decode(), False
    frames: list[_Frame] = []
    try:
        _read_document(text, frames, max_depth)
        if is_utf8:
            return None
        kind, at = "utf8", len(text)
    except _FaultError as error:
        kind, at = error.kind, error.at
        if not is_utf8 and at >= len(text):
            kind = "utf8"
    pointer = "".join(f"/{escaped(frame.token)}" for frame in frames if frame.token is not None)
    return JsonFault(kind, pointer, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def _past(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return the place after what a pattern finds at a place."""
    found = pattern.match(text, at)
    return found.end() if found else at


def _read_document(text: str, frames: list[_Frame], max_depth: int) -> None:
    at = _past(_SPACE, text, 0)
    if at == len(text):
        raise _FaultError("empty", at)
    while True:
        char = text[at : at + 1]
        if char in ("[", "{"):
            if len(frames) >= max_depth:
                raise _FaultError("depth", at)
            frame = _Frame(char)
            frames.append(frame)
            at = _past(_SPACE, text, at + 1)
            if not text.startswith(frame.closing, at):
                at = _read_to_value(text, at, frame)
                continue
        else:
            at = _read_scalar(text, at, char)
            at = _past(_SPACE, text, at)
        while frames and text.startswith(frames[-1].closing, at):
            frames.pop()
            at = _past(_SPACE, text, at + 1)
        if not frames:
            break
        if not text.startswith(",", at):
            raise _FaultError("syntax", at)
        frame = frames[-1]
        if isinstance(frame.token, int):
            frame.token += 1
        at = _read_to_value(text, _past(_SPACE, text, at + 1), frame)
    if at < len(text):
        raise _FaultError("trailing", at)


def _read_to_value(text: str, at: int, frame: _Frame) -> int:
    """Read members that are plain, and give the place of the first value that is not."""
    if isinstance(frame.token, int):
        end = _past(_PLAIN_ITEMS, text, at)
        frame.token += text.count(",", at, end)
        return end
    while (member := _PLAIN_MEMBER.match(text, at)) and member[1] not in frame.keys:
        frame.token = member[1]
        frame.keys.add(member[1])
        at = member.end()
        if not member[2]:
            return at
    return _read_key(text, at, frame)


def _read_key(text: str, at: int, frame: _Frame) -> int:
    """Read a key with its colon, and give the place of its value."""
    if not text.startswith('"', at):
        raise _FaultError("syntax", at)
    end = _read_string(text, at)
    key = text[at + 1 : end - 1]
    if "\\" in key:
        key = orjson.loads(text[at:end])
    frame.token = key
    if key in frame.keys:
        raise _FaultError("duplicate-key", at)
    frame.keys.add(key)
    at = _past(_SPACE, text, end)
    if not text.startswith(":", at):
        raise _FaultError("syntax", at)
    return _past(_SPACE, text, at + 1)


def _read_scalar(text: str, at: int, char: str) -> int:
    if char == '"':
        return _read_string(text, at)
    if char and char in "-0123456789":
        return _read_number(text, at)
    for word in ("true", "false", "null", "NaN", "Infinity"):
        if text.startswith(word, at):
            if word[0] in "NI":
                raise _FaultError("nan", at)
            return at + len(word)
    raise _FaultError("syntax", at)


def _read_string(text: str, at: int) -> int:
    at = _past(_STRING, text, at)
    if text.startswith('"', at):
        return at + 1
    if not text.startswith("\\", at):
        raise _FaultError("syntax", at)
    _require_bytes(text, at + 1, 1)
    if text[at + 1] == "u":
        _require_hex(text, at + 2)
        if _HIGH_SURROGATE.match(text, at + 2):
            _require_bytes(text, at + 6, 2)
            if text.startswith("\\u", at + 6):
                _require_hex(text, at + 8)
    raise _FaultError("syntax", at)


def _require_hex(text: str, at: int) -> None:
    _require_bytes(text, at, 4)
    if not _HEX.match(text, at):
        raise _FaultError("syntax", at)


def _require_bytes(text: str, at: int, size: int) -> None:
    """Put the fault of an escape that the end of the text cuts off at the end."""
    if len(text[at : at + size].encode()) < size:
        raise _FaultError("syntax", len(text))


def _read_number(text: str, start: int) -> int:
    at = start + text.startswith("-", start)
    if text.startswith("0", at):
        at += 1
    elif text.startswith("Infinity", at):
        raise _FaultError("nan", start)
    else:
        at = _read_digits(text, at)
    whole = at
    if text.startswith(".", at):
        at = _read_digits(text, at + 1)
    if text.startswith(("e", "E"), at):
        at = _read_digits(text, at + 1 + text.startswith(("+", "-"), at + 1))
    if at > whole:
        fits = math.isfinite(float(text[start:at]))
    else:
        fits = at - start <= _LONGEST_INTEGER and -(2**63) <= int(text[start:at]) < 2**64
    if not fits:
        raise _FaultError("number", start)
    return at


def _read_digits(text: str, at: int) -> int:
    end = _past(_DIGITS, text, at)
    if end == at:
        raise _FaultError("syntax", at)
    return end


DEFAULT_MAX_BYTES = 128 * 1024 * 1024
MAX_DEPTH = 128
#: orjson lets no other thread run until it has read all of a text. A thread that waits, such as that of the event loop,
#: waits for one text at most.
_PARSING = Lock()

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
#: The positions of zeros among the first bytes of UTF-16 and UTF-32 that begin with ASCII and no byte order mark.
_WIDE_ZEROS = ((0, 1, 0, 1), (1, 0, 1, 0), (0, 1, 1, 1), (1, 1, 1, 0), (0, 1), (1, 0))
_REMEDY_ENCODING = "save it as UTF-8 without a byte order mark"
#: Maps bytes so that each run of so many digits is the same.
_DIGITS_ALIKE = bytes(ord("0") if chr(byte).isdecimal() and byte < 128 else ord(" ") for byte in range(256))
#: Digits of the shortest whole number that may be beyond 64 bits.
_LONG_RUN = b"0" * 19
#: Below so many bytes, brackets are counted faster than lists are put around.
_SHORT = 1 << 14
_LONG_INTEGER = lazy_pattern(rb"(?:\A|[\s,:\[])-?[0-9]{19}")
_ESCAPED_COLON = lazy_pattern(rb"\\u003[aA]")
#: What a fault is, as message and remedy.
_FAULTS: dict[str, tuple[str, str]] = {
    "utf8": ("not valid UTF-8", _REMEDY_ENCODING),
    "bom": ("begins with a byte order mark", _REMEDY_ENCODING),
    "syntax": ("not valid JSON", "correct the syntax there"),
    "duplicate-key": ("duplicate key in one object", "remove one of the two"),
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
        fault = find_fault(content, MAX_DEPTH) or JsonFault("syntax", "", error.lineno, error.colno)
    if fault is not None:
        raise _explain_refusal(fault, content, file)
    return document


def require_readable(document: object, content: bytes, file: str) -> None:
    """Refuse a value that orjson wrote as `content` where `parse_json` refuses that.

    Raises:
        InputError: it is too large, or nested too deeply.
    """
    refuse_size(len(content), file, DEFAULT_MAX_BYTES)
    if _is_shallow(content) or is_within(document, MAX_DEPTH):
        return
    if fault := find_fault(content, MAX_DEPTH):
        raise _explain_refusal(fault, content, file)


def is_within(document: object, levels: int) -> bool:
    """Return whether a JSON value is nested in no more than so many levels."""
    return _encode_wrapped(document, levels) is not None


def _is_faultless(content: bytes, document: object) -> bool:
    """Check whether what orjson read is free of faults that orjson accepts; False also if unsure.

    Those faults are nesting, keys that appear twice, and whole numbers beyond 64 bits. A key that appears twice is read
    once: written again, the document has fewer colons, because those in strings stay unless they were escapes.
    """
    written = _encode_wrapped(document, _most_levels() if _is_shallow(content) else MAX_DEPTH)
    return (
        written is not None
        and written.count(b":") == content.count(b":")
        and not _ESCAPED_COLON.search(content)
        and not (_LONG_RUN in content.translate(_DIGITS_ALIKE) and _LONG_INTEGER.search(content))
    )


def _is_shallow(content: bytes) -> bool:
    """Check whether a short text has too few brackets to be nested too deeply."""
    return len(content) < _SHORT and content.count(b"[") + content.count(b"{") <= MAX_DEPTH


def _encode_wrapped(document: object, levels: int) -> bytes | None:
    """Return a value as orjson writes it, in lists around it; None where it is nested in more than so many levels.

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
        raise build_refusal(file, "wide")
    if content.startswith(codecs.BOM_UTF8):
        raise build_refusal(file, "bom")


def refuse_size(size: int, file: str, max_bytes: int) -> None:
    """Refuse a document that is larger than what is read.

    Raises:
        InputError: naming the limit.
    """
    if size > max_bytes:
        message = f"larger than the limit of {max_bytes} bytes"
        raise InputError(message, place=(file,), remedy="split it, or raise the limit")


def _explain_refusal(fault: JsonFault, content: bytes, file: str) -> InputError:
    kind, pointer, line, column = fault
    if kind == "trailing" and content.split(b"\n", line)[line - 1][column - 1 : column] in (b"{", b"["):
        kind = "lines"
    return build_refusal(file, kind, pointer=pointer, line=line, column=column)


def build_refusal(file: str, kind: str, *, pointer: str = "", line: int = 1, column: int = 1) -> InputError:
    """Return the error for one kind of fault at one place."""
    message, remedy = _FAULTS[kind]
    return InputError(message, place=(f"{file}:{line}:{column}", shortened(pointer, 120)), remedy=remedy)


def kind_of(value: object) -> str:
    """Return the kind of a JSON value for a message."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    names: dict[type, str] = {str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names[type(value)]


def shortened(text: str, limit: int = 80) -> str:
    """User input cut to a length that a message can carry, control characters made visible."""
    visible = "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in text[: limit + 1])
    return visible if len(text) <= limit else visible[:limit] + "…"
