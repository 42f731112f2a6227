"""Values that are not known: markers in the input, and collections that may have more than they show.

An `UnknownValue` is a value that could not be read. Whatever touches it raises `Undecided`: its type, a comparison,
its truth, iteration, an attribute, a hash, a format. It may be stored and passed on. A `MarkedObject`, `MarkedList` or
`MarkedSet` has such values, or may have members that it does not show. It passes for a plain collection (`__class__`)
and raises only where the answer depends on what is not known.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any, NoReturn

from policyeng.rego import runtime, values
from policyeng.rego.values import UNDEFINED, Value, ValueKey, WrittenDecimal, WrittenFloat, from_key

#: The pointer and the reason of something that is not known.
Cause = tuple[str, str]
#: Where an operation of Python refuses a marker with an error of its own.
NEEDED: Cause = ("", "an operation needs a value that is not known")

SCALARS = frozenset((str, int, float, WrittenFloat, bool, type(None), Decimal, WrittenDecimal))
#: The types of values that are not known: `UnknownValue` and its subclasses.
MARKERS: set[type] = set()
_MISSING = object()


class _Met(threading.local):
    """What was undecided last in this thread."""

    causes: tuple[Cause, ...] = ()


MET = _Met()


class Undecided(BaseException):
    """Raised when a result depends on something unknown. It is not an `Exception`, which a Python policy could catch.

    Attributes:
        causes: what is not known.
    """

    def __init__(self, *causes: Cause) -> None:
        """Take plain data, because markers cannot even be compared."""
        super().__init__(*causes)
        self.causes = MET.causes = causes

    @property
    def pointer(self) -> str:
        """The place of the first cause."""
        return self.causes[0][0]

    @property
    def reason(self) -> str:
        """Why the first cause is not known."""
        return self.causes[0][1]

    def join(self, others: tuple[Cause, ...]) -> tuple[Cause, ...]:
        """Return causes with those of this one."""
        return (*others, *(cause for cause in self.causes if cause not in others))


class UnknownValue:
    """A value that could not be read."""

    __slots__ = ("_cause", "_may_lack")

    def __init_subclass__(cls) -> None:
        """Count another type among the markers."""
        MARKERS.add(cls)

    #: `isinstance`, and what the compiler writes for the type of a value, read it.
    __class__ = property(lambda marker: _touch(marker))

    def __init__(self, pointer: str, reason: str, *, may_lack: bool = False) -> None:
        """Take the place and the reason.

        Args:
            pointer: JSON Pointer of the value.
            reason: why it is not known.
            may_lack: there may be no value at all.
        """
        self._cause = (pointer, reason)
        self._may_lack = may_lack

    def __reduce__(self) -> tuple[type[UnknownValue], Cause]:
        """Stay a marker in another process."""
        return UnknownValue, self._cause

    def __copy__(self) -> UnknownValue:
        """Stay the same: nothing changes it."""
        return self

    def __deepcopy__(self, _: object) -> UnknownValue:
        """Stay the same."""
        return self


def _touch(marker: UnknownValue, *_: object, **__: object) -> NoReturn:
    raise Undecided(marker._cause)


MARKERS.add(UnknownValue)
#: The operations of Python that look at a value.
TOUCHED = (
    "abs add and bool bytes call ceil complex contains delitem divmod enter eq exit float floor floordiv format fspath "
    "ge getattr getitem gt hash iadd iand index int invert ior isub iter le len length_hint lshift lt matmul missing "
    "mod mul ne neg next or pos pow radd rand rdivmod repr reversed rfloordiv rlshift rmatmul rmod rmul ror round "
    "rpow rrshift rshift rsub rtruediv rxor setitem str sub truediv trunc xor"
)
for _name in TOUCHED.split():
    setattr(UnknownValue, f"__{_name}__", _touch)


class Count(UnknownValue):
    """The number of the members of a collection of which not all are known; a comparison may still be decided."""

    __slots__ = ("_least", "_most")

    def __init__(self, least: int, most: int | None, cause: Cause) -> None:
        """Take the bounds; `most` is None where there is no upper one."""
        super().__init__(*cause)
        self._least = least
        self._most = most

    __hash__ = UnknownValue.__hash__

    def __lt__(self, other: int) -> bool:
        """Compare the bounds."""
        return self._decide(self._most is not None and self._most < other, self._least >= other)

    def __le__(self, other: int) -> bool:
        """Compare the bounds."""
        return self._decide(self._most is not None and self._most <= other, self._least > other)

    def __gt__(self, other: int) -> bool:
        """Compare the bounds."""
        return not self.__le__(other)

    def __ge__(self, other: int) -> bool:
        """Compare the bounds."""
        return not self.__lt__(other)

    def __eq__(self, other: object) -> bool:
        """Compare the bounds."""
        if type(other) is not int:
            return _touch(self)
        return self._decide(False, other < self._least or (self._most is not None and other > self._most))

    def __ne__(self, other: object) -> bool:
        """Compare the bounds."""
        return not self.__eq__(other)

    def _decide(self, holds: bool, fails: bool) -> bool:
        if holds or fails:
            return holds
        _touch(self)


def cause_of(marker: UnknownValue) -> Cause:
    """Return the place and the reason of a marker."""
    return marker._cause


class Special:
    """A collection that represents another one; its methods define its content, its storage does not."""

    __slots__ = ()

    def plain(self) -> Value:
        """Return the plain collection.

        Raises:
            Undecided: a part of it is not known.
        """
        raise NotImplementedError

    def each(self) -> Iterator[Value]:
        """Yield the members, or the keys and values of an object, with the markers among them, then raise if open."""
        raise NotImplementedError

    def bounds(self) -> tuple[int, int | None, tuple[Cause, ...]]:
        """Return how many members there are at least and at most, and what is not known."""
        raise NotImplementedError

    def size(self) -> Value:
        """Return the number of members."""
        least, most, causes = self.bounds()
        return least if least == most else Count(least, most, causes[0])


class SpecialObject(Special):
    """A special collection that is an object; `get` and `items` define its content."""

    __slots__ = ()

    get: Callable[..., Value]
    items: Callable[..., Iterator[tuple[Value, Value]]]

    def __getitem__(self, key: Value) -> Value:
        """Return a value, or raise."""
        found = self.get(key, _MISSING)
        if found is _MISSING:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        """Return whether there is an entry, or raise."""
        return self.get(key, _MISSING) is not _MISSING

    def values(self) -> Iterator[Value]:
        """Yield the values that are there; raise at the end if there may be others."""
        return (value for _, value in self.items())


def _refuse(self: Value, *_: object) -> NoReturn:
    """Raise where a part may be unknown."""
    raise Undecided(*(self.bounds()[2] or deep_causes(self) or (("", "not known"),)))


def _keep(*_: object, **__: object) -> NoReturn:
    raise TypeError("a collection with markers is read-only")


def deep_causes(value: Value) -> tuple[Cause, ...]:
    """Return what is not known of a value, at any depth."""
    found: dict[Cause, None] = {}
    waiting = [value]
    while waiting:
        one = waiting.pop()
        kind = type(one)
        if kind in SCALARS or kind is ValueKey or kind is set:
            continue
        if kind in MARKERS:
            found[cause_of(one)] = None
            continue
        if isinstance(one, Special):
            found.update(dict.fromkeys(one.bounds()[2]))
        waiting += dict.values(one) if isinstance(one, dict) else list.__iter__(one) if isinstance(one, list) else ()
    return tuple(found)


class _MarkedCollection(Special):
    """What the three collections have in common."""

    __slots__ = ()

    def __len__(self) -> int:
        least, most, causes = self.bounds()
        if least != most:
            raise Undecided(*causes)
        return least

    def __bool__(self) -> bool:
        least, most, causes = self.bounds()
        if least == 0 and most != 0:
            raise Undecided(*causes)
        return least > 0

    def __eq__(self, other: object) -> bool:
        return equal(self, other)

    def __ne__(self, other: object) -> bool:
        return not equal(self, other)

    __hash__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __mul__ = __rmul__ = __or__ = __ror__ = __and__ = __rand__ = _refuse
    __sub__ = __rsub__ = __xor__ = __rxor__ = __reversed__ = __repr__ = __str__ = __format__ = _refuse
    copy = index = issubset = issuperset = union = intersection = difference = isdisjoint = _refuse
    __setitem__ = __delitem__ = __ior__ = __iadd__ = __imul__ = _keep
    append = clear = extend = insert = pop = popitem = remove = reverse = setdefault = sort = update = _keep


class MarkedObject(SpecialObject, _MarkedCollection, dict[Any, Any]):  # type: ignore[misc]  # what dict does not hash, raises
    """An object with markers among its values, whose entries may be absent, or that may have further entries.

    Attributes:
        open: why there may be further entries; empty if there are none.
    """

    __slots__ = ("open",)

    __class__ = property(lambda _: dict)

    def __init__(self, entries: Mapping[Value, Value], open_: tuple[Cause, ...] = ()) -> None:
        """Take the entries and why there may be more."""
        dict.__init__(self, entries)
        self.open = open_

    def __reduce__(self) -> tuple[Value, ...]:
        """Stay the same in a copy and in another process."""
        return MarkedObject, (dict(self.stored()), self.open)

    def stored(self) -> ItemsView[Value, Value]:
        """Return the entries with the markers among them; a subclass may make entries only when they are read."""
        return dict.items(self)

    def known_keys(self) -> Iterator[Value]:
        """Yield the existing keys, whether or not there may be others."""
        return iter(dict.keys(self))

    def get(self, key: Value, default: Value = None) -> Value:
        """Return a value or the default, or raise."""
        found = dict.get(self, key, _MISSING)
        if found is _MISSING:
            if self.open and (causes := self.lacks(key)):
                raise Undecided(*causes)
            return default
        if type(found) in MARKERS:
            _touch(found)
        return found

    def lacks(self, key: Value) -> tuple[Cause, ...]:  # noqa: ARG002  # a subclass may know of some keys
        """Return why there may be an entry under a key that shows none."""
        return self.open

    def __iter__(self) -> Iterator[Value]:
        """Yield the keys that are there, then raise."""
        return (key for key, _ in self.items())

    keys = __iter__  # type: ignore[assignment]  # raises at its end, as no view of dict does

    def items(self) -> Iterator[tuple[Value, Value]]:  # type: ignore[override]  # as above
        """Yield the entries that are there, then raise."""
        for key, value in self.stored():
            if type(value) not in MARKERS:
                yield key, value
        if causes := self.bounds()[2]:
            raise Undecided(*causes)

    def each(self) -> Iterator[tuple[Value, Value]]:
        """Yield the entries with those that may be absent, then raise if there may be others."""
        for key, value in self.stored():
            yield key, UnknownValue(*cause_of(value), may_lack=True) if type(value) in MARKERS else value
        if self.open:
            raise Undecided(*self.open)

    def bounds(self) -> tuple[int, int | None, tuple[Cause, ...]]:
        """Return how many entries there are."""
        markers = [value for _, value in self.stored() if type(value) in MARKERS]
        size = dict.__len__(self)
        return size - len(markers), None if self.open else size, (*self.open, *map(cause_of, markers))

    def plain(self) -> Value:
        """Return the plain object, or raise."""
        return {key: resolve(value) for key, value in self.items()}


class MarkedList(_MarkedCollection, list[Any]):  # type: ignore[misc]  # as above
    """An array with markers among its items, each of which exists, or that may have further items.

    Attributes:
        perhaps: items that may be there, in no order.
        causes: why they or others may be there; empty if this is not so.
        open: there may be others.
    """

    __slots__ = ("causes", "open", "perhaps")

    __class__ = property(lambda _: list)

    def __init__(
        self,
        items: Iterable[Value],
        causes: tuple[Cause, ...] = (),
        perhaps: Iterable[Value] = (),
        *,
        open_: bool = True,
    ) -> None:
        """Take the items and what may be there, too."""
        list.__init__(self, items)
        self.perhaps = list(perhaps)
        self.open = open_ and causes != ()
        self.causes = causes if self.open or self.perhaps else ()

    def __reduce__(self) -> tuple[Value, ...]:
        """Stay the same in a copy and in another process."""
        return MarkedList, (list(list.__iter__(self)), self.causes, self.perhaps)

    def __iter__(self) -> Iterator[Value]:
        """Yield the items that are known, then raise."""
        found = None
        for item in list.__iter__(self):
            if type(item) not in MARKERS:
                yield item
            else:
                found = found or item
        if self.causes or found is not None:
            raise Undecided(*self.causes, *([] if found is None else [cause_of(found)]))

    def known_items(self) -> Iterator[Value]:
        """Yield the items that are known, whether or not there may be others."""
        return (item for item in list.__iter__(self) if type(item) not in MARKERS)

    def each(self) -> Iterator[Value]:
        """Yield the items, then raise if there may be others."""
        yield from list.__iter__(self)
        if self.causes:
            raise Undecided(*self.causes)

    def __getitem__(self, index: Value) -> Value:
        """Return an item, or raise: what may be there, too, may be anywhere."""
        if self.causes:
            raise Undecided(*self.causes)
        found = list.__getitem__(self, index)
        if type(index) is slice:
            return MarkedList(found)
        if type(found) in MARKERS:
            _touch(found)
        return found

    def __contains__(self, value: object) -> bool:
        """Return whether an item is equal, or raise."""
        return is_member(value, self)

    def bounds(self) -> tuple[int, int | None, tuple[Cause, ...]]:
        """Return how many items there are."""
        size = list.__len__(self)
        return size, None if self.open else size + len(self.perhaps), self.causes

    def plain(self) -> Value:
        """Return the plain array, or raise."""
        return [resolve(item) for item in self]


class MarkedSet(_MarkedCollection, set[Any]):  # type: ignore[misc]  # as above
    """A set that may have further members.

    Attributes:
        perhaps: members that may be there, in the hashable form.
        causes: why they or others may be there.
        open: there may be others.
    """

    __slots__ = ("causes", "open", "perhaps")

    __class__ = property(lambda _: set)

    def __init__(
        self, keys: Iterable[Value], causes: tuple[Cause, ...], perhaps: Iterable[Value] = (), *, open_: bool = True
    ) -> None:
        """Take the members and what may be there, too."""
        set.__init__(self, keys)
        self.causes = causes
        self.perhaps = {key for key in perhaps if not set.__contains__(self, key)}
        self.open = open_

    def __iter__(self) -> Iterator[Value]:
        """Yield the members that are there, then raise."""
        yield from set.__iter__(self)
        if self.open or self.perhaps:
            raise Undecided(*self.causes)

    each = __iter__

    def __contains__(self, key: object) -> bool:
        """Return whether there is a member, or raise."""
        if set.__contains__(self, key):
            return True
        if self.open or key in self.perhaps:
            raise Undecided(*self.causes)
        return False

    def bounds(self) -> tuple[int, int | None, tuple[Cause, ...]]:
        """Return how many members there are."""
        size = set.__len__(self)
        most = None if self.open else size + len(self.perhaps)
        return size, most, self.causes if most != size else ()

    def plain(self) -> Value:
        """Return the plain set, or raise."""
        return set(iter(self))


def resolve(value: Value) -> Value:
    """Return a plain value: itself, or a copy without special collections.

    Raises:
        Undecided: a part of it is not known.
    """
    kind = type(value)
    if kind in SCALARS or kind is set or kind is ValueKey:
        return value
    if kind is list:
        if SCALARS.issuperset(map(type, value)):
            return value
        found = [resolve(item) for item in value]
        return value if all(one is other for one, other in zip(found, value, strict=True)) else found
    if kind is dict:
        if SCALARS.issuperset(map(type, value.values())):
            return value
        made = {key: resolve(item) for key, item in value.items()}
        return value if all(made[key] is item for key, item in value.items()) else made
    if kind in MARKERS:
        _touch(value)
    return value.plain() if isinstance(value, Special) else value


def show(value: Value) -> Value:
    """Return a value with what is not known written as `{"unknown": pointer}`, and without what may be there."""
    kind = type(value)
    if kind in MARKERS:
        return {"unknown": cause_of(value)[0]}
    if value is UNDEFINED:
        return value
    if isinstance(value, dict):
        return {key: show(item) for key, item in dict.items(value)}
    if isinstance(value, list):
        return [show(item) for item in list.__iter__(value)]
    return set(set.__iter__(value)) if isinstance(value, set) else value


def mark(document: Value, markers: Mapping[str, str], missing: Mapping[str, str] | None = None) -> Value:
    """Return a copy of a document with markers; what is not on the way to one is shared.

    Args:
        document: plain.
        markers: the reasons by JSON Pointers of values that are not known. The value of an object may be absent.
        missing: the reasons by JSON Pointers of objects and arrays that may lack members.

    Raises:
        KeyError: a pointer leads nowhere.
    """
    for cause in (missing or {}).items():
        document = _put(document, _parts(cause[0]), cause[0], partial(_open, cause))
    for cause in markers.items():
        document = _put(document, _parts(cause[0]), cause[0], partial(_hide, cause))
    return document


def _parts(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _hide(cause: Cause, _: Value) -> UnknownValue:
    return UnknownValue(*cause)


def _open(cause: Cause, found: Value) -> Value:
    if isinstance(found, dict):
        return MarkedObject(dict(dict.items(found)), (cause,))
    if isinstance(found, list):
        return MarkedList(list.__iter__(found), (cause,))
    raise KeyError(cause[0])


def _put(holder: Value, parts: list[str], pointer: str, change: Callable[[Value], Value]) -> Value:
    if not parts:
        return change(holder)
    key, *rest = parts
    if isinstance(holder, dict):
        before = dict.get(holder, key, _MISSING)
        if before is _MISSING and rest:
            raise KeyError(pointer)
        after = _put(before, rest, pointer, change)
        entries = {**dict(dict.items(holder)), key: after}
        if type(after) in MARKERS or type(holder) is MarkedObject:
            return MarkedObject(entries, holder.open if type(holder) is MarkedObject else ())
        return entries
    if isinstance(holder, list) and key.isdecimal() and int(key) < list.__len__(holder):
        items = list(list.__iter__(holder))
        items[int(key)] = after = _put(items[int(key)], rest, pointer, change)
        if type(after) in MARKERS or type(holder) is MarkedList:
            return MarkedList(items, holder.causes if type(holder) is MarkedList else ())
        return items
    raise KeyError(pointer)


# What compiled code calls.


def equal(left: Value, right: Value) -> bool:
    """Return whether two values are equal.

    Raises:
        Undecided: it depends on what is not known.
    """
    if type(left) is str:
        return bool(left == right)
    kind = left.__class__
    other = right.__class__
    if kind in SCALARS or other in SCALARS:
        return kind in SCALARS and other in SCALARS and values.equal(left, right)
    if kind is not other:
        return False
    if left is right:
        return True
    if kind is list:
        return _same_items(left, right)
    if kind is dict:
        return _same_entries(left, right)
    return _same_members(left, right)


def bounds_of(collection: Value) -> tuple[int, int | None, tuple[Cause, ...]]:
    """Return how many members a collection has at least and at most, and what is not known."""
    if isinstance(collection, Special):
        return collection.bounds()
    return len(collection), len(collection), ()


def _same_items(left: Value, right: Value) -> bool:
    least, most, causes = bounds_of(left)
    other_least, other_most, other_causes = bounds_of(right)
    if (most is not None and most < other_least) or (other_most is not None and other_most < least):
        return False
    if causes or other_causes:
        raise Undecided(*causes, *other_causes)
    return _all_equal(zip(each_value(left), each_value(right), strict=True))


def _all_equal(pairs: Iterable[tuple[Value, Value]]) -> bool:
    """Check whether all pairs are equal; one unequal pair decides, even if others are unknown."""
    why: tuple[Cause, ...] = ()
    for one, other in pairs:
        try:
            if not equal(one, other):
                return False
        except Undecided as error:
            why = error.join(why)
    if why:
        raise Undecided(*why)
    return True


def _same_entries(left: Value, right: Value) -> bool:
    why: tuple[Cause, ...] = ()
    for one, other in ((left, right), (right, left)):
        try:
            for key in one.keys():  # noqa: SIM118  # as special collections have it
                try:
                    if key not in other:
                        return False
                except Undecided as error:
                    why = error.join(why)
        except Undecided as error:
            why = error.join(why)

    def shared() -> Iterator[tuple[Value, Value]]:
        nonlocal why
        try:
            for key, value in left.items():
                try:
                    yield value, right.get(key, UNDEFINED)
                except Undecided as error:
                    why = error.join(why)
        except Undecided as error:
            why = error.join(why)

    try:
        if not _all_equal(shared()):
            return False
    except Undecided as error:
        why = error.join(why)
    if why:
        raise Undecided(*why)
    return True


def _same_members(left: Value, right: Value) -> bool:
    if not isinstance(left, Special) and not isinstance(right, Special):
        return bool(left == right)
    for one, other in ((left, right), (right, left)):
        others = other.perhaps if isinstance(other, MarkedSet) else ()
        if not (isinstance(other, MarkedSet) and other.open):
            shown = set.__iter__(one)
            if any(not set.__contains__(other, key) and key not in others for key in shown):
                return False
    if causes := (*bounds_of(left)[2], *bounds_of(right)[2]):
        raise Undecided(*causes)
    return True


def each_value(base: Value) -> Iterable[Value]:
    """Return what a loop over a collection binds, with markers; nothing for a scalar."""
    kind = type(base)
    if kind is list:
        return base  # type: ignore[no-any-return]  # a value has any type
    if kind is dict:
        return base.values()  # type: ignore[no-any-return]  # as above
    if kind is set:
        return map(from_key, base)
    if kind in SCALARS:
        return ()
    shown = base.__class__
    if shown is dict:
        return (value for _, value in base.each())
    return map(from_key, base.each()) if shown is set else base.each()


def each_pair(base: Value) -> Iterable[tuple[Value, Value]]:
    """Return keys and values of a collection, with markers; those of a set are its members."""
    kind = type(base)
    if kind is list:
        return enumerate(base)
    if kind is dict or kind is set:
        return runtime.pairs(base)
    if kind in SCALARS:
        return ()
    shown = base.__class__
    if shown is dict:
        return ((from_key(key), value) for key, value in base.each())
    if shown is set:
        return ((value, value) for value in map(from_key, base.each()))
    return _numbered(base)


def _numbered(base: Value) -> Iterator[tuple[Value, Value]]:
    causes = base.bounds()[2]
    for index, value in enumerate(base.each()):
        # What may be there, too, may be before any item.
        yield UnknownValue(*causes[0]) if causes else index, value


def is_member(value: Value, collection: Value) -> bool:
    """Return whether a value is among those of a collection."""
    kind = collection.__class__
    if kind is set:
        return to_key(value) in collection
    if type(value) is str and type(collection) is list:
        # The first marker ends this before an equal item after it is found.
        with suppress(Undecided):
            return value in collection
    if kind is not list and kind is not dict:
        return False
    why: tuple[Cause, ...] = ()
    try:
        for found in each_value(collection):
            try:
                if equal(value, found):
                    settle(found)
                    return True
            except Undecided as error:
                why = error.join(why)
    except Undecided as error:
        if isinstance(collection, MarkedList) and not collection.open:
            # Only what may be there is left.
            why = _join_possible(value, collection, why, error)
        else:
            why = error.join(why)
    if why:
        raise Undecided(*why)
    return False


def _join_possible(value: Value, collection: MarkedList, why: tuple[Cause, ...], error: Undecided) -> tuple[Cause, ...]:
    for found in collection.perhaps:
        try:
            if not equal(value, found):
                continue
        except Undecided:
            pass
        return error.join(why)
    return why


def settle(value: Value) -> None:
    """Raise for the value of an entry that may be absent: only if it exists, what was found with it counts."""
    if type(value) in MARKERS and value._may_lack:
        _touch(value)


def to_key(value: Value) -> Value:
    """Return the hashable form of a value."""
    return values.to_key(value if type(value) in SCALARS else resolve(value))


def make_partial(
    kind: type, found: Value, causes: tuple[Cause, ...], perhaps: list[Value], *, open_: bool
) -> _MarkedCollection:
    """Return a collection that may have further members.

    Args:
        kind: list, set or dict.
        found: the members that are there.
        causes: why there may be more.
        perhaps: what may be there; the keys of an object.
        open_: there may be others.
    """
    if kind is list:
        return MarkedList(found, causes, perhaps, open_=open_)
    if kind is set:
        keys = []
        for one in perhaps:
            try:
                keys.append(to_key(one))
            except Undecided:
                open_ = True
        return MarkedSet(found, causes, keys, open_=open_)
    entries = dict(found)
    for one in perhaps:
        try:
            entries.setdefault(to_key(one), UnknownValue(*causes[0]))
        except Undecided:
            open_ = True
    return MarkedObject(entries, causes if open_ else ())


def make_set_of(items: list[Value]) -> Value:
    """Return the set of some values; one that is not known makes it partial."""
    keys = set()
    why: tuple[Cause, ...] = ()
    for item in items:
        try:
            keys.add(to_key(item))
        except Undecided as error:
            why = error.join(why)
    return MarkedSet(keys, why) if why else keys
