"""Rego as text: what of it reaches for the host, and the same module under another path of `data`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from policyeng import _native
from policyeng.errors import EngineError

_HOST = frozenset(_native.HOST_BUILTINS)
_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<template>\$["`])
    |(?P<text>`[^`]*`|"(?:[^"\\\n]|\\.)*+"?)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


@lru_cache(maxsize=1024)  # every snapshot asks it of the same modules
def require_pure(path: str, source: str) -> None:
    """Refuse a module that reaches for the host, as the embedded engine does.

    Raises:
        EngineError: it names such a builtin, or has a template string, which could hide one.
    """
    chain = previous = ""
    for kind, text, offset in _tokens(path, source):
        if kind == "name":
            chain = f"{chain}.{text}" if previous == "." else text
        elif kind == "text" and previous == "[":
            chain = f"{chain}.{text[1:-1]}"
        elif text not in {".", "[", "]", "("}:
            chain = ""
        # One word alone may be a name of the module's own; a call of it is none.
        if chain in _HOST and ("." in chain or (text == "(" and previous == chain)):
            place = f"{path}:{source.count(chr(10), 0, offset) + 1}"
            message = f"`{chain}` is not available to policies, which see their input and nothing else"
            raise EngineError(message, place=(place,))
        if text == "(":
            chain = ""
        previous = text


def package_root(path: str, source: str) -> str:
    """The first part of a module's package."""
    texts = [text for _, text, _ in islice(_tokens(path, source), 2)]
    return texts[1] if texts[:1] == ["package"] and len(texts) > 1 else ""


def relocated(path: str, source: str, prefix: str) -> str:
    """A module with its package, and all that it names of `data`, below `prefix` (dotted); its lines stay in place.

    Raises:
        EngineError: it has a template string, whose text and expressions cannot be told apart here.
    """
    parts: list[str] = []
    previous, position = "", 0
    package = False
    for kind, text, offset in _tokens(path, source):
        parts.append(source[position:offset])
        position = offset + len(text)
        if kind == "name" and previous == "package" and not package:
            package = True
            parts.append(f"{prefix}.{text}")
        elif kind == "name" and text == "data" and previous != ".":
            parts.append(f"data.{prefix}")
        else:
            parts.append(text)
        previous = text
    return "".join((*parts, source[position:]))


def _tokens(path: str, source: str) -> Iterator[tuple[str, str, int]]:
    """Kind, text and offset of what is neither space nor comment."""
    for token in _TOKEN.finditer(source):
        if token.lastgroup == "template":
            place = f"{path}:{source.count(chr(10), 0, token.start()) + 1}"
            raise EngineError("template strings are not supported", place=(place,), remedy="write it with `sprintf`")
        if token.lastgroup is not None and token.lastgroup != "space":
            yield token.lastgroup, token[0], token.start()
