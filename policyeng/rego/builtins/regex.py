"""Builtins that match regular expressions of RE2, in linear time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from policyeng.rego.budget import charge
from policyeng.rego.builtins.registry import BuiltinError, UnsupportedError, builtin, check_integer, check_string
from policyeng.rego.values import Value

#: Compiled patterns that are kept.
_KEPT = 256
#: What RE2 reads and Go does not.
_NOT_OF_GO = re.compile(r"(?:[^\\]|\\[^C])*?\\C", re.DOTALL)
_META = re.compile(r"[\\.+*?()|\[\]{}^$]")
#: What RE2 says of the name of a class that it does not have.
_CLASS_FAULT = "class range: \\p"
#: Bytes of a character after its first one.
_INNER = frozenset(bytes((byte,)) for byte in range(0x80, 0xC0))
#: Matches that are found between two looks at the clock.
_BLOCK = 256

Span = tuple[int, int]
#: A pattern of RE2, whose library has no types.
_Compiled = Any


class _Piece(NamedTuple):
    """A part of a replacement: text, or what a group matched."""

    text: bytes
    group: int


@lru_cache(_KEPT)
def compile_pattern(pattern: str) -> Callable[[str], object]:
    """Compile a pattern to a function of a text whose result is true where the pattern matches anywhere in it.

    Raises:
        BuiltinError: it is not valid.
        UnsupportedError: it has a class of characters that only Go may have.
    """
    compiled = _compile(pattern, captures=False)
    if "\\B" in pattern:
        return lambda text: next(_find(compiled, text.encode(), 1), None)
    import re2

    match, anchor = compiled._regexp.Match, re2._Anchor.UNANCHORED  # three times as quick as `search`
    return lambda text: match(anchor, data := text.encode(), 0, len(data))[0][0] >= 0


@builtin("regex.is_valid")
def is_valid_pattern(pattern: Value) -> Value:
    """Return whether a value is a pattern."""
    if type(pattern) is not str:
        return False
    try:
        _compile(pattern)
    except BuiltinError:
        return False
    return True


@builtin("regex.match")
@builtin("re_match")
def match_pattern(pattern: Value, text: Value) -> Value:
    """Return whether a pattern matches anywhere in a text."""
    if type(pattern) is not str or type(text) is not str:
        check_string(1, pattern)
        check_string(2, text)
    return bool(compile_pattern(pattern)(text))


@builtin("regex.find_n")
def find_matches(pattern: Value, text: Value, count: Value) -> Value:
    """Return the first matches; all of them where the count is negative."""
    check_string(1, pattern)
    data = check_string(2, text).encode()
    limit = check_integer(3, count)
    return [data[start:end].decode() for (start, end), *_ in _find(_compile(pattern), data, limit)]


@builtin("regex.find_all_string_submatch_n")
def find_submatches(pattern: Value, text: Value, count: Value) -> Value:
    """Return the first matches with their groups; all of them where the count is negative."""
    check_string(1, pattern)
    data = check_string(2, text).encode()
    limit = check_integer(3, count)
    found = []
    for spans in _find(_compile(pattern), data, limit):
        charge(sum(end - start for start, end in spans) + len(spans))
        found.append(["" if start < 0 else data[start:end].decode() for start, end in spans])
    return found


@builtin("regex.split")
def split_by_pattern(pattern: Value, text: Value) -> Value:
    """Split a text where a pattern matches."""
    check_string(1, pattern)
    data = check_string(2, text).encode()
    compiled = _compile(pattern)
    if pattern and not data:
        return [""]
    parts = []
    begin = end = 0
    for spans in _find(compiled, data, -1):
        end, following = spans[0]
        if following:
            parts.append(data[begin:end].decode())
        begin = following
    if end != len(data):
        parts.append(data[begin:].decode())
    return parts


@builtin("regex.replace")
def replace_pattern(text: Value, pattern: Value, replacement: Value) -> Value:
    """Replace what a pattern matches; `$1` and `${name}` are groups."""
    data = check_string(1, text).encode()
    check_string(2, pattern)
    check_string(3, replacement)
    compiled = _compile(pattern)
    pieces = _split_replacement(replacement, compiled)
    done: list[bytes] = []
    last = 0
    for spans in _find(compiled, data, -1):
        start, end = spans[0]
        made = [data[last:start]]
        for piece in pieces:
            first, after = spans[piece.group] if piece.group >= 0 else (-1, -1)
            made += (piece.text, data[first:after] if first >= 0 else b"")
        charge(sum(map(len, made)))
        done += made
        last = end
    return b"".join((*done, data[last:])).decode()


@builtin("regex.template_match")
def match_template(template: Value, text: Value, start: Value, end: Value) -> Value:
    """Return whether a text is a template, whose patterns are between delimiters."""
    for position, operand in enumerate((template, text, start, end), 1):
        check_string(position, operand)
    for delimiter, name in ((start, "start"), (end, "end")):
        if len(delimiter.encode()) != 1:
            raise BuiltinError(
                f"{name} delimiter has to be exactly one character long but is {len(start.encode())} long"
            )
    return bool(compile_pattern(_template_pattern(template, start, end))(text))


@lru_cache(_KEPT)
def _compile(pattern: str, *, captures: bool = True) -> _Compiled:
    if _NOT_OF_GO.match(pattern):
        raise BuiltinError(f"error parsing regexp: invalid escape sequence: `\\C` in `{pattern}`")
    import re2

    options = re2.Options()
    options.log_errors = False
    # RE2 finds whether a pattern matches much sooner than where its groups do.
    options.never_capture = not captures
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        # Go also has long names of classes, and some more.
        refusal = UnsupportedError if _CLASS_FAULT in reason else BuiltinError
        raise refusal(f"error parsing regexp: {reason}") from None


def _find(compiled: _Compiled, data: bytes, limit: int) -> Iterator[list[Span]]:
    """Yield the spans of each match and its groups, in bytes, as Go finds them."""
    import re2

    match, anchor = compiled._regexp.Match, re2._Anchor.UNANCHORED  # others copy the text each time
    position, previous, found = 0, -1, 0
    while position <= len(data) and found != limit:
        spans = match(anchor, data, position, len(data))
        start, end = spans[0]
        if start < 0:
            return
        if data[start : start + 1] in _INNER:
            # RE2 takes the bytes of a character for no letters, so that `\B` matches between them.
            position = start + next(i for i in range(1, 4) if data[start + i : start + i + 1] not in _INNER)
            continue
        if end > position or start != previous:
            if found % _BLOCK == 0:
                charge(_BLOCK)
            found += 1
            yield spans
        previous = end
        position = end if end > position else position + _width(data, position)


def _width(data: bytes, position: int) -> int:
    """Return how many bytes a character has."""
    first = data[position] if position < len(data) else 0
    return 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


@lru_cache(_KEPT)
def _split_replacement(replacement: str, compiled: _Compiled) -> list[_Piece]:
    pieces: list[_Piece] = []
    names, groups = compiled.groupindex, compiled.groups
    before, *parts = replacement.split("$")
    dollar = False
    for part in parts:
        if dollar or not part:
            # `$$` is a dollar sign; the last one of a text is one, too.
            before += part if dollar else "$"
            dollar = not dollar
            continue
        name, rest = _split_name(part)
        if not name:
            before += f"${part}"
            continue
        number = names.get(name, -1)
        if name.isascii() and name.isdigit() and len(name) < 10:
            number = -1 if name[0] == "0" and len(name) > 1 else int(name)
        pieces.append(_Piece(before.encode(), number if number <= groups else -1))
        before = rest
    return [*pieces, _Piece(before.encode(), -1)]


def _split_name(text: str) -> tuple[str, str]:
    """Split the name of a group, which may be in braces, from what follows it; it is empty where there is none."""
    begin = end = 1 if text[0] == "{" else 0
    while end < len(text) and (text[end] == "_" or text[end].isalpha() or text[end].isdecimal()):
        end += 1
    after = end + begin
    return ("", "") if begin and text[end:after] != "}" else (text[begin:end], text[after:])


def _template_pattern(template: str, start: str, end: str) -> str:
    level = begin = last = 0
    parts = ["^"]
    for place, character in enumerate(template):
        if character == start:
            level += 1
            begin = place if level == 1 else begin
        elif character == end:
            level -= 1
            if level < 0:
                break
            if level == 0:
                inner = template[begin + 1 : place]
                _compile(f"^{inner}$")
                parts.append(f"{_quote(template[last:begin])}({inner})")
                last = place + 1
    if level:
        raise BuiltinError(f'unbalanced braces in "{template}"')
    return "".join((*parts, _quote(template[last:]), "$"))


def _quote(text: str) -> str:
    return _META.sub(r"\\\g<0>", text)
