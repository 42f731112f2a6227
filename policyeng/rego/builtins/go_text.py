"""Text as Go reads and writes it: JSON, base64, PEM and strings of bytes.

A string of Go is made of bytes. Where they may be not UTF-8 they are a str with lone surrogates here, as the error
handler `surrogateescape` makes them, until they become a value.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from policyeng.rego.builtins.registry import BuiltinError
from policyeng.rego.numbers import parse_number
from policyeng.rego.values import Value, number_text, to_json

_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89abAB]|\\u[dD][c-fC-F]")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_MARKUP = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def to_value(text: str) -> str:
    """Return a string with each byte that is not UTF-8 replaced, as Go does in JSON."""
    return _SURROGATE.sub("\ufffd", text)


def from_bytes(content: bytes) -> str:
    """Return bytes as a string, with those that are not UTF-8 as lone surrogates."""
    return content.decode("utf-8", "surrogateescape")


def to_bytes(text: str) -> bytes:
    """Return the bytes of a string."""
    return text.encode("utf-8", "surrogateescape")


def _refuse_constant(name: str) -> Value:
    raise ValueError(f"invalid character {name[0]!r} looking for beginning of value")


_DECODER = json.JSONDecoder(parse_float=parse_number, parse_int=parse_number, parse_constant=_refuse_constant)


def parse_json(text: str) -> Value:
    """Read a JSON document.

    Raises:
        BuiltinError: it is not valid.
    """
    try:
        value = _DECODER.decode(to_value(text))
    except (ValueError, RecursionError) as error:
        raise BuiltinError(f"invalid JSON: {error}") from None
    return _replace_surrogates(value) if _ESCAPED_SURROGATE.search(text) else value


def parse_first_members(text: str) -> Value:
    """Read a JSON document in which the first of members of one name counts, not the last.

    Raises:
        BuiltinError: it is not valid.
    """
    parse_json(text)
    first: Value = json.JSONDecoder(object_pairs_hook=lambda pairs: dict(reversed(pairs))).decode(text)
    return _replace_surrogates(first)


def _replace_surrogates(value: Value) -> Value:
    if type(value) is str:
        return to_value(value)
    if type(value) is list:
        return [_replace_surrogates(item) for item in value]
    if type(value) is dict:
        return {to_value(key): _replace_surrogates(item) for key, item in value.items()}
    return value


def write_json(value: Value) -> str:
    """Write a value as Go does: no spaces, keys in their order, markup escaped.

    Raises:
        BuiltinError: it is nested too deeply.
    """
    try:
        return "".join(_write(to_json(value)))
    except RecursionError:
        raise BuiltinError("the value is nested too deeply") from None


def _write(value: Value) -> Iterator[str]:
    kind = type(value)
    if kind is str:
        yield json.dumps(value, ensure_ascii=False).translate(_MARKUP)
    elif kind is dict:
        separator = "{"
        for key in sorted(value):
            yield separator
            yield from _write(key)
            yield ":"
            yield from _write(value[key])
            separator = ","
        yield "}" if value else "{}"
    elif kind is list:
        separator = "["
        for item in value:
            yield separator
            yield from _write(item)
            separator = ","
        yield "]" if value else "[]"
    elif value is None or kind is bool:
        yield json.dumps(value)
    else:
        yield number_text(value)


def decode_base64(text: str, *, url: bool = False) -> bytes:
    """Decode base64 with padding; line ends in it are ignored, as Go does.

    Raises:
        BuiltinError: it is not valid.
    """
    plain = text.replace("\r", "").replace("\n", "")
    if url:
        plain = plain.translate({ord("-"): "+", ord("_"): "/", ord("+"): "-", ord("/"): "-"})
    if not _BASE64.fullmatch(plain):
        raise BuiltinError("illegal base64 data")
    return base64.b64decode(plain)


def decode_base64url(text: str) -> bytes:
    """Decode base64 of the alphabet for URLs, with or without padding.

    Raises:
        BuiltinError: it is not valid.
    """
    if not text.endswith("="):
        missing = -len(to_bytes(text)) % 4
        if missing == 3:
            raise BuiltinError(f"illegal base64url string: {to_value(text)}")
        text += "=" * missing
    return decode_base64(text, url=True)


class PemBlock(NamedTuple):
    """A block of PEM."""

    label: str
    headers: dict[str, str]
    content: bytes


def read_pem(content: bytes) -> tuple[PemBlock | None, bytes]:
    """Read the next block of PEM as Go does.

    Args:
        content: what may hold it.

    Returns:
        the block, None if there is none, and what follows it.
    """
    rest, skipped = content, 0
    while 0 <= skipped <= len(rest):
        rest = rest[skipped:]
        end = rest.find(b"\n-----END ")
        if end < 0:
            break
        skipped = end + 10
        begin = rest.rfind(b"-----BEGIN ", 0, end)
        if begin < 0 or (begin > 0 and rest[begin - 1 : begin] != b"\n"):
            continue
        rest, end, skipped = rest[begin + 11 :], end - begin - 11, skipped - begin - 11
        label, rest, used = _line(rest)
        end, skipped = end - used, skipped - used
        if not label.endswith(b"-----"):
            continue
        label = label[:-5]
        headers: dict[str, str] = {}
        while True:
            if not rest:
                return None, content
            line, following, used = _line(rest)
            key, colon, value = line.partition(b":")
            if not colon:
                break
            headers[from_bytes(key.strip())] = from_bytes(value.strip())
            rest, end, skipped = following, end - used, skipped - used
        if headers and end < 0:
            continue
        trailer = rest[skipped:]
        closing = label + b"-----"
        if not trailer.startswith(closing) or _line(trailer[len(closing) :])[0]:
            continue
        try:
            decoded = decode_base64(from_bytes(rest[: max(end, 0)].translate(None, b" \t")))
        except BuiltinError:
            continue
        return PemBlock(from_bytes(label), headers, decoded), _line(rest[end + 9 :])[1]
    return None, content


def _line(content: bytes) -> tuple[bytes, bytes, int]:
    end = content.find(b"\n")
    following = len(content) if end < 0 else end + 1
    line = content[: following if end < 0 else end]
    if end > 0 and line.endswith(b"\r"):
        line = line[:-1]
    return line.rstrip(b" \t"), content[following:], following
