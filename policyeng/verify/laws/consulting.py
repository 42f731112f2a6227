"""What a policy would lack of other resources, if some of their fields could not be read: `consults` of its header."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from policyeng.bundle.header import Consulted
from policyeng.bundle.header_parts import WORKSPACE
from policyeng.evaluation.consulted import last_part, name_below, scope_of, with_above
from policyeng.evaluation.estate import Subject
from policyeng.evaluation.pointers import unread, values_at
from policyeng.facts.ids import covers, folded_id, is_open, scopes_of
from policyeng.models import JsonObject, Unknown, lowered, made

#: No more unknowns than these come from one entry of `consults`: a thousand fields may be unread for one reason.
_MOST = 5


class _Gaps(NamedTuple):
    """What cannot be read of the resources of one entry, by position of the subject, and ways to find those.

    Attributes:
        by_name: what they are called, or what they name at `naming`.
        nameless: those whose `naming` cannot be read: each may name anything.
        by_scope: the subscriptions, resource groups and workspaces that they lie in.
        unplaced: those of which nobody says where they will lie.
    """

    unknowns: Mapping[int, Sequence[Unknown]]
    by_name: Mapping[str, Sequence[int]]
    nameless: Sequence[int]
    by_scope: Mapping[str, Sequence[int]]
    unplaced: Sequence[int]


class Neighbours:
    """The subjects of an estate, asked what a policy consults of them and cannot read."""

    def __init__(self, subjects: Sequence[Subject], unreadable: Iterable[int]) -> None:
        """Take the subjects and the positions of those of which not all can be read."""
        self._subjects = subjects
        self._unreadable = frozenset(unreadable)
        self._gaps: dict[int, _Gaps] = {}

    def telling(self, consults: Iterable[Consulted], parameters: JsonObject) -> tuple[Consulted, ...]:
        """Those of the entries of a header that are asked with these parameters, and of which something is unread.

        They live as long as this does.
        """
        asked = (one for one in consults if not one.parameter or bool(parameters.get(one.parameter)))
        return tuple(one for one in asked if len(one.through) > 1 or self._gaps_in(one).unknowns)

    def unknowns(self, telling: Iterable[Consulted], index: int) -> tuple[Unknown, ...]:
        """One unknown for every field that a policy consults when it judges a subject, and that cannot be read."""
        kind, found = self._subjects[index].judged_type, set[Unknown]()
        for consulted in telling:
            if lowered(consulted.judging) in ("", kind):
                found.update(self._unread(consulted, index))
        return tuple(sorted(found, key=lambda unknown: (unknown.path, unknown.msg)))

    def _unread(self, consulted: Consulted, index: int) -> Iterator[Unknown]:
        gaps = self._gaps_in(consulted)
        names, on_the_way = self._names(consulted, index)
        yield from islice(on_the_way, _MOST)
        near: Iterable[int] = gaps.unknowns
        if names is not None:
            near = (*(at for name in names for at in gaps.by_name.get(name, ())), *gaps.nameless)
        elif consulted.within:
            near = self._within(consulted, gaps, index)
        yield from islice((unknown for at in near if at != index for unknown in gaps.unknowns[at]), _MOST)

    def _gaps_in(self, consulted: Consulted) -> _Gaps:
        gaps = self._gaps.get(id(consulted))
        if gaps is None:
            gaps = self._gaps[id(consulted)] = self._gaps_of(consulted)
        return gaps

    def _gaps_of(self, consulted: Consulted) -> _Gaps:
        unknowns, by_name, by_scope = dict[int, list[Unknown]](), dict[str, list[int]](), dict[str, list[int]]()
        nameless, unplaced = list[int](), list[int]()
        for at in self._candidates(consulted):
            subject = self._subjects[at]
            found = list(self._of(subject, consulted))
            if not found:
                continue
            unknowns[at] = found
            named = [str(subject.document.get("id"))]
            if consulted.naming:
                named = [name for name in values_at(subject.document, consulted.naming) if isinstance(name, str)]
                if any(_missing(subject, [consulted.naming])):
                    nameless.append(at)
            for name in {spelled for one in named for spelled in (name_below(one), last_part(one))}:
                by_name.setdefault(name, []).append(at)
            for scope in scopes_of(subject.home):
                by_scope.setdefault(scope, []).append(at)
            if is_open(subject.home):
                unplaced.append(at)
        return _Gaps(unknowns, by_name, nameless, by_scope, unplaced)

    def _candidates(self, consulted: Consulted) -> Sequence[int]:
        """The positions of subjects of the type of which, or of whose workspaces, something may be unread."""
        own, through_workspace = self._partly
        by_type = through_workspace if any(at.startswith(WORKSPACE) for at in consulted.reads) else own
        return by_type.get(lowered(consulted.type), ())

    @cached_property
    def _partly(self) -> tuple[Mapping[str, Sequence[int]], Mapping[str, Sequence[int]]]:
        """By type, and all of them under the empty name: what cannot all be read, and what lies in such a workspace."""
        own: dict[str, list[int]] = {}
        with_workspace: dict[str, list[int]] = {}
        partly = self._unreadable
        for at in [at for at, one in enumerate(self._subjects) if at in partly or one.workspace in partly]:
            for kind in ("", self._subjects[at].judged_type):
                if at in partly:
                    own.setdefault(kind, []).append(at)
                with_workspace.setdefault(kind, []).append(at)
        return own, with_workspace

    def _of(self, subject: Subject, consulted: Consulted) -> Iterator[Unknown]:
        """What cannot be read of a subject and its workspace."""
        own = [pointer for pointer in (*consulted.reads, consulted.naming) if pointer.startswith("/")]
        yield from _missing(subject, own)
        if subject.workspace >= 0:
            further = [pointer.removeprefix(WORKSPACE) for pointer in consulted.reads if pointer not in own]
            yield from _missing(self._subjects[subject.workspace], further)

    def _names(self, consulted: Consulted, index: int) -> tuple[set[str] | None, list[Unknown]]:
        """What the judged subject names, with what lies above it; None where it may name anything.

        Also what cannot be read on the way there.
        """
        subject, lost = self._subjects[index], list[Unknown]()
        if not consulted.through:
            return ({name_below(str(subject.document.get("id")))} if consulted.naming else None), lost
        first, *further = consulted.through
        if first.startswith(WORKSPACE):
            subject = self._subjects[subject.workspace] if subject.workspace >= 0 else subject
        first = first.removeprefix(WORKSPACE)
        if any(_missing(subject, [first])):
            return None, lost
        named = [value for value in values_at(subject.document, first) if isinstance(value, str)]
        for step in further:
            holders = [self._subjects[at] for name in named for at in self._by_name.get(name_below(name), ())]
            lost += [unknown for holder in holders for unknown in _missing(holder, [step])]
            named = [value for one in holders for value in values_at(one.document, step) if isinstance(value, str)]
        return {above for name in named for above in with_above(name_below(name))}, lost

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = {}
        for at, subject in enumerate(self._subjects):
            if subject.judged_type not in ("workload", "approval", "document") and not subject.is_gap:
                found.setdefault(name_below(subject.reported_id), []).append(at)
        return found

    def _within(self, consulted: Consulted, gaps: _Gaps, index: int) -> Iterator[int]:
        """The positions of what lies, or may lie, in the scope that counts for a judged subject."""
        scope = scope_of(self._subjects[index], consulted)
        near: Iterable[int] = gaps.unknowns
        if not is_open(scope) and folded_id(scope) in scopes_of(scope):
            near = (*gaps.by_scope.get(folded_id(scope), ()), *gaps.unplaced)
        return (at for at in near if covers(scope, self._subjects[at].home) is not False)


def _missing(subject: Subject, pointers: Iterable[str]) -> Iterator[Unknown]:
    for path, reason in unread(subject.document, subject.unreadable, subject.carried, pointers):
        yield made(Unknown, msg=reason, path=f"{subject.reported_id}:{path}")
