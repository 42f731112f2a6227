"""Read one ARM resource without trusting its shape: every value is given, absent, or undecided with the reason."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache

from policyeng.frozen import frozen
from policyeng.models import Carried, JsonObject, lowered
from policyeng.named import NamedTuple
from policyeng.parsing.json_pointer import keys_of
from policyeng.workloads.resolved import ResolvedValue, undecided

Segments = tuple[str, ...]


@frozen
class Unreadable:
    """A part of a resource that its format could not carry: where, as written, and why."""

    parts: Segments
    reason: str


@frozen
class Said:
    """What a format can say about a resource, by folded segments, and why it says nothing else."""

    pointers: tuple[Segments, ...]
    reason: str

    def covers(self, path: Segments) -> bool:
        """Return whether the format can say what stands there, or something above or below it."""
        return any(
            all(left == right or "*" in (left, right) for left, right in zip(path, known, strict=False))
            for known in self.pointers
        )


_NO_GAPS: Mapping[Segments, Unreadable] = {}


class Reader(NamedTuple):
    """One object inside a resource, with what its format could not carry.

    Keys compare without case and underscores: templates write `ContainerResourceRequirements`, pipeline steps
    `default_compute`, and ARM takes both. An exact key goes first.

    Attributes:
        body: the resource, or an object inside it.
        unreadable: by the folded segments of the pointer from the resource's root.
        base: where `body` stands in the resource.
        carried: what its format can say at all; None where that is everything.
    """

    body: JsonObject
    unreadable: Mapping[Segments, Unreadable]
    base: Segments = ()
    carried: Said | None = None

    @property
    def id(self) -> str:
        """The ARM id of the resource as written, or the empty string."""
        arm_id = self.body.get("id")
        return arm_id if isinstance(arm_id, str) else ""

    def at(self, *path: str) -> ResolvedValue[object]:
        """Return the JSON value at `path`; null counts as absent."""
        here: object = self.body
        gaps = self.unreadable
        if gaps and (gap := gaps.get(_fold_keys(self.base))):
            return undecided(f"{self._pointer(())}: {gap.reason}")
        for depth, key in enumerate(path):
            if gaps and (gap := gaps.get(_fold_keys((*self.base, *path[: depth + 1])))):
                return undecided(f"{self._pointer(path[: depth + 1])}: {gap.reason}")
            if here is not None:
                if not isinstance(here, dict):
                    return undecided(f"{self._pointer(path[:depth])} is not an object")
                here = here[key] if key in here else _get_any_spelling(here, key)
        if here is None and self.carried is not None and not self.carried.covers(_fold_keys((*self.base, *path))):
            return undecided(f"{self._pointer(path)}: {self.carried.reason}")
        return ResolvedValue(here)

    def text(self, *path: str) -> ResolvedValue[str]:
        """Return the string at `path`, trimmed; a blank one counts as absent, any other type is undecided."""
        answer = self.at(*path)
        if isinstance(answer.value, str):
            return ResolvedValue(answer.value.strip() or None)
        return ResolvedValue(reason=self._refusal(answer, path, "a string"))

    def number(self, *path: str) -> ResolvedValue[float]:
        """Return the finite number at `path`, also if written as a string, as in examples of ARM."""
        answer = self.at(*path)
        value = answer.value
        if isinstance(value, str):
            value = _parsed(value.strip().strip('"'))
        if isinstance(value, int) and not isinstance(value, bool):
            return ResolvedValue(value)
        if isinstance(value, float) and math.isfinite(value):
            return ResolvedValue(value)
        return ResolvedValue(reason=self._refusal(answer, path, "a number"))

    def inside(self, *path: str) -> ResolvedValue[Reader]:
        """Return the object at `path`, to be read further."""
        answer = self.at(*path)
        if isinstance(answer.value, dict):
            return ResolvedValue(Reader(answer.value, self.unreadable, (*self.base, *path), self.carried))
        return ResolvedValue(reason=self._refusal(answer, path, "an object"))

    def each(self, *path: str) -> ResolvedValue[tuple[Reader, ...]]:
        """Return every object inside the object at `path`, in the order of its keys; none where it is absent."""
        parent = self.inside(*path)
        written = {_fold(key) for key in parent.value.body} if parent.value else set()
        for pointer, gap in self._below(*path):
            if pointer not in written:  # an object that is left out as a whole
                return undecided(f"`{pointer_to(*gap.parts)}`: {gap.reason}")
        if parent.value is None:
            return undecided(parent.reason) if parent.reason else ResolvedValue(())
        children = [parent.value.inside(key) for key in sorted(parent.value.body)]
        reason = next((child.reason for child in children if child.reason), "")
        return undecided(reason) if reason else ResolvedValue(tuple(child.value for child in children if child.value))

    def gaps_under(self, *path: str) -> Mapping[str, str]:
        """Reason by pointer, relative to `path`, of what is unreadable strictly below it, such as `/environment`."""
        depth = len(self.base) + len(path)
        return {pointer_to(*gap.parts[depth:]): gap.reason for _, gap in self._below(*path)}

    def lost_keys(self, *path: str) -> set[str]:
        """Return the keys of the object at `path` at or below which something is unreadable, as they are written."""
        depth = len(self.base) + len(path)
        return {gap.parts[depth] for _, gap in self._below(*path)}

    def _below(self, *path: str) -> Iterator[tuple[str, Unreadable]]:
        """Yield what is unreadable strictly below `path`, with the folded key below it that leads there."""
        top = _fold_keys((*self.base, *path))
        for pointer, gap in self.unreadable.items():
            if len(pointer) > len(top) and pointer[: len(top)] == top:
                yield pointer[len(top)], gap

    def _refusal(self, answer: ResolvedValue[object], path: Segments, wanted: str) -> str:
        return answer.reason if answer.value is None else f"{self._pointer(path)} is not {wanted}"

    def _pointer(self, path: Segments) -> str:
        return f"`{pointer_to(*self.base, *path)}`"


def reader(body: JsonObject, unreadable: Mapping[str, str], carried: Carried | None = None) -> Reader:
    """Return a reader of a whole resource; `unreadable` and `carried` are those of a snapshot."""
    gaps = [Unreadable(_parts(pointer), reason) for pointer, reason in sorted(unreadable.items())]
    said = None
    if carried is not None:
        said = Said(
            (("id",), ("type",), *(_fold_keys(_parts(pointer)) for pointer in carried.pointers)), carried.reason
        )
    return Reader(body, {_fold_keys(gap.parts): gap for gap in gaps} if gaps else _NO_GAPS, carried=said)


def _parts(pointer: str) -> Segments:
    return tuple(keys_of(pointer))


def pointer_to(*parts: str) -> str:
    """Return the JSON Pointer of these keys (RFC 6901)."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


def _fold_keys(parts: Segments) -> Segments:
    return tuple(_fold(part) for part in parts)


@lru_cache(maxsize=4096)  # documents use few keys, many times over
def _fold(key: str) -> str:
    return lowered(key).replace("_", "")


def _get_any_spelling(parent: JsonObject, key: str) -> object:
    """Return the value of the first key that is another spelling of one."""
    folded = _fold(key)
    alike = sorted([other for other in parent if _fold(other) == folded])
    return parent[alike[0]] if alike else None


def _parsed(text: str) -> float | None:
    """Return the number that a text writes in plain digits; a whole one that 64 bits do not hold is a float."""
    if not text.isascii() or "_" in text:  # which Python reads all the same
        return None
    for read in (int, float):
        try:
            number = read(text)
        except ValueError:
            continue
        if isinstance(number, float) or number.bit_length() < 64:
            return number
    return None
