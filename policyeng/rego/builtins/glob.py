"""Builtins that match globs, in linear time."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from policyeng.rego.builtins.regex import compile_pattern
from policyeng.rego.builtins.registry import BuiltinError, builtin, check_string, wrong_element, wrong_type
from policyeng.rego.values import Value

#: Compiled globs that are kept.
_KEPT = 256
_SPECIAL = re.compile(r"[*?\\\[\]{}]")
_META = re.compile(r"[\\.+*?()|\[\]{}^$-]")


@builtin("glob.match")
def match_glob(pattern: Value, delimiters: Value, text: Value) -> Value:
    """Return whether a glob matches a text; `*` and `?` do not match the delimiters."""
    check_string(1, pattern)
    if type(delimiters) is list:
        for one in delimiters:
            if type(one) is not str:
                raise wrong_element(2, delimiters, one, "string")
            if len(one) != 1:
                raise wrong_element(2, delimiters, one, "rune")
        separators = "".join(delimiters) or "."
    elif delimiters is None:
        separators = ""
    else:
        raise wrong_type(2, delimiters, "array", "null")
    return bool(_compile(pattern, separators)(check_string(3, text)))


@builtin("glob.quote_meta")
def quote_glob(text: Value) -> Value:
    """Return a glob that matches only a text."""
    return _SPECIAL.sub(r"\\\g<0>", check_string(1, text))


@lru_cache(_KEPT)
def _compile(pattern: str, separators: str) -> Callable[[str], object]:
    return compile_pattern(f"(?s)^{_Translation(pattern, separators).translate()}$")


class _Translation:
    """Translates a glob to a pattern."""

    def __init__(self, pattern: str, separators: str) -> None:
        self._text = pattern
        self._place = 0
        self._single = f"[^{_quote(separators)}]" if separators else "."

    def translate(self) -> str:
        """Return the pattern."""
        parts: list[str] = []
        depth = 0
        while self._place < len(self._text):
            character = self._next()
            if character == "*":
                if self._text.startswith("*", self._place):
                    self._place += 1
                    self._add_star(parts, ".*")
                else:
                    self._add_star(parts, f"{self._single}*")
            elif character == "?":
                parts.append(self._single)
            elif character == "[":
                parts.append(self._class())
            elif character == "{":
                depth += 1
                parts.append("(?:")
            elif character == "," and depth:
                parts.append("|")
            elif character == "}" and depth:
                depth -= 1
                parts.append(")")
            else:
                parts.append(_quote(self._next() if character == "\\" else character))
        if depth:
            raise self._refusal("unclosed `{`")
        return "".join(parts)

    def _add_star(self, parts: list[str], star: str) -> None:
        """Add a star; of two in succession the more general one is enough."""
        if parts and parts[-1] in (".*", f"{self._single}*"):
            star = ".*" if ".*" in (star, parts.pop()) else star
        parts.append(star)

    def _next(self) -> str:
        if self._place >= len(self._text):
            raise self._refusal("unexpected end of input")
        self._place += 1
        return self._text[self._place - 1]

    def _class(self) -> str:
        """Read a class, in which a range is one only where its first character is followed by a dash."""
        negation = ""
        if self._text.startswith("!", self._place):
            self._place += 1
            negation = "^"
        first = self._next()
        if self._text.startswith("-", self._place):
            self._place += 1
            last = self._next()
            if last < first:
                raise self._refusal("range hi character is less than lo")
            inner = f"{_quote(first)}-{_quote(last)}"
        else:
            self._place -= 1
            inner = ""
            while not self._text.startswith("]", self._place):
                character = self._next()
                inner += _quote(self._next() if character == "\\" else character)
        if self._next() != "]" or not inner:
            raise self._refusal("could not parse range")
        return f"[{negation}{inner}]"

    def _refusal(self, reason: str) -> BuiltinError:
        offset = len(self._text[: self._place].encode())
        return BuiltinError(f"glob: syntax error at {offset}: {reason}")


def _quote(text: str) -> str:
    return _META.sub(r"\\\g<0>", text)
