"""What expressions work on: JSON values with parts that are not known, and what stands for those in names and ids."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from policyeng.sources.template_parameters import Unresolved

#: What all expressions of one document may make, in values and in 16 letters of text.
MAX_WORK = 500_000
#: How deep expressions, and variables and parameters in them, may lead into one another.
MAX_LEVELS = 80
#: How deep a value may be, as everywhere in documents.
MAX_VALUE_DEPTH = 128

#: What stands for a text is no longer; an ARM id is not either.
LONGEST_TEXT = 2_048

_LONGEST_STAND_IN = 100


class TooMuchError(Exception):
    """The expressions of a document make more than is taken; the text says what."""


class ExpressionBudget:
    """What the expressions of one document have made so far, and how deep they are."""

    def __init__(self) -> None:
        self.spent = 0
        self.level = 0

    def charge(self, amount: int) -> None:
        """Count what was made.

        Raises:
            TooMuchError: it is more than `MAX_WORK` in all.
        """
        self.spent += amount
        if self.spent > MAX_WORK:
            raise TooMuchError(f"the expressions of the document make more than {MAX_WORK} values")

    def weigh(self, value: object) -> None:
        """Count a whole value.

        Raises:
            TooMuchError: it is too much, or too deep.
        """
        waiting = [(value, 1)]
        while waiting:
            inner, depth = waiting.pop()
            self.charge(1 + len(inner) // 16 if isinstance(inner, str) else 1)
            if depth > MAX_VALUE_DEPTH:
                raise TooMuchError(f"an expression makes a value deeper than {MAX_VALUE_DEPTH} levels")
            if isinstance(inner, dict):
                waiting += [(entry, depth + 1) for entry in inner.values()]
            elif isinstance(inner, list):
                waiting += [(entry, depth + 1) for entry in inner]

    def deeper(self) -> None:
        """Go one level in; `level` is counted down again by who called.

        Raises:
            TooMuchError: it is too deep.
        """
        self.level += 1
        if self.level > MAX_LEVELS:
            raise TooMuchError(f"expressions, variables and parameters lead deeper than {MAX_LEVELS} levels")


def first_unresolved(value: object) -> Unresolved | None:
    """The first part of a value that is not known."""
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
    """What stands for a value in a text: itself, or its stand-in."""
    if isinstance(value, Unresolved):
        return value.text
    if isinstance(value, bool):
        return str(value)  # as .NET, which evaluates templates, writes it
    if isinstance(value, str | int | float):
        return str(value)
    held = first_unresolved(value)
    return held.text if held else f"{type(value).__name__}-{_digest(repr(value))}"


def stand_in(name: str, arguments: Sequence[object]) -> str:
    """One segment of an id that stands for a call: alike for alike calls, other for others."""
    return in_braces(f"{name}({','.join(_ending(text_of(argument)) for argument in arguments)})")


def _ending(text: str) -> str:
    """The last two segments of an id, which say enough in a stand-in; any other text as it is."""
    return "/".join(text.split("/")[-2:]) if text.startswith("/") else text


def in_braces(text: str) -> str:
    """A text as a stand-in: one segment, with braces around it and none inside."""
    inner = text.replace("{", "").replace("}", "").replace("/", "~")
    if len(inner) > _LONGEST_STAND_IN:
        inner = f"{inner[:_LONGEST_STAND_IN]}-{_digest(inner)}"
    return f"{{{inner}}}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
