"""Builtins that match globs, in linear time."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from policyeng.rego.budget import charge
from policyeng.rego.builtins.regex import compile_pattern
from policyeng.rego.builtins.registry import BuiltinError, builtin, check_string, wrong_element, wrong_type
from policyeng.rego.values import Value

Ranges = tuple[tuple[int, int], ...]
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


@builtin("regex.globs_match")
def match_globs(left: Value, right: Value) -> Value:
    """Return whether a text exists that two globs of characters, sets, `.`, `+` and `*` match."""
    return intersect(check_string(1, left), check_string(2, right))


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


class _GlobToken(NamedTuple):
    """What one character may be, None for any, and how often: `""` once, `+` or `*`."""

    kind: str
    ranges: Ranges
    flag: str


def intersect(left: str, right: str) -> bool:
    """Return whether OPA finds a text that both globs match.

    Raises:
        BuiltinError: a glob is not valid.
    """
    trimmed = _trim(_simplify(_tokenize(left)), _simplify(_tokenize(right)))
    return trimmed is not None and _intersect(*trimmed)


def _tokenize(text: str) -> list[_GlobToken]:
    tokens: list[_GlobToken] = []
    place = 0
    while place < len(text):
        place, character, escaped = _next(text, place)
        kind = "character"
        ranges: Ranges = ((ord(character), ord(character)),)
        if not escaped:
            if character == ".":
                kind, ranges = "dot", ()
            elif character == "[":
                kind = "set"
                place, ranges = _read_set(text, place)
            elif character in "]+*":
                raise _refusal(text, place)
        flag = ""
        if place < len(text):
            following, character, escaped = _next(text, place)
            if not escaped and character in "+*":
                place, flag = following, character
        tokens.append(_GlobToken(kind, ranges, flag))
    return tokens


def _read_set(text: str, place: int) -> tuple[int, Ranges]:
    found: list[tuple[int, int]] = []
    previous = -1
    while place < len(text):
        place, character, escaped = _next(text, place)
        if escaped or character not in "-]":
            previous = ord(character)
            found.append((previous, previous))
        elif character == "]":
            return place, _join_ranges(found)
        else:
            if previous < 0 or place >= len(text) - 1:
                raise _refusal(text, place)
            place, character, escaped = _next(text, place)
            if (not escaped and character in "-]") or ord(character) < previous:
                raise _refusal(text, place)
            found.append((previous, ord(character)))
            previous = -1
    raise _refusal(text, place)


def _join_ranges(ranges: list[tuple[int, int]]) -> Ranges:
    """Return ranges in order that do not touch."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return tuple(joined)


def _next(text: str, place: int) -> tuple[int, str, bool]:
    if text[place] != "\\":
        return place + 1, text[place], False
    if place == len(text) - 1:
        raise _refusal(text, place)
    return place + 2, text[place + 1], True


def _refusal(text: str, place: int) -> BuiltinError:
    return BuiltinError(f"input:{text}, pos:{place}, the input provided is invalid")


def _simplify(tokens: list[_GlobToken]) -> list[_GlobToken]:
    simple = tokens[:1]
    for token in tokens[1:]:
        latest = simple[-1]
        if token.flag and latest.flag and token[:2] == latest[:2]:
            simple[-1] = latest._replace(flag="+" if "+" in (token.flag, latest.flag) else "*")
        else:
            simple.append(token)
    return simple


def _match(one: _GlobToken, other: _GlobToken) -> bool:
    if "dot" in (one.kind, other.kind):
        return True
    left, right = 0, 0
    while left < len(one.ranges) and right < len(other.ranges):
        low, high = one.ranges[left]
        other_low, other_high = other.ranges[right]
        if low <= other_high and other_low <= high:
            return True
        if high < other_high:
            left += 1
        else:
            right += 1
    return False


def _trim(left: list[_GlobToken], right: list[_GlobToken]) -> tuple[list[_GlobToken], list[_GlobToken]] | None:
    """Return the globs without what both match once at their ends; None where they do not match there."""
    first = 0
    while first < min(len(left), len(right)) and not left[first].flag and not right[first].flag:
        if not _match(left[first], right[first]):
            return None
        first += 1
    first = max(first - 1, 0)
    last, other = len(left) - 1, len(right) - 1
    while last >= first and other >= first and not left[last].flag and not right[other].flag:
        if not _match(left[last], right[other]):
            return None
        last, other = last - 1, other - 1
    if last < len(left) - 1:
        last, other = last + 1, other + 1
    return left[first : last + 1], right[first : other + 1]


def _intersect(left: list[_GlobToken], right: list[_GlobToken]) -> bool:
    """Return whether the globs have a text in common, as gintersect decides it by recursion.

    `normal` and `star` have its answers for the rests of both globs: the first of the two has the current token, which
    is of the left glob in the first table and of the right one in the second.
    """
    width = len(right) + 1
    below_normal, below_star = ([False] * width, [False] * width), ([False] * width, [False] * width)
    for i in range(len(left), -1, -1):
        charge(width)
        normal, star = ([False] * width, [False] * width), ([False] * width, [False] * width)
        for j in range(len(right), -1, -1):
            if i == len(left) or j == len(right):
                normal[0][j] = normal[1][j] = i == len(left) and j == len(right)
                star[0][j], star[1][j] = i + 1 == len(left), j + 1 == len(right)
                continue
            one, other = left[i], right[j]
            same = _match(one, other)
            star[0][j] = _go_on(
                same=same,
                stop=i + 1 < len(left) and _match(left[i + 1], other),
                rest=below_normal[0][j],
                following=star[0][j + 1],
            )
            star[1][j] = _go_on(
                same=same,
                stop=j + 1 < len(right) and _match(right[j + 1], one),
                rest=normal[1][j + 1],
                following=below_star[1][j],
            )
            if not one.flag and not other.flag:
                normal[0][j] = same and below_normal[0][j + 1]
                normal[1][j] = same and below_normal[1][j + 1]
                continue
            plus = (
                same and (star[0][j + 1] or (bool(other.flag) and below_normal[0][j])),
                same and (below_star[1][j] or (bool(one.flag) and normal[1][j + 1])),
            )
            repeated = (star[0][j] if one.flag == "*" else plus[0], star[1][j] if other.flag == "*" else plus[1])
            normal[0][j] = repeated[0] if one.flag else repeated[1]
            normal[1][j] = repeated[1] if other.flag else repeated[0]
        below_normal, below_star = normal, star
    return below_normal[0][0]


def _go_on(*, same: bool, stop: bool, rest: bool, following: bool) -> bool:
    """Return whether a repeated token can end before the next one of the other glob, or match it and go on."""
    return (stop and rest) or (same and following)
