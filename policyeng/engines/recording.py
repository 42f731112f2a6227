"""Record what a Python policy reads from its input, in the form of `policyeng.rego.tracing`.

A recorded collection is not a subclass of `dict` or `list`. Functions in C therefore read it through its methods, or
reject it, and never see an empty collection.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping, MutableSequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, TypeVar

from policyeng.bundle import PolicyInput, SnapshotView
from policyeng.rego.markers import MARKERS, SCALARS
from policyeng.rego.tracing import Kind, Recorder, escape
from policyeng.rego.values import Value

_Value = TypeVar("_Value")
#: The pointer of the clock in the input.
CLOCK = "/as_of"
_MISSING = object()


class _Recorded:
    """A collection that records reads."""

    __slots__ = ("_document", "_names", "_pointer", "_recorder", "_value")

    def __init__(self, recorder: Recorder, names: Mapping[int, str], value: Value, document: str, pointer: str) -> None:
        """Store a collection, its place, and the names of documents by the `id()` of their objects."""
        self._recorder, self._names, self._value = recorder, names, value
        self._document, self._pointer = document, pointer

    def _read(self, kind: Kind) -> None:
        self._recorder.read(self._document, self._pointer, kind)

    def _part(self, key: object, value: Value) -> Value:
        """Record the read of a part and return it."""
        pointer = f"{self._pointer}/{escape(key)}"
        self._recorder.read(self._document, pointer, "value")
        return wrap(self._recorder, self._names, value, self._document, pointer)

    def __len__(self) -> int:
        self._read("keys")
        return len(self._value)

    def __bool__(self) -> bool:
        self._read("keys")
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return bool(self.whole() == _plain(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        return repr(self.whole())

    __hash__ = None  # type: ignore[assignment]  # as objects and lists have none

    def __or__(self, other: object) -> Value:
        return self.whole() | _plain(other)

    def __ror__(self, other: object) -> Value:
        return _plain(other) | self.whole()

    def __add__(self, other: object) -> Value:
        return self.whole() + _plain(other)

    def __radd__(self, other: object) -> Value:
        return _plain(other) + self.whole()

    def copy(self) -> Value:
        """Return a complete copy."""
        return self.whole().copy()

    def whole(self) -> Value:
        """Return the original collection, and record that all of it is read."""
        self._read("whole")
        return self._value


def _plain(value: Value) -> Value:
    return value.whole() if issubclass(type(value), _Recorded) else value


class _RecordedObject(_Recorded, MutableMapping[Any, Any]):
    """An object that records reads; it is read-only if the original is."""

    __slots__ = ()

    __class__ = property(lambda self: type(self._value))  # for `isinstance`
    __eq__ = _Recorded.__eq__

    def __getitem__(self, key: object) -> Value:
        pointer = f"{self._pointer}/{escape(key)}"
        self._recorder.read(self._document, pointer, "value")
        return wrap(self._recorder, self._names, self._value[key], self._document, pointer)

    def get(self, key: object, default: Value = None) -> Value:
        pointer = f"{self._pointer}/{escape(key)}"
        self._recorder.read(self._document, pointer, "value")
        found = self._value.get(key, _MISSING)
        return default if found is _MISSING else wrap(self._recorder, self._names, found, self._document, pointer)

    def __contains__(self, key: object) -> bool:
        self._recorder.read(self._document, f"{self._pointer}/{escape(key)}", "value")
        return key in self._value

    def __iter__(self) -> Iterator[Value]:
        self._read("keys")
        return iter(self._value)

    def known_keys(self) -> Iterator[Value]:
        """Yield the known keys, even if there can be others."""
        self._read("keys")
        return iter(getattr(self._value, "known_keys", self._value.keys)())

    def __setitem__(self, key: object, value: Value) -> None:
        self._value[key] = value

    def __delitem__(self, key: object) -> None:
        del self._value[key]


class _RecordedList(_Recorded, MutableSequence[Any]):
    """A list that records reads; it is read-only if the original is."""

    __slots__ = ()

    __class__ = property(lambda self: type(self._value))  # it passes for it
    __eq__ = _Recorded.__eq__

    def __getitem__(self, index: Value) -> Value:
        if type(index) is slice:
            return self.whole()[index]
        self._read("keys")
        return self._part(index, self._value[index])

    def __iter__(self) -> Iterator[Value]:
        self._read("keys")
        return (self._part(index, value) for index, value in enumerate(self._value))

    def known_items(self) -> Iterator[Value]:
        """Yield the known items, even if there can be others."""
        self._read("keys")
        items = getattr(self._value, "known_items", self._value.__iter__)()
        return (self._part(index, value) for index, value in enumerate(items))

    def __setitem__(self, index: Value, value: Value) -> None:
        self._value[index] = value

    def __delitem__(self, index: Value) -> None:
        del self._value[index]

    def insert(self, index: int, value: Value) -> None:
        self._value.insert(index, value)


def wrap(recorder: Recorder, names: Mapping[int, str], value: Value, document: str, pointer: str) -> Value:
    """Return a value in a form that records reads.

    Args:
        recorder: stores the reads.
        names: names of documents by the `id()` of their objects.
        value: a JSON value, which can have markers.
        document: the name of the document that contains the value.
        pointer: JSON Pointer within the document.
    """
    if type(value) in SCALARS or type(value) in MARKERS or not isinstance(value, dict | list | tuple):
        return value
    if (name := names.get(id(value))) is not None:
        document, pointer = name, ""
    made = _RecordedObject if isinstance(value, dict) else _RecordedList
    return made(recorder, names, value, document, pointer)


def plain(value: Value) -> Value:
    """Return the original of a recorded collection, and record that all of it is read.

    Raises:
        TypeError: the value is not a recorded collection.
    """
    if not issubclass(type(value), _Recorded):
        raise TypeError(f"{type(value).__name__} is not JSON")
    return value.whole()


@dataclass(frozen=True)
class RecordedView(SnapshotView):
    """A snapshot as policies see it that records reads; cached values are stored with their reads."""

    recorder: Recorder = field(default_factory=Recorder)
    names: Mapping[int, str] = field(default_factory=dict)
    _reads: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, view: SnapshotView, recorder: Recorder, names: Mapping[int, str]) -> RecordedView:
        """Record the reads of a view."""
        given = {member.name: getattr(view, member.name) for member in fields(SnapshotView) if member.init}
        wrapped = {name: wrap(recorder, names, value, "input", f"/snapshot/{name}") for name, value in given.items()}
        return cls(**wrapped, recorder=recorder, names=names)

    def wrap(self, value: Value, pointer: str) -> Value:
        """Return another part of the input, and record that it is read."""
        self.recorder.read("input", pointer, "value")
        return wrap(self.recorder, self.names, value, "input", pointer)

    def once(self, key: Hashable, make: Callable[[], _Value]) -> _Value:
        """Return a cached value as `SnapshotView.once` does; its reads count for every caller."""
        known = self._reads.get(key)
        if known is None:
            self.recorder.enter(key)
            try:
                value = make()
            finally:
                reads = self.recorder.leave()
            known = self._reads[key] = value, reads
        else:
            self.recorder.add(known[1])
        found: _Value = known[0]
        return found


class RecordedInput(PolicyInput):
    """The input of a Python policy with a recorded view; reads of the clock are recorded, too."""

    @property
    def as_of(self) -> datetime:
        """The clock of the evaluation."""
        if isinstance(self.snapshot, RecordedView):
            self.snapshot.recorder.read("input", CLOCK, "value")
        found: datetime = vars(self)["as_of"]
        return found

    @as_of.setter
    def as_of(self, value: datetime) -> None:
        vars(self)["as_of"] = value  # the constructor of a frozen dataclass sets its fields
