"""What policies read of resources beside those they judge (`consults`), from the other end: who reads a change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
        reads = (at.removeprefix(WORKSPACE) for at in (*entry.reads, *filter(None, [entry.naming])))
        #: The first keys of all that it reads of a resource.
        self.tops = tops_of((*reads, *entry.through[1:]))

    def of(self, difference: Difference) -> Iterator[int]:
        """The positions of the subjects that read what differs, before or after it."""
        steps = self._entry.through[1:]
        if steps and (difference.is_read_otherwise or difference.at(steps)):
            yield from self._on_the_way(difference.row)
        inside = (self._subjects[at] for at in self._layout.inside.get(difference.row.key, ()))
        for one in met(self._entry, difference, inside):
            yield from self._readers_of(one)

    def _readers_of(self, one: Subject) -> Iterator[int]:
        entry = self._entry
        if entry.through or entry.naming:
            named, anything = named_by(one, entry.naming)
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
            subject = self._subjects[at]
            above = self._subjects[subject.workspace] if subject.workspace >= 0 else None
            names, steps = names_of(self._entry, subject, above, lambda key: self._layout.by_name.get(key, ()))
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


def met(entry: Consulted, difference: Difference, inside: Iterable[Subject]) -> Iterator[Subject]:
    """Return what an entry reads of a difference, before and after: the resource, and what lies in it as a workspace.

    Args:
        entry: of a policy.
        difference: of one resource.
        inside: what lies in that resource.
    """
    row, kind = difference.row, lowered(entry.type)
    sides = [side for side in (row.before, row.after) if side and kind in ("", side.judged_type)]
    if sides and (difference.is_read_otherwise or difference.at(own_pointers(entry))):
        yield from sides
    through_workspace = [at.removeprefix(WORKSPACE) for at in entry.reads if at.startswith(WORKSPACE)]
    if through_workspace and (difference.is_read_otherwise or difference.at(through_workspace)):
        yield from (subject for subject in (*inside, *sides) if kind in ("", subject.judged_type))


def own_pointers(entry: Consulted) -> tuple[str, ...]:
    """Return the pointers that an entry reads in the resource itself."""
    return tuple(at for at in (*entry.reads, entry.naming) if at.startswith("/"))


def names_of(
    entry: Consulted, subject: Subject, workspace: Subject | None, by_name: Callable[[str], Iterable[Subject]]
) -> tuple[set[str] | None, set[str]]:
    """Return what a subject names by `through`, with what lies above it, and what on the way there.

    Args:
        entry: of a policy that judges the subject.
        subject: what is judged.
        workspace: that of the subject.
        by_name: finds resources by `name_below` of their ids.

    Returns:
        the names, None where they may be any; and those of the resources on the way.
    """
    if not entry.through:
        return {name_below(str(subject.document.get("id")))}, set()
    first, *further = entry.through
    holder = workspace or subject if first.startswith(WORKSPACE) else subject
    first = first.removeprefix(WORKSPACE)
    if _is_lost(holder, first):
        return None, set()
    named, way = _texts(holder.document, first), set[str]()
    for step in further:
        keys = {name_below(name) for name in named}
        way |= keys
        holders = [found for key in keys for found in by_name(key)]
        if any(_is_lost(found, step) for found in holders):
            return None, way
        named = [text for found in holders for text in _texts(found.document, step)]
    return {above for name in named for above in with_above(name_below(name))}, way


def _texts(document: JsonObject, pointer: str) -> list[str]:
    return [value for value in values_at(document, pointer) if isinstance(value, str)]


def named_by(subject: Subject, naming: str) -> tuple[set[str], bool]:
    """How a resource is called, or what it names at a pointer; and whether that may be anything."""
    names = _texts(subject.document, naming) if naming else [str(subject.document.get("id"))]
    anything = bool(naming) and _is_lost(subject, naming)
    return {spelled for name in names for spelled in (name_below(name), last_part(name))}, anything


def _is_lost(subject: Subject, pointer: str) -> bool:
    return any(True for _ in unread(subject.document, subject.unreadable, subject.carried, (pointer,)))
