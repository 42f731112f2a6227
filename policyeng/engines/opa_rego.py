"""Rego for an OPA server: refuse what calls the host, and move a module to another path of `data`."""

from __future__ import annotations

from functools import lru_cache

from policyeng import _native
from policyeng.errors import EngineError
from policyeng.rego import RegoError, Source
from policyeng.rego.lexer import Token, tokenize

_HOST = frozenset(_native.HOST_BUILTINS)


@lru_cache(maxsize=1024)  # every snapshot asks it of the same modules
def require_pure(path: str, source: str) -> None:
    """Refuse a module that calls the host, as the embedded engine does.

    Raises:
        EngineError: it names such a builtin, or is not Rego.
    """
    chain = previous = ""
    for token in _tokens(path, source):
        if token.kind == "name":
            chain = f"{chain}.{token.text}" if previous == "." else token.text
        elif token.kind in ("string", "raw string") and previous == "[":
            chain = f"{chain}.{token.text[1:-1]}"
        elif token.kind not in {".", "[", "]", "("}:
            chain = ""
        # One word alone may be a name of the module's own; a call of it is not.
        if chain in _HOST and ("." in chain or (token.kind == "(" and previous == chain)):
            line, _ = Source(path, source).position(token.start)
            message = f"`{chain}` is not available to policies, which see their input and nothing else"
            raise EngineError(message, place=(f"{path}:{line}",))
        if token.kind == "(":
            chain = ""
        previous = token.text


def package_root(path: str, source: str) -> str:
    """Return the first part of a module's package.

    Raises:
        EngineError: it is not Rego.
    """
    first, *rest = _tokens(path, source)
    return rest[0].text if first.text == "package" else ""


def relocated(path: str, source: str, prefix: str) -> str:
    """Return a module with its package, and all that it names of `data`, below `prefix` (dotted); lines stay in place.

    Raises:
        EngineError: it is not Rego.
    """
    parts: list[str] = []
    position = 0
    previous = Token("", "", 0, 0, spaced=False, newline=False)
    package = False
    for token in _tokens(path, source):
        if token.kind == "name" and previous.text == "package" and not package:
            package = True
            parts += source[position : token.start], f"{prefix}.{token.text}"
            position = token.end
        elif token.kind == "name" and token.text == "data" and previous.kind != ".":
            parts += source[position : token.start], f"data.{prefix}"
            position = token.end
        previous = token
    return "".join((*parts, source[position:]))


def _tokens(path: str, source: str) -> list[Token]:
    try:
        return tokenize(Source(path, source))[0]
    except RegoError as error:
        fault = error.diagnostics[0]
        raise EngineError(fault.message, place=(f"{path}:{fault.line}",)) from None
