"""Record what an evaluation reads of its documents: values, missing keys, failed look-ups and sets of keys.

A document is wrapped when an evaluation begins; each part is wrapped when it is read. A wrapper passes for the
collection that it represents, as special collections do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from policyeng.rego import markers
from policyeng.rego.markers import MARKERS, SCALARS, Cause, Special, SpecialObject
from policyeng.rego.runtime import Members
from policyeng.rego.values import UNDEFINED, Value

Kind = Literal["value", "keys", "whole"]


class RecordedReads(NamedTuple):
    """What an evaluation has read.

    Attributes:
        document: its name: `input`, `data`, or as the caller names a part of them; `clock` for a comparison with the
            clock, whose pointer is the moment in microseconds.
        pointer: JSON Pointer within the document.
        kind: `value`: the scalar there, whether there is anything, or that it is a collection; `keys`: also which keys
            it has, or how many items; `whole`: everything in it.
    """

    document: str
    pointer: str
    kind: Kind


_Reads = dict[tuple[str, str, Kind], None]


class Recorder:
    """The reads of one evaluation after the other."""

    def __init__(self) -> None:
        """Begin with no reads."""
        self._names: Mapping[int, str] = {}
        self._read: _Reads = {}
        self._outer: list[tuple[Value, _Reads]] = []

    def begin(self, names: Mapping[int, str]) -> None:
        """Begin an evaluation.

        Args:
            names: names of documents by the identity of the object or array that is one.
        """
        self._names = names
        self._read = {}
        self._outer = []

    def end(self) -> None:
        """End an evaluation, which may have been broken off."""
        while self._outer:
            self.leave()

    def enter(self, key: Value) -> None:
        """Begin to record what a rule reads by itself."""
        if not self._outer or self._outer[-1][0] != key:
            self._outer.append((key, self._read))
            self._read = {}

    def add(self, reads: _Reads) -> None:
        """Record reads of a rule again."""
        self._read.update(reads)

    def leave(self) -> _Reads:
        """Return the reads of the rule, which those around it have, too."""
        found = self._read
        self._read = self._outer.pop()[1]
        self._read.update(found)
        return found

    def wrap(self, value: Value, document: str, pointer: str) -> Value:
        """Return a value as what records its reads."""
        kind = type(value)
        if kind in SCALARS or kind in MARKERS or value is UNDEFINED:
            return value
        if (name := self._names.get(id(value))) is not None:
            document, pointer = name, ""
        return _CLASSES[value.__class__](self, value, document, pointer)

    def read(self, document: str, pointer: str, kind: Kind) -> None:
        """Record a read."""
        self._read[document, pointer, kind] = None

    def note_moment(self, moment: int) -> None:
        """Record a comparison with the clock."""
        self.read("clock", str(moment), "value")

    @property
    def reads(self) -> list[RecordedReads]:
        """What has been read, each once, in its order."""
        return list(map(RecordedReads._make, self._read))


class RecordedCache(dict[Value, Any]):
    """The values of rules that do not depend on the input, with what they read, for all evaluations of a thread."""

    def __init__(self, recorder: Recorder) -> None:
        """Take what records."""
        super().__init__()
        self._recorder = recorder

    def get(self, key: Value, default: Value = None) -> Value:
        """Return a value, of which the reads count again, or begin to record them."""
        found = super().get(key)
        if found is None:
            self._recorder.enter(key)
            return default
        self._recorder.add(found[1])
        return found[0]

    def __setitem__(self, key: Value, value: Value) -> None:
        """Store a value as it is: what wraps it would record for an evaluation that is over."""
        value = strip(value)
        super().__setitem__(key, (value, self._recorder.leave()))


def escape(key: object) -> str:
    """Return a key as a part of a JSON Pointer."""
    text = key if type(key) is str else str(key)
    return text.replace("~", "~0").replace("/", "~1") if "~" in text or "/" in text else text


class _Recording(Special):
    """What both wrappers have in common; their own storage is empty."""

    __slots__ = ()

    _document: str
    _pointer: str
    _recorder: Recorder
    _value: Any

    def _read(self, kind: Kind) -> None:
        self._recorder.read(self._document, self._pointer, kind)

    def _part(self, key: Value, value: Value) -> Value:
        """Record the read of a part and return it."""
        pointer = f"{self._pointer}/{escape(key)}"
        self._recorder.read(self._document, pointer, "value")
        return value if type(value) in SCALARS else self._recorder.wrap(value, self._document, pointer)

    def __len__(self) -> int:
        self._read("keys")
        return len(self._value)

    def __bool__(self) -> bool:
        self._read("keys")
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return markers.equal(self, other)

    def __ne__(self, other: object) -> bool:
        return not markers.equal(self, other)

    def __hash__(self) -> int:
        raise TypeError("a recorded collection has no hash")

    def bounds(self) -> tuple[int, int | None, tuple[Cause, ...]]:
        self._read("keys")
        return markers.bounds_of(self._value)

    def plain(self) -> Value:
        self._read("whole")
        return markers.resolve(self._value)

    def strip(self) -> Value:
        """Return the value as it is, with its markers; all of it is read."""
        self._read("whole")
        return self._value


class RecordedObject(SpecialObject, _Recording, dict[Any, Any]):  # type: ignore[misc]  # neither has a hash
    """An object of which reads are recorded."""

    __slots__ = ("_document", "_pointer", "_recorder", "_value")

    __class__ = property(lambda _: dict)

    def __init__(self, recorder: Recorder, value: Value, document: str, pointer: str) -> None:
        """Take the object and its place."""
        self._recorder, self._value, self._document, self._pointer = recorder, value, document, pointer

    def get(self, key: Value, default: Value = None) -> Value:
        """Return a value or the default."""
        recorder = self._recorder
        pointer = f"{self._pointer}/{escape(key)}"
        recorder.read(self._document, pointer, "value")
        found = self._value.get(key, _MISSING)
        if found is _MISSING:
            return default
        return found if type(found) in SCALARS else recorder.wrap(found, self._document, pointer)

    def __iter__(self) -> Iterator[Value]:
        self._read("keys")
        return iter(self._value)

    keys = __iter__  # type: ignore[assignment]  # no view, as markers have it

    def items(self) -> Iterator[tuple[Value, Value]]:  # type: ignore[override]  # as above
        """Yield the entries."""
        self._read("keys")
        return ((key, self._part(key, value)) for key, value in self._value.items())

    def each(self) -> Iterator[tuple[Value, Value]]:
        """Yield the entries with those that may be absent."""
        self._read("keys")
        return ((key, self._part(key, value)) for key, value in markers.each_pair(self._value))

    def each_unread(self) -> Iterable[tuple[Value, Value]]:
        """Return the same for who looks at the keys only."""
        self._read("keys")
        return markers.each_pair(self._value)


class RecordedList(_Recording, list[Any]):  # type: ignore[misc]  # as above
    """An array of which reads are recorded."""

    __slots__ = ("_document", "_pointer", "_recorder", "_value")

    __class__ = property(lambda _: list)

    def __init__(self, recorder: Recorder, value: Value, document: str, pointer: str) -> None:
        """Take the array and its place."""
        self._recorder, self._value, self._document, self._pointer = recorder, value, document, pointer

    def __getitem__(self, index: Value) -> Value:
        if type(index) is slice:
            return self.plain()[index]
        self._recorder.read(self._document, f"{self._pointer}/{index}", "value")
        return self._part(index, self._value[index])

    def __iter__(self) -> Iterator[Value]:
        self._read("keys")
        return (self._part(index, value) for index, value in enumerate(self._value))

    def __contains__(self, value: object) -> bool:
        return markers.is_member(value, self)

    def each(self) -> Iterator[Value]:
        """Yield the items, with markers."""
        self._read("keys")
        return (self._part(index, value) for index, value in enumerate(markers.each_value(self._value)))


_MISSING = object()
_CLASSES: dict[type, Value] = {dict: RecordedObject, list: RecordedList}


def strip(value: Value) -> Value:
    """Return a result without wrappers; what it has of a document is read as a whole."""
    kind = type(value)
    if kind in SCALARS or kind in MARKERS:
        return value
    if isinstance(value, _Recording):
        return value.strip()
    if kind is dict:
        return {key: strip(item) for key, item in value.items()}
    if isinstance(value, markers.MarkedObject):
        return markers.MarkedObject({key: strip(item) for key, item in value.stored()}, value.open)
    if isinstance(value, markers.MarkedList):
        items, perhaps = map(strip, list.__iter__(value)), map(strip, value.perhaps)
        return markers.MarkedList(items, value.causes, perhaps, open_=value.open)
    if kind is list:
        return [strip(item) for item in value]
    if isinstance(value, Members):
        # Its class states whether there may be others.
        value[:] = [strip(item) for item in value]
    return value
