"""Edits of a source text at exact places, and what they do to a line."""

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
    """Other text in the place of the characters from `start` to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Mutation:
    """One fault: what kind it is, and the edits that make it, in the order of their places."""

    kind: str
    edits: tuple[TextEdit, ...]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A policy with one fault.

    Attributes:
        policy: its id.
        file: its file, as the bundle names it.
        kind: what was done, one of the kinds in `docs/mutation.md`.
        line: where, from 1.
        before: the text of the lines concerned, on one line.
        after: the same with the fault.
        source: the whole text with the fault.
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
    """The texts that a policy meets: those that stand at the same place in baselines and cases are one list."""

    standing: Sequence[Sequence[str]]

    def another(self, held: Iterable[str]) -> str | None:
        """A text that a set does not hold, of a place where one of its members stands; None when there is none.

        Of a set in lower case it is one in lower case: such sets are compared with what was folded.
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
    """A fault of a single edit."""
    return Mutation(kind, (TextEdit(start, end, text),))


def mutants(policy: str, file: str, source: str, mutations: Iterable[Mutation]) -> list[Mutant]:
    """The source with each of the faults, in the order of their places; equal texts once."""
    made: dict[str, Mutant] = {}
    for entry in sorted(mutations, key=lambda entry: (entry.edits, entry.kind)):
        text = _applied(source, entry.edits)
        if text != source and text not in made:
            line = source.count("\n", 0, entry.edits[0].start) + 1
            before, after = _shown(source, entry.edits)
            made[text] = Mutant(policy, file, entry.kind, line, before, after, text)
    return list(made.values())


def rank(*parts: object) -> str:
    """A number that follows from the parts and looks like chance: the same choice in every run."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


def without_member(spans: Sequence[tuple[int, int]], index: int) -> TextEdit:
    """Take one of the members of a list, which stand at these places, out with the comma beside it."""
    start, end = spans[index]
    if index + 1 < len(spans):
        return TextEdit(start, spans[index + 1][0], "")
    return TextEdit(spans[index - 1][1] if index else start, end, "")


def _applied(source: str, edits: Iterable[TextEdit]) -> str:
    for edit in sorted(edits, reverse=True):
        source = source[: edit.start] + edit.text + source[edit.end :]
    return source


def _shown(source: str, edits: Iterable[TextEdit]) -> tuple[str, str]:
    """The lines that the edits touch, before and after; edits of the same lines together."""
    before, after = [], []
    for (start, end), group in groupby(edits, key=lambda edit: _lines(source, edit)):
        moved = [TextEdit(edit.start - start, edit.end - start, edit.text) for edit in group]
        before.append(_plain(source[start:end]))
        after.append(_plain(_applied(source[start:end], moved)) or "(nothing)")
    return " ... ".join(before), " ... ".join(after)


def _lines(source: str, edit: TextEdit) -> tuple[int, int]:
    """Where the lines of an edit begin and end."""
    start = source.rfind("\n", 0, edit.start) + 1
    if start == edit.start < edit.end and source[edit.end - 1] == "\n":
        return start, edit.end  # whole lines
    end = source.find("\n", edit.end)
    return start, len(source) if end < 0 else end


def _plain(lines: str) -> str:
    return _SPACE.sub(" ", _COMMENT.sub("", lines)).strip()
