"""What compiled rules call: look-ups, iteration, conflicts and modifiers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, repeat
from time import monotonic
from typing import Any

from policyeng.rego.budget import BUDGET, BudgetExceededError
from policyeng.rego.numbers import to_integer
from policyeng.rego.values import (
    UNDEFINED,
    Value,
    ValueKey,
    equal,
    from_key,
    is_number,
    make_set,
    members,
    number_text,
    ordered_keys,
    to_key,
    to_text,
)

#: Steps between two looks at the clock.
_STEPS = 10_000
#: Parts of a value that an evaluation makes.
_HEAVIEST = 500_000
#: Members of a list from which on they are found by keys, and lists of which the keys are kept.
FEWEST_JOINED = 8
_MOST_JOINED = 64
#: Texts, and characters of a text or members of a list, that are remembered of a function.
_MOST_REMEMBERED = 20_000
_LONGEST_REMEMBERED = 500
#: Characters of a value that an error repeats.
_LONGEST_SHOWN = 80


#: The types of values that have parts, as they are among the parts of another.
COLLECTIONS = frozenset((list, dict, set, ValueKey))


#: Of a rule that gives a value: what a conflict calls it, its file and its line.
Place = tuple[str, str, int]


class ConflictError(Exception):
    """Two values for what can have one."""

    code = "eval_conflict_error"

    def __init__(self, message: str, *values: tuple[Value, Place]) -> None:
        """Take the message, and the values with their places where they are known."""
        super().__init__(message)
        self.values = values

    def describe(self, names: Mapping[str, str]) -> str:
        """Return the message with the values and their places.

        Args:
            names: how files are called, where it is not as compiled.
        """
        shown = [f"{_shorten(value)} at {names.get(file, file)}:{line}" for value, (_, file, line) in self.values]
        return f"{self}: {', '.join(shown)}" if shown else str(self)


def _shorten(value: Value) -> str:
    text = to_text(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def look_up(base: Value, path: tuple[str | int, ...]) -> Value:
    """Follow constant strings and indices into a value of any type."""
    for part in path:
        base = item(base, part)
    return base


def item(base: Value, key: Value) -> Value:
    """Return the item of an object or array, or the member of a set, else `UNDEFINED`."""
    kind = type(base)
    if kind is dict:
        return base.get(key if type(key) is str else to_key(key), UNDEFINED)
    if kind is list:
        if type(key) is not int:
            if not is_number(key):
                return UNDEFINED
            index = to_integer(key)
            if index is None:
                return UNDEFINED
            key = index
        return base[key] if 0 <= key < len(base) else UNDEFINED
    if kind is set and to_key(key) in base:
        return key
    return UNDEFINED


def values(base: Value) -> Iterable[Value]:
    """Return what a loop over a collection binds; nothing for a scalar."""
    kind = type(base)
    if kind is list:
        return base  # type: ignore[no-any-return]  # a value has any type
    if kind is dict:
        return base.values()  # type: ignore[no-any-return]  # a value has any type
    return map(from_key, base) if kind is set else ()


def ordered_values(base: Value) -> Iterable[Value]:
    """Return the same in the order of the keys."""
    if type(base) is set:
        return members(base)
    if type(base) is dict:
        keys = ordered_keys(base)
        # Most objects are in order already.
        return base.values() if keys == list(base) else [base[key] for key in keys]
    return values(base)


def pairs(base: Value) -> Iterable[tuple[Value, Value]]:
    """Return keys and values of a collection; those of a set are its members."""
    kind = type(base)
    if kind is list:
        return enumerate(base)
    if kind is dict:
        if ValueKey in map(type, base):
            return [(from_key(key), value) for key, value in base.items()]
        return base.items()  # type: ignore[no-any-return]  # a value has any type
    if kind is set:
        return [(value, value) for value in map(from_key, base)]
    return ()


def ordered_pairs(base: Value) -> Iterable[tuple[Value, Value]]:
    """Return the same in the order of the keys."""
    if type(base) is dict:
        keys = ordered_keys(base)
        if keys and type(keys[0]) is str and type(keys[-1]) is str:
            return base.items() if keys == list(base) else [(key, base[key]) for key in keys]
        return [(from_key(key), base[key]) for key in keys]
    if type(base) is set:
        return [(value, value) for value in members(base)]
    return pairs(base)


def is_member(value: Value, collection: Value) -> bool:
    """Return whether a value is among those of a collection."""
    kind = type(collection)
    if kind is set:
        return to_key(value) in collection
    if kind is list:
        if type(value) is str:
            return value in collection
        return any(equal(value, found) for found in collection)
    return kind is dict and any(equal(value, found) for found in collection.values())


def is_pair(key: Value, value: Value, collection: Value) -> bool:
    """Return whether a collection has a value at a key."""
    found = item(collection, key)
    return found is not UNDEFINED and equal(found, value)


def is_collection(value: Value) -> bool:
    """Return whether a value has members."""
    return type(value) in (list, dict, set)


def agree(first: Value, second: Value, place: Place, other: Place) -> None:
    """Check that a complete rule or function has one value.

    Args:
        first: its value so far.
        second: another one.
        place: where the first comes from.
        other: where the second comes from.

    Raises:
        ConflictError: the values differ.
    """
    if not equal(first, second):
        raise ConflictError(f"{place[0]} produced conflicting values", (first, place), (second, other))


def put(found: dict[Value, Value], key: Value, value: Value) -> None:
    """Add an item to an object.

    Raises:
        ConflictError: it has another value for the key.
    """
    place = key if type(key) is str else to_key(key)
    before = found.get(place, UNDEFINED)
    if before is UNDEFINED:
        found[place] = value
    elif not equal(before, value):
        message = f"object keys must be unique: {_shorten(key)} has the values {_shorten(before)} and {_shorten(value)}"
        raise ConflictError(message)


class Members(list[Any]):
    """What rules contribute to a set, in no order; a member may be there twice."""

    __slots__ = ()

    def sort_out(self) -> list[Value]:
        """Return the members of the set in their order."""
        return members(make_set(self)) if len(self) > 1 else list(self)


class Level(dict[Any, Any]):
    """An object that rules with references in their heads build together, as opposed to the value of one of them."""

    __slots__ = ()


def put_at(found: Level, path: tuple[Value, ...], value: Value) -> None:
    """Add the value of a rule below a path of keys.

    Raises:
        ConflictError: there is another value.
    """
    put(_level(found, path[:-1]), path[-1], value)


def add_at(found: Level, path: tuple[Value, ...], *added: Value) -> None:
    """Add members to the set below a path of keys.

    Raises:
        ConflictError: it already has another value.
    """
    collected = _level(found, path[:-1]).setdefault(to_key(path[-1]), set())
    if type(collected) is not set:
        raise ConflictError("object keys must be unique")
    collected.update(map(to_key, added))


def _level(found: Level, path: tuple[Value, ...]) -> Level:
    for key in path:
        below = found.setdefault(to_key(key), Level())
        if type(below) is not Level:
            raise ConflictError("object keys must be unique")
        found = below
    return found


def join(found: Level, name: str, value: Value) -> None:
    """Add what the rules below a name define to what rules with variables in their heads define.

    Raises:
        ConflictError: both define another value.
    """
    before = found.get(name, UNDEFINED)
    if type(before) is Level and type(value) is Level:
        for key, below in value.items():
            join(before, key, below)
    elif type(before) is set and type(value) is set:
        found[name] = before | value
    elif type(before) is Level or (type(value) is Level and before is not UNDEFINED):
        raise ConflictError("object keys must be unique")
    else:
        put(found, name, value)


def finish(found: Value, base: Value) -> Value:
    """Return what rules define as a plain object, with base data, which wins where both have a value."""
    if type(found) is Level:
        found = {key: finish(below, UNDEFINED) for key, below in found.items()}
    if base is UNDEFINED:
        return found
    if type(base) is not dict or type(found) is not dict:
        return base
    return {**found, **{key: finish(found[key], below) if key in found else below for key, below in base.items()}}


def data_item(base: Value, key: Value) -> Value:
    """Return an item of base data, whose keys are strings: a number is its text there, and an index may be a text."""
    if type(base) is dict and is_number(key):
        return base.get(number_text(key), UNDEFINED)
    if type(base) is list and type(key) is str:
        return (
            item(base, int(key))
            if key.isascii() and key.isdecimal() and len(key) < len(str(len(base))) + 1
            else UNDEFINED
        )
    return item(base, key)


def patch(base: Value, path: tuple[str, ...], value: Value) -> Value:
    """Return a document with another value at a path; values on the path that are not objects become objects."""
    if not path:
        return value
    found = dict(base) if type(base) is dict else {}
    found[path[0]] = patch(found.get(path[0], UNDEFINED), path[1:], value)
    return found


class Weights:
    """The sizes of values that share their parts, as if nothing were shared.

    Sixty rules such as `a2 := [a1, a1]` make a value of 2**60 parts in no time; to compare or write it would
    never end. Only values that an evaluation makes from other collections are weighed: a part of the input counts as
    one.
    """

    def __init__(self) -> None:
        """Start with nothing weighed."""
        # A value is kept with its weight, so that no other one gets its identity meanwhile.
        self.weighed: dict[int, tuple[int, Value]] = {}
        self.kept: dict[int, tuple[int, Value]] = {}
        self.shared = 0

    def forget(self, shared: Collection[Value]) -> None:
        """Forget the values of an evaluation, except those that all evaluations share, and their parts."""
        waiting = list(shared) if len(shared) != self.shared else []
        self.shared = len(shared)
        while waiting:
            value = waiting.pop()
            if type(value) is ValueKey:
                value = value.value
            known = self.weighed.get(id(value))
            if known is not None and id(value) not in self.kept:
                self.kept[id(value)] = known
                waiting += value.values() if type(value) is dict else value
        self.weighed.clear()

    def weigh(self, value: Value) -> None:
        """Weigh a value that has just been made.

        Raises:
            BudgetExceededError: it is too large.
        """
        parts = value.values() if type(value) is dict else value
        weight = found = 0
        for part in parts:
            kind = type(part)
            if kind in COLLECTIONS:
                found += 1
                identity = id(part.value if kind is ValueKey else part)
                known = self.weighed.get(identity) or self.kept.get(identity)
                weight += known[0] if known else 1
        if found:
            weight += len(value)
            if weight > _HEAVIEST:
                raise BudgetExceededError("the evaluation makes values that are too large")
            self.weighed[id(value)] = weight, value


class Steps:
    """Counts the steps of evaluations; one for each thread.

    Attributes:
        tick: called for each step; it returns nothing.
    """

    def __init__(self) -> None:
        """Start with none counted."""
        self.limit = 1 << 62
        self.used = 0
        self.tick: Callable[[], None]
        self.restart()

    def restart(self) -> None:
        """Count again after the limit was met."""
        self.tick = chain.from_iterable(self._chunks()).__next__

    def _chunks(self) -> Iterator[Iterable[None]]:
        while True:
            yield repeat(None, _STEPS)
            self.used += _STEPS
            if self.used > self.limit:
                raise BudgetExceededError(f"the evaluation takes more than {self.limit:,} steps")
            if monotonic() > BUDGET.deadline:
                raise BudgetExceededError("the evaluation takes too long")


class Remembered(dict[str, Any]):
    """A cache of a function's small results for strings: scalars and short lists of scalars."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[str], Value]) -> None:
        """Take the function."""
        super().__init__()
        self.function = function

    def __missing__(self, text: str) -> Value:
        """Call the function, and cache its result if it is small."""
        found = self.function(text)
        if len(text) <= _LONGEST_REMEMBERED and _is_small(found):
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[text] = found
        return found


class Forgotten(Remembered):
    """What calls the function each time, where it matters what that reads."""

    __slots__ = ()

    def __getitem__(self, text: str) -> Value:
        """Call the function, also for a text that has no hash."""
        return self.function(text)


def _is_small(value: Value) -> bool:
    if type(value) is list:
        return len(value) <= _LONGEST_REMEMBERED and COLLECTIONS.isdisjoint(map(type, value))
    return value is UNDEFINED or type(value) not in COLLECTIONS


class Joins:
    """An index of list members by a function's results for them, for lists that are used several times.

    A list of the input is the same in one evaluation after the other; one that an evaluation makes is mostly used once.
    """

    def __init__(
        self,
        steps: Steps,
        to_key: Callable[[Value], Value],
        list_values: Callable[[Value], Iterable[Value]],
        errors: tuple[type[BaseException], ...],
    ) -> None:
        """Take what counts steps, what makes keys, what lists a collection, and the errors of functions and keys."""
        self._steps, self._to_key, self._list_values, self._errors = steps, to_key, list_values, errors
        self._document: Value = None
        # What a place is known by has its identity as long as it is kept here.
        self._seen: dict[tuple[Value, ...], tuple[Value, ...]] = {}
        self._found: dict[tuple[Value, ...], tuple[tuple[Value, ...], dict[Value, list[int]], list[int]]] = {}

    def use(self, document: Value) -> None:
        """Forget the lists of any other document."""
        if document is not self._document:
            self._document = document
            self._seen.clear()
            self._found.clear()

    def matching(
        self, base: list[Value], wanted: tuple[Value, ...], function: Callable[..., Value], *given: Value
    ) -> Iterable[Value]:
        """Return the members of a list, in order, for which a function can return the wanted value.

        Args:
            base: the list.
            wanted: values.
            function: returns as many values for a member, or `UNDEFINED`.
            given: further arguments of the function.
        """
        return self._find(base, wanted, function, given, lambda values_: (values_,))

    def containing(
        self, base: list[Value], wanted: tuple[Value, ...], function: Callable[..., Value], *given: Value
    ) -> Iterable[Value]:
        """Return the members of a list, in order, for which a function can return a collection with the wanted value.

        The arguments are those of `matching`; what the function returns is a tuple of the collection.
        """
        return self._find(base, wanted, function, given, lambda values_: zip(self._list_values(values_[0])))

    def _find(
        self,
        base: list[Value],
        wanted: tuple[Value, ...],
        function: Callable[..., Value],
        given: tuple[Value, ...],
        spread: Callable[[Value], Iterable[tuple[Value, ...]]],
    ) -> Iterable[Value]:
        if len(base) < FEWEST_JOINED:
            return base
        place = (function, id(base), *(one if type(one) is str else id(one) for one in given))
        known = self._found.pop(place, None)
        if known is None:
            if place not in self._seen:
                _keep(self._seen, place, (base, *given))
                return base
            known = (self._seen.pop(place), *self._index(base, function, given, spread))
        _keep(self._found, place, known)
        _, found, unsure = known
        try:
            positions = found.get(self._keys(wanted), ())
        except self._errors:
            return base
        return [base[position] for position in (sorted([*positions, *unsure]) if unsure else positions)]

    def _index(
        self,
        base: list[Value],
        function: Callable[..., Value],
        given: tuple[Value, ...],
        spread: Callable[[Value], Iterable[tuple[Value, ...]]],
    ) -> tuple[dict[Value, list[int]], list[int]]:
        """Return the positions of members by what is spread of a function's result, and of those for which it fails."""
        found: dict[Value, list[int]] = {}
        unsure: list[int] = []
        for position, member in enumerate(base):
            self._steps.tick()
            try:
                values_ = function(member, *given)
                if values_ is not UNDEFINED:
                    for key in {self._keys(parts) for parts in spread(values_)}:
                        found.setdefault(key, []).append(position)
            except self._errors:
                # The loop finds out whether it comes so far.
                unsure.append(position)
        return found, unsure

    def _keys(self, parts: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple([part if type(part) is str else self._to_key(part) for part in parts])


def _keep(places: dict[Value, Value], place: Value, value: Value) -> None:
    """Keep a value as the newest of a few."""
    places[place] = value
    if len(places) > _MOST_JOINED:
        del places[next(iter(places))]
