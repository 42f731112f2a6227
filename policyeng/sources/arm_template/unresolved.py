"""The values of expressions: JSON values with unresolved parts, and the stand-ins of these in names and ids."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from policyeng.sources.template_parameters import Unresolved

#: The budget for all expressions of one document, in values and in units of 16 characters of text.
MAX_WORK = 500_000
#: The maximum nesting of expressions, including the variables and parameters in them.
MAX_LEVELS = 80
#: The maximum depth of a value, as in all documents.
MAX_VALUE_DEPTH = 128

#: The maximum length of a stand-in for a text; ARM ids are not longer either.
LONGEST_TEXT = 2_048

_LONGEST_STAND_IN = 100


class TooMuchError(Exception):
    """The expressions of a document exceed a limit; the text states which one."""


class ExpressionBudget:
    """The work of the expressions of one document so far, and their current nesting."""

    def __init__(self) -> None:
        self.spent = 0
        self.level = 0

    def charge(self, amount: int) -> None:
        """Add an amount of work.

        Raises:
            TooMuchError: the total is more than `MAX_WORK`.
        """
        self.spent += amount
        if self.spent > MAX_WORK:
            raise TooMuchError(f"the expressions of the document produce more than {MAX_WORK} values")

    def weigh(self, value: object) -> None:
        """Add the size of a complete value.

        Raises:
            TooMuchError: the total is too much, or the value too deep.
        """
        waiting = [(value, 1)]
        while waiting:
            inner, depth = waiting.pop()
            self.charge(1 + len(inner) // 16 if isinstance(inner, str) else 1)
            if depth > MAX_VALUE_DEPTH:
                raise TooMuchError(f"an expression produces a value deeper than {MAX_VALUE_DEPTH} levels")
            if isinstance(inner, dict):
                waiting += [(entry, depth + 1) for entry in inner.values()]
            elif isinstance(inner, list):
                waiting += [(entry, depth + 1) for entry in inner]

    def deeper(self) -> None:
        """Enter one level; the caller decrements `level` again.

        Raises:
            TooMuchError: it is too deep.
        """
        self.level += 1
        if self.level > MAX_LEVELS:
            raise TooMuchError(f"expressions, variables and parameters are nested deeper than {MAX_LEVELS} levels")


def find_unresolved(value: object) -> Unresolved | None:
    """Return the first unresolved part of a value."""
    return next(_unresolved(value), None)


def _unresolved(value: object) -> Iterator[Unresolved]:
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, Unresolved):
            yield inner
        elif isinstance(inner, dict):
            waiting += reversed(inner.values())
        elif isinstance(inner, list):
            waiting += reversed(inner)


def text_of(value: object) -> str:
    """Return the text of a value, or its stand-in."""
    if isinstance(value, Unresolved):
        return value.text
    if isinstance(value, bool):
        return str(value)  # as in .NET, which evaluates templates
    if isinstance(value, str | int | float):
        return str(value)
    part = find_unresolved(value)
    return part.text if part else f"{type(value).__name__}-{_digest(repr(value))}"


def stand_in(name: str, arguments: Sequence[object]) -> str:
    """Return the stand-in for a call, as one segment of an id; equal calls have equal stand-ins."""
    return in_braces(f"{name}({','.join(_last_segments(text_of(argument)) for argument in arguments)})")


def _last_segments(text: str) -> str:
    """Return the last two segments of an id, which are enough in a stand-in; other text is unchanged."""
    return "/".join(text.split("/")[-2:]) if text.startswith("/") else text


def in_braces(text: str) -> str:
    """Return a text as a stand-in: one segment, with braces around it and none inside."""
    inner = text.replace("{", "").replace("}", "").replace("/", "~")
    if len(inner) > _LONGEST_STAND_IN:
        inner = f"{inner[:_LONGEST_STAND_IN]}-{_digest(inner)}"
    return f"{{{inner}}}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
