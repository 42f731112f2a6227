"""What of a resource is no longer the same after a change, asked by the JSON Pointers at which policies read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property, lru_cache

from policyeng.evaluation.estate import Subject
from policyeng.evaluation.pointers import keys_of, unread
from policyeng.evaluation.rows import Row
from policyeng.models import JsonObject, lowered

#: The keys that lead to a place.
_Path = tuple[str, ...]


class Difference:
    """What of a row is no longer the same; its documents are compared once, and only where they share no value."""

    def __init__(self, row: Row) -> None:
        self.row = row
        before, after = row.before, row.after
        #: Whether it is there no more, or is new, or is called otherwise.
        self.all = before is None or after is None or _called(before) != _called(after)
        #: Whether it stands in the same place of a file.
        self.stays = before is not None and after is not None and before.location == after.location

    def may_be_at(self, tops: Set[str]) -> bool:
        """Whether something may differ at pointers that begin with these keys, as `tops_of` gives them."""
        return self._whole or "" in tops or not tops.isdisjoint(self._tops)

    def at(self, pointers: Sequence[str]) -> bool:
        """Whether something may differ at one of some pointers, of which there may be none."""
        before, after = self.row.before, self.row.after
        if not pointers:
            return False
        if self.all or before is None or after is None:
            return True
        heads = _heads(tuple(pointers))
        if any(path[: len(head)] == head[: len(path)] for path in self._lowered for head in heads):
            return True
        return self._whole and _lost(before, pointers) != _lost(after, pointers)

    @cached_property
    def is_read_otherwise(self) -> bool:
        """Whether something else of it is not known: whoever looks at it may meet that."""
        before, after = self.row.before, self.row.after
        if before is None or after is None:
            return True
        return (before.unreadable, before.carried) != (after.unreadable, after.carried)

    @cached_property
    def _whole(self) -> bool:
        """Whether more may differ than the documents tell."""
        sides = [side for side in (self.row.before, self.row.after) if side is not None]
        return self.all or any(side.unreadable or side.carried for side in sides)

    @cached_property
    def _paths(self) -> Sequence[_Path]:
        before, after = self.row.before, self.row.after
        return tuple(_differing(before.document, after.document, ())) if before and after else ()

    def is_within(self, pointers: Iterable[str]) -> bool:
        """Whether it stays and differs at most at or below some pointers, spelled as there; none with `*` counts."""
        roots = [tuple(keys_of(pointer)) for pointer in pointers if "/*" not in pointer]
        return (
            self.stays
            and not self._whole
            and all(any(path[: len(root)] == root for root in roots) for path in self._paths)
        )

    @cached_property
    def _lowered(self) -> Sequence[_Path]:
        """The places in lower case: keys of tags have no case in Azure."""
        return [tuple(map(lowered, path)) for path in self._paths]

    @cached_property
    def _tops(self) -> frozenset[str]:
        return frozenset(path[0] for path in self._lowered)


def tops_of(pointers: Iterable[str]) -> frozenset[str]:
    """The first keys of pointers; the empty one of a pointer to everything."""
    return frozenset(head[0] if head else "" for head in _heads(tuple(pointers)))


@lru_cache(maxsize=1 << 12)
def _heads(pointers: tuple[str, ...]) -> tuple[_Path, ...]:
    """Pointers as paths in lower case, each up to its first `*`."""
    # Of `*` all members count: one that lacks what is read shows in no value.
    return tuple(tuple(map(lowered, keys_of(pointer.partition("/*")[0]))) for pointer in pointers)


def _differing(before: JsonObject, after: JsonObject, above: _Path) -> Iterator[_Path]:
    """The places where two objects hold something else; of lists nobody looks which member."""
    for key in {**before, **after}:
        one, other = before.get(key, _NOTHING), after.get(key, _NOTHING)
        if one is other:
            continue
        here = (*above, key)
        if isinstance(one, dict) and isinstance(other, dict):
            yield from _differing(one, other, here)
        elif not _same(one, other):
            yield here


_NOTHING = object()


def _same(one: object, other: object) -> bool:
    """Whether two JSON values are one; 1 and true are equal to Python, and so are 1 and 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    return one == other


def _called(subject: Subject) -> tuple[object, ...]:
    return subject.reported_id, subject.reported_type


def _lost(subject: Subject, pointers: Sequence[str]) -> list[tuple[str, str]]:
    return list(unread(subject.document, subject.unreadable, subject.carried, pointers))
