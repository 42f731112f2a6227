"""The syntax of the expressions of ARM templates and of Azure Policy."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from policyeng.models import lowered

#: The maximum length of an expression in ARM.
MAX_LENGTH = 24_576
#: The maximum nesting of calls, members and indexes.
MAX_DEPTH = 40

#: Functions without arguments that may be written without parentheses.
_CONSTANTS = frozenset({"true", "false", "null"})

_TOKENS = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^']|'')*')
      | (?P<number>[+-]?[0-9]{1,19}(?:\.[0-9]{1,19})?)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>[()\[\],.])
    )""",
    re.VERBOSE,
)


class ExpressionError(ValueError):
    """An expression that is not valid; the text states what is wrong with it."""


class Literal(NamedTuple):
    """A string or a number."""

    value: str | int | float


class FunctionCall(NamedTuple):
    """A function call: the name in lower case and as written, and the arguments; user-defined names have a dot."""

    name: str
    written: str
    arguments: tuple[Node, ...]


class Member(NamedTuple):
    """A member of an object or an entry of a list."""

    holder: Node
    key: Node


Node = Literal | FunctionCall | Member


def is_expression(text: str) -> bool:
    """Check whether a text is an expression; `[[` at the beginning is an escaped bracket."""
    return text.startswith("[") and text.endswith("]") and not text.startswith("[[")


def plain(text: str) -> str:
    """Unescape a text that is not an expression."""
    return text[1:] if text.startswith("[[") and text.endswith("]") else text


@lru_cache(maxsize=4096)  # copy loops evaluate one expression many times
def parsed(text: str) -> Node:
    """Parse the expression in square brackets.

    Raises:
        ExpressionError: it is not valid, too long or too deep.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"it has more than {MAX_LENGTH} characters")
    parser = _ExpressionParser(text[1:-1])
    node = parser.node(0)
    parser.end()
    return node


class _ExpressionParser:
    """A recursive descent parser of the tokens."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def node(self, depth: int) -> Node:
        """Parse a term and the members accessed on it."""
        if depth > MAX_DEPTH:
            raise ExpressionError(f"it is nested deeper than {MAX_DEPTH} levels")
        node = self._term(depth)
        steps = 0
        while self._sees(".") or self._sees("["):
            steps += 1
            if depth + steps > MAX_DEPTH:
                raise ExpressionError(f"it is nested deeper than {MAX_DEPTH} levels")
            if self._taken() == ".":
                node = Member(node, Literal(self._name()))
            else:
                node = Member(node, self.node(depth + 1))
                self._expect("]")
        return node

    def end(self) -> None:
        """Check that no tokens are left."""
        if self._at < len(self._tokens):
            raise ExpressionError(f"`{self._tokens[self._at][1]}` is after the end of the expression")

    def _term(self, depth: int) -> Node:
        if self._at >= len(self._tokens):
            raise ExpressionError("it ends too early")
        kind, text = self._tokens[self._at]
        if kind == "text":
            self._at += 1
            return Literal(text[1:-1].replace("''", "'"))
        if kind == "number":
            self._at += 1
            return Literal(float(text) if "." in text else int(text))
        written = self._name()
        if lowered(written) in _CONSTANTS and not (self._sees("(") or self._sees(".")):
            return FunctionCall(lowered(written), written, ())
        while self._sees("."):
            self._at += 1
            written += f".{self._name()}"
        self._expect("(")
        return FunctionCall(written.lower(), written, self._arguments(depth))

    def _arguments(self, depth: int) -> tuple[Node, ...]:
        arguments: list[Node] = []
        while not self._sees(")"):
            if arguments:
                self._expect(",")
            arguments.append(self.node(depth + 1))
        self._at += 1
        return tuple(arguments)

    def _name(self) -> str:
        kind, text = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        if kind != "name":
            raise ExpressionError(f"a name is missing before `{text}`" if text else "it ends too early")
        return self._taken()

    def _taken(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _sees(self, sign: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at] == ("sign", sign)

    def _expect(self, sign: str) -> None:
        if not self._sees(sign):
            raise ExpressionError(f"`{sign}` is missing")
        self._at += 1


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        token = _TOKENS.match(text, at)
        if token is None or token.lastgroup is None:
            raise ExpressionError(f"`{text[at : at + 12].strip()}` is not part of an expression")
        tokens.append((token.lastgroup, token[token.lastgroup]))
        at = token.end()
    return tokens
