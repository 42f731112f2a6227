r"""Patterns of RE2 that Python's `re` matches in linear time with the same meaning, which is several times quicker.

Only a small part of the syntax is read: literals, classes, `.`, `^` and `$` at the ends, `\b`, groups of alternatives
that are not repeated, and repeated classes. A pattern becomes a list of plain sequences, one for each choice of
alternatives. Each has to be such that no place of a text is tried again and again:

* Without `^`, every part has a fixed length, once what is repeated at the ends is reduced to its least number, which
  finds the same texts.
* With `^`, a repeated part is followed by what cannot begin with its characters, so that giving one back never helps;
  the last repeated part may be followed by anything of a fixed length.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

from policyeng.frozen import frozen, replace
from policyeng.later import lazy_pattern

_LAST = 0x10FFFF
_MOST_SEQUENCES = 64
_LONGEST = 256
_MOST_REPEATED = 1000
_DEEPEST = 20
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_COUNT = lazy_pattern(r"\{([0-9]{1,4})(,([0-9]{1,4})?)?\}")
#: What is a letter in another case only beyond ASCII.
_FOLDED = {"k": 0x212A, "s": 0x17F}

Ranges = tuple[tuple[int, int], ...]

_CLASSES: dict[str, Ranges] = {
    "d": ((48, 57),),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "s": ((9, 10), (12, 13), (32, 32)),
}


class _OtherSyntaxError(Exception):
    """A pattern beyond what is read here."""


@frozen
class _PatternPart:
    """A class of characters and how often it occurs, or a word boundary, which has no class.

    Attributes:
        most: None for any number.
    """

    ranges: Ranges | None
    least: int = 1
    most: int | None = 1

    @property
    def fixed(self) -> bool:
        return self.least == self.most


_Sequence = tuple[_PatternPart, ...]
_BOUNDARY = _PatternPart(None)


def translate(pattern: str) -> Callable[[str], object] | None:
    """Return a function whose result is true where a pattern matches anywhere in a text; None for RE2 to match it."""
    try:
        reader = _Reader(pattern)
        sequences = reader.read()
    except _OtherSyntaxError:
        return None
    if any(len(set(ends)) > 1 for ends in (reader.begins, reader.ends)):
        return None
    begins, ends = reader.begins[0], reader.ends[0]
    reduced = [_reduce(sequence, begins=begins, ends=ends) for sequence in sequences]
    linear = _is_anchored_linear if begins else _is_fixed
    if not all(linear(sequence) for sequence in reduced) or sum(map(_length, reduced)) > _LONGEST:
        return None
    text = "|".join("".join(map(_render, sequence)) for sequence in dict.fromkeys(reduced))
    compiled = re.compile(rf"(?:{text})\Z" if ends else text, re.ASCII)
    return compiled.match if begins else compiled.search


class _Reader:
    """Reads a pattern into its sequences.

    Attributes:
        begins: for each top alternative, whether it begins with `^`.
        ends: for each one, whether it ends with `$`.
    """

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._place = self._depth = 0
        self._fold = self._dot_all = False
        self.begins: list[bool] = []
        self.ends: list[bool] = []

    def read(self) -> list[_Sequence]:
        """Return the sequences of the whole pattern."""
        if flags := re.match(r"\(\?(i|s|is|si)\)", self._text):
            self._place = flags.end()
            self._fold, self._dot_all = "i" in flags[1], "s" in flags[1]
        found: list[_Sequence] = []
        while True:
            self.begins.append(self._take("^") or self._take("\\A"))
            found += self._sequences(top=True)
            self._limit(found)
            if not self._take("|"):
                break
        if self._place < len(self._text):
            raise _OtherSyntaxError
        return found

    def _take(self, text: str) -> bool:
        taken = self._text.startswith(text, self._place)
        self._place += len(text) if taken else 0
        return taken

    def _next(self) -> str:
        if self._place >= len(self._text):
            raise _OtherSyntaxError
        self._place += 1
        return self._text[self._place - 1]

    def _sequences(self, *, top: bool) -> list[_Sequence]:
        """Read one alternative."""
        parts: list[list[_Sequence]] = []
        count = 1
        while self._place < len(self._text) and self._text[self._place] not in "|)":
            if top and (self._take("$") or self._take("\\z")):
                if self._text[self._place : self._place + 1] not in ("", "|"):
                    raise _OtherSyntaxError
                self.ends.append(True)
                break
            parts.append(self._group() if self._take("(") else [(self._repeated(),)])
            count *= len(parts[-1])
            if count > _MOST_SEQUENCES:
                raise _OtherSyntaxError
        else:
            if top:
                self.ends.append(False)
        return [tuple(part for sequence in choice for part in sequence) for choice in product(*parts)]

    def _group(self) -> list[_Sequence]:
        self._depth += 1
        if self._depth > _DEEPEST or (self._take("?") and not self._take(":")):
            raise _OtherSyntaxError
        found = self._sequences(top=False)
        while self._take("|"):
            found += self._sequences(top=False)
            self._limit(found)
        if not self._take(")"):
            raise _OtherSyntaxError
        self._depth -= 1
        if self._take("?"):
            found = [*found, ()]
            self._limit(found)
        if self._text[self._place : self._place + 1] in ("*", "+", "?", "{"):
            raise _OtherSyntaxError
        return found

    def _limit(self, sequences: list[_Sequence]) -> None:
        if len(sequences) > _MOST_SEQUENCES or sum(map(len, sequences)) > _LONGEST:
            raise _OtherSyntaxError

    def _repeated(self) -> _PatternPart:
        part = _BOUNDARY if self._take("\\b") else _PatternPart(self._class())
        if self._text[self._place : self._place + 1] not in ("*", "+", "?", "{"):
            return part
        if part is _BOUNDARY:
            raise _OtherSyntaxError
        if self._take("*"):
            part = replace(part, least=0, most=None)
        elif self._take("+"):
            part = replace(part, most=None)
        elif self._take("?"):
            part = replace(part, least=0)
        else:
            count = _COUNT.match(self._text, self._place)
            if count is None:
                raise _OtherSyntaxError
            self._place = count.end()
            least = int(count[1])
            most = least if count[2] is None else int(count[3]) if count[3] else None
            if max(least, most or 0) > _MOST_REPEATED or (most is not None and most < least):
                raise _OtherSyntaxError
            part = replace(part, least=least, most=most)
        self._take("?")  # which texts match is the same
        if self._text[self._place : self._place + 1] in ("*", "+", "?", "{"):
            raise _OtherSyntaxError
        return part

    def _class(self) -> Ranges:
        character = self._next()
        if character == ".":
            return ((0, _LAST),) if self._dot_all else ((0, 9), (11, _LAST))
        if character == "[":
            return self._set()
        if character == "\\":
            return self._folded(self._escape())
        if character in "*+?{}^$|()]":
            raise _OtherSyntaxError
        return self._folded(((ord(character), ord(character)),))

    def _escape(self) -> Ranges:
        character = self._next()
        if character in _PUNCTUATION:
            return ((ord(character), ord(character)),)
        if character in _CONTROLS:
            return ((_CONTROLS[character], _CONTROLS[character]),)
        if character in _CLASSES:
            return _CLASSES[character]
        if character.lower() in _CLASSES and character.isascii():
            return _complement(_CLASSES[character.lower()])
        raise _OtherSyntaxError

    def _set(self) -> Ranges:
        negated = self._take("^")
        found: list[tuple[int, int]] = []
        while True:
            character = self._next()
            if character == "]" and found:
                break
            if character in "[]" or (character == "-" and found and not self._text.startswith("]", self._place)):
                raise _OtherSyntaxError
            ranges: Ranges = ((ord(character), ord(character)),)
            if character == "\\":
                ranges = self._escape()
                if len(ranges) > 1 or ranges[0][0] != ranges[0][1]:
                    found += self._folded(ranges)
                    if self._text.startswith("-", self._place):
                        raise _OtherSyntaxError
                    continue
            if self._text.startswith("-", self._place) and not self._text.startswith("-]", self._place):
                self._place += 1
                high = self._next()
                if high == "\\":
                    escaped = self._escape()
                    if len(escaped) > 1 or escaped[0][0] != escaped[0][1]:
                        raise _OtherSyntaxError
                    high = chr(escaped[0][0])
                elif high in "[]-":
                    raise _OtherSyntaxError
                if ord(high) < ranges[0][0]:
                    raise _OtherSyntaxError
                ranges = ((ranges[0][0], ord(high)),)
            found += self._folded(ranges)
        joined = join_ranges(found)
        return _complement(joined) if negated else joined

    def _folded(self, ranges: Ranges) -> Ranges:
        """Return a class with its letters in both cases if the pattern requires it."""
        if not self._fold:
            return ranges
        if ranges[-1][1] > 127:
            raise _OtherSyntaxError
        found = list(ranges)
        for low, high in ranges:
            for code in range(low, high + 1):
                letter = chr(code)
                if letter.isalpha():
                    found.append((ord(letter.swapcase()),) * 2)
                    if letter.lower() in _FOLDED:
                        found.append((_FOLDED[letter.lower()],) * 2)
        return join_ranges(found)


def join_ranges(ranges: list[tuple[int, int]]) -> Ranges:
    """Return ranges in order that do not touch."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return tuple(joined)


def _complement(ranges: Ranges) -> Ranges:
    found = []
    start = 0
    for low, high in ranges:
        if low > start:
            found.append((start, low - 1))
        start = high + 1
    if start <= _LAST:
        found.append((start, _LAST))
    return tuple(found)


def _overlap(one: Ranges, other: Ranges) -> bool:
    return any(low <= other_high and other_low <= high for low, high in one for other_low, other_high in other)


def _reduce(sequence: _Sequence, *, begins: bool, ends: bool) -> _Sequence:
    """Take the least number of what is repeated at an end without an anchor, and leave out what never occurs."""
    parts = [part for part in sequence if part.most != 0]
    for place, anchored in ((0, begins), (-1, ends)):
        while not anchored and parts and parts[place].ranges is not None and not parts[place].fixed:
            least = parts[place].least
            if least:
                parts[place] = replace(parts[place], most=least)
            else:
                del parts[place]
    return tuple(parts)


def _length(sequence: _Sequence) -> int:
    return sum(part.least for part in sequence) + len(sequence)


def _is_fixed(sequence: _Sequence) -> bool:
    return all(part.fixed for part in sequence)


def _is_anchored_linear(sequence: _Sequence) -> bool:
    # The last repeated part may give back characters to what has a fixed length.
    last = max((place for place, part in enumerate(sequence) if not part.fixed), default=0)
    for place, part in enumerate(sequence[:last]):
        if part.fixed or part.ranges is None:
            continue
        for following in sequence[place + 1 :]:
            if following.ranges is not None and _overlap(part.ranges, following.ranges):
                return False
            if following.ranges is not None and following.least:
                break
    return True


def _render(part: _PatternPart) -> str:
    if part.ranges is None:
        return r"\b"
    ranges, negation = part.ranges, ""
    if ranges == ((0, 9), (11, _LAST)):
        text = "."
    else:
        if ranges[-1][1] == _LAST and ranges != ((0, _LAST),):
            ranges, negation = _complement(ranges), "^"
        single = not negation and len(ranges) == 1 and ranges[0][0] == ranges[0][1]
        body = "".join(_escape(low) if low == high else f"{_escape(low)}-{_escape(high)}" for low, high in ranges)
        text = body if single else f"[{negation}{body}]"
    if (part.least, part.most) == (1, 1):
        return text
    most = "" if part.most is None else part.most
    quantifier = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((part.least, part.most))
    return text + (quantifier or f"{{{part.least},{most}}}")


def _escape(code: int) -> str:
    character = chr(code)
    return character if character.isascii() and character.isalnum() else f"\\U{code:08x}"
