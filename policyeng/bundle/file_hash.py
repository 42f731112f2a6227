"""The hash of a file in a signed bundle, as OPA computes it.

Data documents and the manifest are hashed by their JSON value: keys in order, no spaces, numbers as they are written.
Every other file is hashed byte by byte. Source: OPA's v1/bundle/hash.go and verify.go (version 1.22).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from policyeng.bundle.manifest import MANIFEST
from policyeng.bundle.parsing import bundle_yaml
from policyeng.bundle.tree import DATA_NAMES
from policyeng.errors import BundleError

#: OPA's names of the algorithms that are accepted, and hashlib's; MD5 and SHA-1 are left out, they no longer bind.
ALGORITHMS = {
    "SHA-224": "sha224",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
    "SHA-512-224": "sha512_224",
    "SHA-512-256": "sha512_256",
}

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class _Number(NamedTuple):
    """A number as its document writes it."""

    text: str


def file_hash(path: PurePosixPath, content: bytes, algorithm: str, place: str) -> str:
    """The hash of a file, as hexadecimal; `algorithm` is a key of `ALGORITHMS`.

    Raises:
        BundleError: a document is neither JSON nor YAML.
    """
    if path.name in DATA_NAMES or path.name == MANIFEST.name:
        content = "".join(_canonical(_document(content, place))).encode()
    return hashlib.new(ALGORITHMS[algorithm], content, usedforsecurity=True).hexdigest()


def _document(content: bytes, place: str) -> object:
    try:
        text = content.decode("utf-8-sig")
        try:
            return json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_no_constant)
        except ValueError:
            return bundle_yaml(text, place)
    except (UnicodeDecodeError, RecursionError) as error:
        raise BundleError("the document cannot be read", place=(place,), remedy="write JSON in UTF-8") from error


def _no_constant(name: str) -> object:
    raise ValueError(f"`{name}` is not JSON")


def _canonical(value: object) -> Iterator[str]:
    if isinstance(value, _Number):
        yield value.text
    elif isinstance(value, dict):
        yield "{"
        for position, key in enumerate(sorted(value)):
            yield f"{',' if position else ''}{_quoted(key)}:"
            yield from _canonical(value[key])
        yield "}"
    elif isinstance(value, list):
        yield "["
        for position, element in enumerate(value):
            if position:
                yield ","
            yield from _canonical(element)
        yield "]"
    elif isinstance(value, str):
        yield _quoted(value)
    elif isinstance(value, float):
        yield _as_go(value)
    else:
        yield json.dumps(value)


def _quoted(text: str) -> str:
    """A string as Go writes it in JSON: line separators escaped, and what is no character replaced."""
    sound = text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)
    return json.dumps(sound, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _as_go(value: float) -> str:
    """A number of a YAML document as Go writes it in JSON: the shortest digits, an exponent only where it is large."""
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        from decimal import Decimal

        digits = format(Decimal(repr(value)), "f")
        return digits.rstrip("0").rstrip(".") if "." in digits else digits
    mantissa, _, exponent = repr(value).partition("e")
    sign, digits = exponent[:1], exponent[1:].lstrip("0")
    return f"{mantissa.removesuffix('.0')}e{sign}{digits.rjust(2, '0') if sign == '+' else digits}"
