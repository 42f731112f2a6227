"""Edits of a source text at exact places, and the lines that they change."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from policyeng.models import lowered

_COMMENT = re.compile(r"^[ \t]*#\s?", re.MULTILINE)
_SPACE = re.compile(r"\s+")


class TextEdit(NamedTuple):
    """A replacement of the characters from `start` to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Mutation:
    """One fault: its kind, and the edits that make it, in the order of their places."""

    kind: str
    edits: tuple[TextEdit, ...]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A policy with one fault.

    Attributes:
        policy: the id of the policy.
        file: the file of the policy, as in the bundle.
        kind: the kind of fault, one of those in `docs/mutation.md`.
        line: the line of the fault, from 1.
        before: the text of the changed lines, on one line.
        after: the same with the fault.
        source: the complete text with the fault.
    """

    policy: str
    file: str
    kind: str
    line: int
    before: str
    after: str
    source: str


@dataclass(frozen=True)
class Spoken:
    """The texts in baselines and cases, in one list per place."""

    standing: Sequence[Sequence[str]]

    def another(self, held: Iterable[str]) -> str | None:
        """Return a text that is not in a set but at the same place as one of its members; None if there is none.

        For a set in lower case it is in lower case, because such sets are compared with lower-case text.
        """
        members = sorted(held)
        own = set(map(lowered, members))
        others = {
            text
            for texts in self.standing
            if not own.isdisjoint(map(lowered, texts))
            for text in texts
            if lowered(text) not in own and (text == lowered(text) or own != set(members))
        }
        return min(sorted(others), key=lambda text: rank(*members, text), default=None)


def mutation(kind: str, start: int, end: int, text: str) -> Mutation:
    """Return a fault of a single edit."""
    return Mutation(kind, (TextEdit(start, end, text),))


def mutants(policy: str, file: str, source: str, mutations: Iterable[Mutation]) -> list[Mutant]:
    """Return the source with each of the faults, in the order of their places, without duplicates."""
    made: dict[str, Mutant] = {}
    for entry in sorted(mutations, key=lambda entry: (entry.edits, entry.kind)):
        text = _apply_edits(source, entry.edits)
        if text != source and text not in made:
            line = source.count("\n", 0, entry.edits[0].start) + 1
            before, after = _show_lines(source, entry.edits)
            made[text] = Mutant(policy, file, entry.kind, line, before, after, text)
    return list(made.values())


def rank(*parts: object) -> str:
    """Return a pseudorandom rank that depends only on the parts, so that every run makes the same choice."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


def without_member(spans: Sequence[tuple[int, int]], index: int) -> TextEdit:
    """Remove one of the members of a list, at these places, with the comma next to it."""
    start, end = spans[index]
    if index + 1 < len(spans):
        return TextEdit(start, spans[index + 1][0], "")
    return TextEdit(spans[index - 1][1] if index else start, end, "")


def _apply_edits(source: str, edits: Iterable[TextEdit]) -> str:
    for edit in sorted(edits, reverse=True):
        source = source[: edit.start] + edit.text + source[edit.end :]
    return source


def _show_lines(source: str, edits: Iterable[TextEdit]) -> tuple[str, str]:
    """Return the lines that the edits change, before and after; edits of the same lines together."""
    before, after = [], []
    for (start, end), group in groupby(edits, key=lambda edit: _lines(source, edit)):
        moved = [TextEdit(edit.start - start, edit.end - start, edit.text) for edit in group]
        before.append(_plain(source[start:end]))
        after.append(_plain(_apply_edits(source[start:end], moved)) or "(nothing)")
    return " ... ".join(before), " ... ".join(after)


def _lines(source: str, edit: TextEdit) -> tuple[int, int]:
    """Return the begin and the end of the lines of an edit."""
    start = source.rfind("\n", 0, edit.start) + 1
    if start == edit.start < edit.end and source[edit.end - 1] == "\n":
        return start, edit.end  # whole lines
    end = source.find("\n", edit.end)
    return start, len(source) if end < 0 else end


def _plain(lines: str) -> str:
    return _SPACE.sub(" ", _COMMENT.sub("", lines)).strip()
