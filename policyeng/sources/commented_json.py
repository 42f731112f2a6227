"""JSON as ARM takes it in templates: with comments, and with strings that go over several lines.

Source: https://learn.microsoft.com/azure/azure-resource-manager/templates/syntax#comments-and-metadata.
"""

from __future__ import annotations

import re

from policyeng.errors import InputError
from policyeng.strict.json_text import parse_json

#: A string, which is left as it is, or a comment; one that does not end goes to the end, so each byte is met once.
_STRINGS_AND_COMMENTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|//[^\n]*+|/\*(?:.*?\*/|.*+)', re.DOTALL)
_LINE_BREAK = re.compile(rb"\r?\n")


def parse_commented_json(content: bytes, file: str, *, max_bytes: int) -> tuple[object, bytes] | None:
    """Parse JSON with comments and strings of several lines.

    Returns:
        The value, and the same bytes with comments blanked, in which it is found by line and column; None when there
        is neither a comment nor such a string.

    Raises:
        InputError: it is not JSON without them either, with the line and column in `content`.
    """
    plain = _STRINGS_AND_COMMENTS.sub(_blanked, content)
    one_line = _STRINGS_AND_COMMENTS.sub(_on_one_line, plain)
    if one_line == content:
        return None
    try:
        return parse_json(one_line, file, max_bytes=max(max_bytes, len(one_line))), plain
    except InputError as error:
        raise _moved_back(error, file, plain) from None


def _blanked(part: re.Match[bytes]) -> bytes:
    """A comment as spaces, so that everything else keeps its line and column; one that does not end is none."""
    text = part[0]
    open_ended = text.startswith(b"/*") and (len(text) < len("/**/") or not text.endswith(b"*/"))
    return text if open_ended or text.startswith(b'"') else re.sub(rb"[^\r\n]", b" ", text)


def _on_one_line(part: re.Match[bytes]) -> bytes:
    return _LINE_BREAK.sub(rb"\\n", part[0])


def _moved_back(error: InputError, file: str, plain: bytes) -> InputError:
    """The error with the line and column that its place has where strings go over several lines."""
    line, column = (int(number) for number in error.place[0][len(file) + 1 :].split(":"))
    lines = _STRINGS_AND_COMMENTS.sub(lambda part: _LINE_BREAK.sub(b"\0", part[0]), plain).split(b"\n")
    pieces = lines[line - 1].decode(errors="replace").split("\0")
    line += sum(text.count(b"\0") for text in lines[: line - 1])
    for piece in pieces[:-1]:
        if column <= len(piece) + len("\\n"):
            break
        column -= len(piece) + len("\\n")
        line += 1
    return InputError(error.message, place=(f"{file}:{line}:{column}", *error.place[1:]), remedy=error.remedy)
