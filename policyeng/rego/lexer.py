"""Rego text to tokens, as OPA's scanner reads it (v1/ast/internal/scanner of OPA 1.22).

Every pattern is a choice of classes without overlap, so reading takes linear time.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from policyeng.rego.errors import Diagnostic, ModuleText, RegoError

PARSE_ERROR = "rego_parse_error"


class RegoToken(NamedTuple):
    """A token.

    Attributes:
        kind: `name`, `number`, `string`, `raw string`, `template`, `template end`, `eof`, or the sign itself.
        text: as it is written.
        start, end: offsets in the text.
        spaced: white space or a comment comes before it.
        newline: that includes the end of a line.
    """

    kind: str
    text: str
    start: int
    end: int
    spaced: bool
    newline: bool


class Comment(NamedTuple):
    """A comment without its `#`, and the offset of the `#`."""

    text: str
    start: int


_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]++)
      | (?P<comment>\#[^\n]*+)
      | (?P<name>[A-Za-z_][A-Za-z_\d]*+)
      | (?P<number>[0-9]++(?:\.[0-9]*+)?+(?:[eE][+-]?+[0-9]*+)?+)
      | (?P<string>"(?:[^"\\\n]++|\\.)*+(?P<closed>")?+)
      | (?P<raw>`[^`]*+(?P<rawclosed>`)?+)
      | (?P<template>\$["`])
      | (?P<sign>:=|==|!=|<=|>=|[][{}(),:+\-*/%&|=<>;.])
    """,
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"[0-9]++(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+")
_LETTER = re.compile(r"[A-Za-z_]")
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_TEMPLATE = {
    '"': re.compile(r'(?:[^"\\\n{]++|\\[^\n])*+', re.DOTALL),
    "`": re.compile(r"(?:[^`\\{]++|\\\{|\\)*+", re.DOTALL),
}


def tokenize(source: ModuleText) -> tuple[list[RegoToken], list[Comment]]:
    """Split a module into tokens and comments.

    Raises:
        RegoError: a character or a literal that Rego does not have.
    """
    return _Lexer(source).run()


class _Lexer:
    def __init__(self, source: ModuleText) -> None:
        self.source, self.text = source, source.text
        self.tokens: list[RegoToken] = []
        self.comments: list[Comment] = []
        #: The quotes of the templates that are being read, and how many braces are open in the expression of each.
        self.quotes: list[str] = []
        self.braces: list[int] = []
        self.at = 1 if self.text.startswith("\ufeff") else 0
        self.spaced = self.newline = False

    def run(self) -> tuple[list[RegoToken], list[Comment]]:
        while self.at < len(self.text):
            match = _TOKEN.match(self.text, self.at)
            if match is None:
                raise self.error(*_unreadable(self.text[self.at]))
            self.take(match, match.lastgroup or "")
        self.add("eof", "", self.at)
        return self.tokens, self.comments

    def take(self, match: re.Match[str], kind: str) -> None:
        text, end = match[0], match.end()
        if kind == "space":
            self.spaced, self.newline, self.at = True, self.newline or "\n" in text, end
        elif kind == "comment":
            self.comments.append(Comment(text[1:].rstrip("\r"), self.at))
            self.spaced, self.at = True, end
        elif kind in ("string", "closed"):
            self.check_string(text, closed=match["closed"] is not None)
            self.add("string", text, end)
        elif kind in ("raw", "rawclosed"):
            if match["rawclosed"] is None:
                raise self.error("non-terminated string")
            self.add("raw string", text, end)
        elif kind == "template":
            self.quotes.append(text[1])
            self.braces.append(0)
            self.template_part(end)
        elif kind == "number":
            self.check_number(text, end)
            self.add("number", text, end)
        elif kind == "sign":
            self.sign(text, end)
        else:
            self.add(kind, text, end)

    def sign(self, text: str, end: int) -> None:
        """Add a sign; the brace that ends an expression of a template continues the template."""
        if self.quotes and text == "}" and self.braces[-1] == 0:
            self.add(text, text, end)
            self.template_part(end)
            return
        if self.quotes and text in "{}":
            self.braces[-1] += 1 if text == "{" else -1
        self.add(text, text, end)

    def template_part(self, start: int) -> None:
        """Add the text of a template up to its next expression, or to its end."""
        quote = self.quotes[-1]
        match = _TEMPLATE[quote].match(self.text, start)
        end = match.end() if match else start
        closing = self.text[end : end + 1]
        if closing not in (quote, "{") or not closing:
            raise self.error("non-terminated string")
        if quote == '"':
            self.check_escapes(self.text[start:end], start, "{")
        if closing == quote:
            self.quotes.pop()
            self.braces.pop()
        self.add(f"template{' end' if closing == quote else ''}", quote + self.text[start:end], end + 1)

    def check_string(self, text: str, *, closed: bool) -> None:
        if not closed:
            raise self.error("non-terminated string")
        self.check_escapes(text, self.at)

    def check_escapes(self, text: str, start: int, more: str = "") -> None:
        for escape in _ESCAPE.finditer(text):
            if not escape[1] or escape[1] not in '\\"/bfnrtu' + more:
                raise self.error("illegal escape sequence", start + escape.start())

    def check_number(self, text: str, end: int) -> None:
        match = _NUMBER.fullmatch(text)
        if match is None:
            raise self.error("expected exponent" if text.rstrip("+-")[-1] in "eE" else "expected fraction")
        if _LETTER.match(self.text, end):
            raise self.error("illegal number format")

    def add(self, kind: str, text: str, end: int) -> None:
        self.tokens.append(RegoToken(kind, text, self.at, end, self.spaced, self.newline))
        self.spaced = self.newline = False
        self.at = end

    def error(self, message: str, offset: int | None = None, *hints: str) -> RegoError:
        return RegoError(Diagnostic(PARSE_ERROR, message, self.source, self.at if offset is None else offset, hints))


def _unreadable(character: str) -> tuple[str, None, *tuple[str, ...]]:
    """Return the message for a character that no token begins with, and what to write instead."""
    match character:
        case "\0":
            return "illegal null character", None
        case "\xa0":
            return "illegal non-breaking space character, use a regular space instead", None
        case "\ufeff":
            return "illegal byte-order mark", None
        case "!":
            return "illegal ! character", None, "write `not` before a condition, and `!=` to compare"
        case "$":
            return "illegal $ character", None
        case "'":
            return "illegal token", None, "write a text in double quotes or backquotes"
    return "illegal token", None
