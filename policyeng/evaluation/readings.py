"""What policies read of resources beside those they judge (`consults`), from the other end: who reads a change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from policyeng.bundle.header import Consulted
from policyeng.bundle.header_parts import WORKSPACE
from policyeng.evaluation.changing import Layout
from policyeng.evaluation.consulted import last_part, name_below, scope_of, with_above
from policyeng.evaluation.differences import Difference, tops_of
from policyeng.evaluation.estate import Subject
from policyeng.evaluation.pointers import unread, values_at
from policyeng.evaluation.rows import Row
from policyeng.facts.ids import covers
from policyeng.models import JsonObject, lowered


class Reading:
    """One entry of `consults`: which of the subjects that a policy judges read a resource that changes."""

    def __init__(self, layout: Layout, entry: Consulted, judged: Iterable[int]) -> None:
        self._layout, self._entry = layout, entry
        subjects = self._subjects = layout.prepared.estate.subjects
        kind = lowered(entry.judging)
        self._judged = [at for at in judged if kind in ("", subjects[at].judged_type)]
        #: The type of what is read; empty for any, and where something else leads there.
        self.kind = "" if entry.through[1:] else lowered(entry.type)
        self._kind = lowered(entry.type)
        self._own = tuple(at for at in (*entry.reads, entry.naming) if at.startswith("/"))
        self._through_workspace = tuple(at.removeprefix(WORKSPACE) for at in entry.reads if at.startswith(WORKSPACE))
        #: The first keys of all that it reads of a resource.
        self.tops = tops_of((*self._own, *self._through_workspace, *entry.through[1:]))

    def of(self, difference: Difference) -> Iterator[int]:
        """The positions of the subjects that read what differs, before or after it."""
        steps = self._entry.through[1:]
        if steps and difference.at(steps):
            yield from self._on_the_way(difference.row)
        for one in self._met(difference):
            yield from self._readers_of(one)

    def _met(self, difference: Difference) -> Iterator[Subject]:
        """What the entry reads of a row, before and after: itself, and what lies in it if it is a workspace."""
        row = difference.row
        sides = [side for side in (row.before, row.after) if side and self._kind in ("", side.judged_type)]
        if sides and difference.at(self._own):
            yield from sides
        if (
            self._through_workspace
            and (sides or row.key in self._layout.inside)
            and difference.at(self._through_workspace)
        ):
            inside = (self._subjects[at] for at in self._layout.inside.get(row.key, ()))
            yield from (subject for subject in (*inside, *sides) if self._kind in ("", subject.judged_type))

    def _readers_of(self, one: Subject) -> Iterator[int]:
        entry = self._entry
        if entry.through or entry.naming:
            named, anything = _named(one, entry.naming)
            yield from self._judged if anything else self._anything
            for name in named:
                yield from self._by_name.get(name, ())
        elif entry.within:
            for scope, judged in self._by_scope.items():
                if covers(scope, one.home) is not False:
                    yield from judged
        else:
            yield from self._judged

    def _on_the_way(self, row: Row) -> Iterator[int]:
        """The subjects that come by what a row changes on the way to what they read."""
        yield from self._anything
        for side in (row.before, row.after):
            if side is not None:
                yield from self._by_step.get(name_below(side.reported_id), ())

    @cached_property
    def _by_scope(self) -> Mapping[str, Sequence[int]]:
        """The subjects by the scope that counts for them."""
        found: dict[str, list[int]] = {}
        for at in self._judged:
            found.setdefault(scope_of(self._subjects[at], self._entry), []).append(at)
        return found

    @cached_property
    def _names(self) -> tuple[Mapping[str, Sequence[int]], Mapping[str, Sequence[int]], Sequence[int]]:
        """The subjects by what they name in the end and on the way there, and those that may name anything."""
        last, way, anything = dict[str, list[int]](), dict[str, list[int]](), list[int]()
        for at in self._judged:
            names, steps = self._names_of(self._subjects[at])
            if names is None:
                anything.append(at)
                continue
            for name in names:
                last.setdefault(name, []).append(at)
            for name in steps:
                way.setdefault(name, []).append(at)
        return last, way, anything

    @property
    def _by_name(self) -> Mapping[str, Sequence[int]]:
        return self._names[0]

    @property
    def _by_step(self) -> Mapping[str, Sequence[int]]:
        return self._names[1]

    @property
    def _anything(self) -> Sequence[int]:
        return self._names[2]

    def _names_of(self, subject: Subject) -> tuple[set[str] | None, set[str]]:
        """What a subject names, with what lies above it, None where that may be anything; and what on the way."""
        if not self._entry.through:
            return {name_below(str(subject.document.get("id")))}, set()
        first, *further = self._entry.through
        if first.startswith(WORKSPACE):
            subject = self._subjects[subject.workspace] if subject.workspace >= 0 else subject
        first = first.removeprefix(WORKSPACE)
        if _is_lost(subject, first):
            return None, set()
        named, way = _texts(subject.document, first), set[str]()
        for step in further:
            keys = {name_below(name) for name in named}
            way |= keys
            holders = [holder for key in keys for holder in self._layout.by_name.get(key, ())]
            if any(_is_lost(holder, step) for holder in holders):
                return None, way
            named = [text for holder in holders for text in _texts(holder.document, step)]
        return {above for name in named for above in with_above(name_below(name))}, way


def _texts(document: JsonObject, pointer: str) -> list[str]:
    return [value for value in values_at(document, pointer) if isinstance(value, str)]


def _named(subject: Subject, naming: str) -> tuple[set[str], bool]:
    """How a resource is called, or what it names at a pointer; and whether that may be anything."""
    names = _texts(subject.document, naming) if naming else [str(subject.document.get("id"))]
    anything = bool(naming) and _is_lost(subject, naming)
    return {spelled for name in names for spelled in (name_below(name), last_part(name))}, anything


def _is_lost(subject: Subject, pointer: str) -> bool:
    return any(True for _ in unread(subject.document, subject.unreadable, subject.carried, (pointer,)))
