"""Evaluate rules over an input with markers, to find the results that do not depend on unknown values."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from types import FunctionType, NoneType
from typing import NamedTuple

from policyeng.rego import markers, runtime
from policyeng.rego.builtins import objects
from policyeng.rego.builtins.aggregates import count_members
from policyeng.rego.builtins.objects import get_value
from policyeng.rego.markers import MARKERS, SCALARS, Cause, MarkedSet, Special, Undecided, UnknownValue
from policyeng.rego.numbers import to_integer
from policyeng.rego.thread import ERRORS, EvaluationError, Thread
from policyeng.rego.tracing import RecordedCache, RecordedReads, Recorder, escape, strip
from policyeng.rego.values import (
    UNDEFINED,
    Value,
    WrittenDecimal,
    WrittenFloat,
    is_less,
    is_number,
    sort_key,
    type_name,
)

#: The types of values of which none is a special collection.
_PLAIN = frozenset((list, dict, set, str))
_BUDGET = "eval_budget_error"


class DecidedResult(NamedTuple):
    """The result of a rule.

    Attributes:
        value: of a set, the members that are certain, which may carry markers (`Thread.uncached` lists them); else the
            value, with markers in it, or `UNDEFINED`.
        undecided: what is not known and could make the value another one; empty where it is certain.
    """

    value: Value
    undecided: tuple[Cause, ...]


class PartialMembers(runtime.Members):
    """Members of a set that may have others.

    Attributes:
        causes: why.
    """

    __slots__ = ("causes",)

    causes: tuple[Cause, ...]


def partial(found: list[Value], causes: tuple[Cause, ...]) -> list[Value]:
    """Return what parts found as a list that may have others."""
    if type(found) is runtime.Members:
        members = PartialMembers(found)
        members.causes = causes
        return members
    return markers.MarkedList(found, causes)


def make_set(found: Iterable[Value]) -> Value:
    """Return the set of members."""
    made = markers.make_set_of(list(found))
    if type(found) is not PartialMembers:
        return made
    keys = set(set.__iter__(made))
    return MarkedSet(keys, (*found.causes, *(made.causes if type(made) is MarkedSet else ())))


def item(base: Value, key: Value) -> Value:
    """Return the item of an object or array, or the member of a set, else `UNDEFINED`."""
    kind = base.__class__
    if kind is dict:
        return base.get(key if type(key) is str else markers.to_key(key), UNDEFINED)
    if kind is set:
        return key if markers.to_key(key) in base else UNDEFINED
    if kind is not list:
        return UNDEFINED
    index = to_integer(key) if is_number(_touched(key)) else None
    if index is None or index < 0:
        return UNDEFINED
    try:
        return base[index]
    except IndexError:
        return UNDEFINED


def _touched(value: Value) -> Value:
    value.__class__  # noqa: B018  # a marker raises
    return value


def _ordered_values(base: Value) -> Iterable[Value]:
    if _has_keys(base):
        return (value for _, value in _ordered_pairs(base))
    return runtime.ordered_values(base) if type(base) in (dict, set) else markers.each_value(base)


def _has_keys(base: Value) -> bool:
    return isinstance(base, Special) and not isinstance(base, list)


def _ordered_pairs(base: Value) -> Iterable[tuple[Value, Value]]:
    if _has_keys(base):
        return _sorted_pairs(base)
    return runtime.ordered_pairs(base) if type(base) in (dict, set) else markers.each_pair(base)


def _sorted_pairs(base: Value) -> Iterable[tuple[Value, Value]]:
    found: list[tuple[Value, Value]] = []
    undecided = None
    try:
        found.extend(markers.each_pair(base))
    except Undecided as error:
        undecided = error
    yield from sorted(found, key=lambda pair: sort_key(pair[0]))
    if undecided is not None:
        raise undecided


def _known(found: Iterable[Value]) -> Iterable[Value]:
    """Yield values, and raise at a marker."""
    for one in found:
        yield _touched(one)


def _known_pairs(found: Iterable[tuple[Value, Value]]) -> Iterable[tuple[Value, Value]]:
    for key, one in found:
        yield _touched(key), _touched(one)


def _strict(
    plain: Callable[[Value], Iterable[Value]],
    each: Callable[[Value], Iterable[Value]],
    known: Callable[[Value], Iterable[Value]],
) -> Callable[..., Value]:
    """Return a function that lists parts for code that no marker may reach."""

    def list_known(base: Value) -> Iterable[Value]:
        if type(base) in _PLAIN:
            return plain(base)
        found = each(base)
        return known(found) if isinstance(base, Special) else found

    return list_known


def _is_pair(key: Value, value: Value, collection: Value) -> bool:
    found = item(collection, key)
    return found is not UNDEFINED and markers.equal(found, value)


def _is_less(left: Value, right: Value) -> bool:
    if {type(left), type(right)} == {markers.Count, int}:
        return bool(left < right)
    return is_less(markers.resolve(left), markers.resolve(right))


def _finish(found: Value, base: Value) -> Value:
    return runtime.finish(found, markers.resolve(base))


# The same code with functions that know special collections.
_SPACE = {
    **runtime.__dict__,
    "equal": markers.equal,
    "item": item,
    "to_key": markers.to_key,
    "make_set": make_set,
}
_RUNTIME: dict[str, Callable[..., Value]] = {
    name: FunctionType(getattr(runtime, name).__code__, _SPACE, name)
    for name in ("look_up", "agree", "put", "put_at", "add_at", "join", "data_item", "_level")
}
_SPACE.update(_RUNTIME)

_NAMES: dict[str, Value] = {
    **{name: function for name, function in _RUNTIME.items() if name != "_level"},
    "equal": markers.equal,
    "finish": _finish,
    "is_collection": lambda value: value.__class__ in (list, dict, set),
    "is_less": _is_less,
    "is_member": markers.is_member,
    "is_pair": _is_pair,
    "item": item,
    "make_set": make_set,
    "ordered_pairs": _strict(runtime.ordered_pairs, _ordered_pairs, _known_pairs),
    "ordered_values": _strict(runtime.ordered_values, _ordered_values, _known),
    "pairs": _strict(runtime.pairs, markers.each_pair, _known_pairs),
    "to_key": markers.to_key,
    "values": _strict(runtime.values, markers.each_value, _known),
}


# Builtins that need not know all of their operands.


def _count(collection: Value) -> Value:
    if type(collection) in _PLAIN or not isinstance(collection, Special):
        return count_members(collection)
    return collection.size()


def _get(container: Value, path: Value, default: Value) -> Value:
    if not isinstance(container, Special) and type(container) is not dict:
        return get_value(markers.resolve(container), path, default)
    found: Value = container
    for part in markers.resolve(path) if path.__class__ is list else [path]:
        found = found.get(part, UNDEFINED) if type(found) is dict and type(part) is str else item(found, part)
        if found is UNDEFINED:
            return default
    return found


def _carry(container: Value, path: Value, default: Value) -> Value:
    """Return the value at the end of a path or a default; what is not known is carried by a marker of its own."""
    _touched(container)
    path = markers.resolve(path)
    try:
        return _get(container, path, default)
    except Undecided as error:
        return UnknownValue(*error.causes[0])


def _list_keys(container: Value) -> Value:
    if not isinstance(container, Special):
        return objects.list_keys(container)
    found = set()
    perhaps = []
    why: tuple[Cause, ...] = ()
    causes = markers.bounds_of(container)[2]
    try:
        for key, value in getattr(container, "each_unread", container.each)():
            if type(value) in MARKERS:
                perhaps.append(key)
            else:
                found.add(key)
    except Undecided as error:
        why = error.causes
    return MarkedSet(found, causes, perhaps, open_=why != ()) if causes else found


def _concatenate(left: Value, right: Value) -> Value:
    if type(left) is type(right) is list:
        return left + right
    if left.__class__ is not list or right.__class__ is not list:
        raise _RefusedOperands
    items: list[Value] = []
    perhaps: list[Value] = []
    causes: tuple[Cause, ...] = ()
    is_open = False
    for one in (left, right):
        if isinstance(one, markers.MarkedList):
            items += list.__iter__(one)
            perhaps += one.perhaps
            causes += one.causes
            is_open = is_open or one.open
        else:
            items += markers.each_value(one)
    if not causes and not any(type(one) in MARKERS for one in items):
        return items
    return markers.MarkedList(items, causes, perhaps, open_=is_open)


#: Of them those that may leave operands to the builtin.
_REFUSING = frozenset(("array.concat", "and", "minus", "or", "set_diff"))


class _RefusedOperands(Exception):  # noqa: N818  # never leaves this module
    """Operands for which the builtin itself is called."""


def _sets(left: Value, right: Value) -> tuple[Value, ...]:
    if left.__class__ is not set or right.__class__ is not set:
        raise _RefusedOperands
    parts = []
    for one in (left, right):
        if isinstance(one, MarkedSet):
            parts += [set(set.__iter__(one)), one.perhaps, one.open]
        else:
            parts += [one, set(), False]
    return (*parts, (*markers.bounds_of(left)[2], *markers.bounds_of(right)[2]))


def _unite(left: Value, right: Value) -> Value:
    one, maybe, is_open, other, maybe_other, is_other_open, causes = _sets(left, right)
    return _made(one | other, maybe | maybe_other, is_open or is_other_open, causes)


def _intersect(left: Value, right: Value) -> Value:
    one, maybe, is_open, other, maybe_other, is_other_open, causes = _sets(left, right)
    possible = ((one | maybe) & (other | maybe_other)) | (one | maybe if is_other_open else set())
    if is_open:
        possible |= other | maybe_other
    return _made(one & other, possible, is_open and is_other_open, causes)


def _subtract(left: Value, right: Value) -> Value:
    one, maybe, is_open, other, maybe_other, is_other_open, causes = _sets(left, right)
    certain = set() if is_other_open else one - other - maybe_other
    return _made(certain, (one | maybe) - other, is_open, causes)


def _made(keys: set[Value], perhaps: set[Value], is_open: bool, causes: tuple[Cause, ...]) -> Value:
    return MarkedSet(keys, causes, perhaps, open_=is_open) if is_open or not perhaps <= keys else keys


def _is_kind(*kinds: type) -> Callable[[Value], bool]:
    return lambda value: value.__class__ in kinds


def _name_type(value: Value) -> str:
    kind = value.__class__
    return {list: "array", dict: "object", set: "set"}[kind] if isinstance(value, Special) else type_name(value)


#: Builtins that may give a value where not all of their operands are known.
LENIENT: dict[str, Callable[..., Value]] = {
    "array.concat": _concatenate,
    "and": _intersect,
    "count": _count,
    "is_array": _is_kind(list),
    "is_boolean": _is_kind(bool),
    "is_null": _is_kind(NoneType),
    "is_number": _is_kind(int, float, WrittenFloat, Decimal, WrittenDecimal),
    "is_object": _is_kind(dict),
    "is_set": _is_kind(set),
    "is_string": _is_kind(str),
    "object.get": _get,
    "object.keys": _list_keys,
    "or": _unite,
    "minus": _subtract,
    "set_diff": _subtract,
    "type_name": _name_type,
    "equal": markers.equal,
    "internal.member_2": markers.is_member,
    "internal.member_3": _is_pair,
    "neq": lambda left, right: not markers.equal(left, right),
    "lt": _is_less,
    "gt": lambda left, right: _is_less(right, left),
    "lte": lambda left, right: not _is_less(right, left),
    "gte": lambda left, right: not _is_less(left, right),
}


def guard(name: str, function: Callable[..., Value]) -> Callable[..., Value]:
    """Return a builtin that raises where an operand is not known, and takes special collections."""
    lenient = LENIENT.get(name)

    def call(*operands: Value) -> Value:
        for operand in operands:
            if type(operand) not in SCALARS:
                return function(*map(markers.resolve, operands))
        return function(*operands)

    def call_lenient(*operands: Value) -> Value:
        try:
            return lenient(*operands) if lenient is not None else UNDEFINED
        except _RefusedOperands:
            return call(*operands)

    if lenient is None:
        return call
    return call_lenient if name in _REFUSING else lenient


class MarkedThread(Thread):
    """Evaluates the plain form of a program over an input with markers: what meets one raises `Undecided`."""

    names: Mapping[str, Value] = _NAMES

    def new_joins(self) -> runtime.Joins:
        """Return what finds members of lists by keys, and those of which a key is not known for every key."""
        # Operations of Python refuse special collections with the last two.
        return runtime.Joins(
            self.steps, markers.to_key, _NAMES["values"], (*ERRORS, Undecided, TypeError, AttributeError)
        )

    def load(self, code: Value, compiled: Value) -> None:
        """Define the functions of compiled modules, with builtins that know markers."""
        self.globals.update(self.names)
        # Python adapts code to the globals it runs with, so each thread of another kind has a copy of its own.
        super().load(marshal.loads(marshal.dumps(list(code))), compiled)  # noqa: S302  # of this process
        self._base = compiled.base
        self.recorder = Recorder()
        self._program = RecordedCache(self.recorder)
        #: Base data and its parts, wrapped when they are first needed, and functions of which nothing is kept.
        self._recorded: dict[str, Value] = {}
        for name, short in compiled.builtins.items():
            self.globals[short] = guard(name, self.globals[short])

    def now(self) -> Value:
        """Return the time of the evaluation, and record that it was read."""
        self.recorder.read("input", "/as_of", "value")
        return super().now()

    def call(self, function: Callable[[], Value]) -> Value:
        """Return what a function of the compiled code gives.

        Raises:
            EvaluationError: a limit ended it.
            Undecided: it met a marker, or an error of which the other form finds out whether it is one.
        """
        try:
            return self._evaluate(function)
        except EvaluationError as error:
            if error.code == _BUDGET:
                raise
            raise Undecided(("", str(error))) from error
        except Exception as error:
            # Operations of Python refuse special collections with errors of their own.
            raise Undecided(("", str(error))) from error

    def _evaluate(self, function: Callable[[], Value]) -> Value:
        value = Thread.call(self, function)
        return strip(value) if self.globals["PROGRAM"] is self._program else value

    def trace(
        self, function: Callable[[], Value], names: Mapping[int, str] | None = None
    ) -> tuple[Value, list[RecordedReads]]:
        """Return what a function of the compiled code gives, and what it reads of the input and of base data.

        Args:
            function: of this thread.
            names: names of parts of the input that are documents of their own, by the identity of the object.

        Raises:
            EvaluationError: a limit ended it.
            Undecided: it met a marker.
        """
        with self.recording(names) as recorder:
            value = self.call(function)
        return value, recorder.reads

    @contextmanager
    def recording(self, names: Mapping[int, str] | None = None) -> Iterator[Recorder]:
        """Record what several calls of an evaluation read; see `trace`.

        What rules gave before is not used, because their reads would be missing.
        """
        space = self.globals
        self.recorder.begin(names or {})
        if not self._recorded:
            self._recorded = {
                short: self.recorder.wrap(space[short], "data", "".join(f"/{escape(part)}" for part in path))
                for path, short in [*self._base.items(), ((), "DATA")]
            }
            known = {name: value for name, value in space.items() if isinstance(value, runtime.Remembered)}
            self._recorded |= {name: runtime.Forgotten(value.function) for name, value in known.items()}
        before = {name: space[name] for name in ("INPUT", "CACHE", "PROGRAM", *self._recorded)}
        space.update(self._recorded)
        space["INPUT"] = self.recorder.wrap(space["INPUT"], "input", "")
        space["CACHE"], space["PROGRAM"] = {}, self._program
        try:
            yield self.recorder
        finally:
            self.recorder.end()
            space.update(before)
            if self.ignored:
                self._program.clear()

    def _enter(self, modifiers: list[tuple[str, list[str], Value]]) -> tuple[Value, ...]:
        space = self.globals
        before = space["INPUT"], space["DATA"]
        known = []
        for name, path, value in modifiers:
            if path and name in {"input", "data"}:
                space[name.upper()] = markers.resolve(space[name.upper()])
            known.append((name, path, markers.resolve(value)))
        saved = super()._enter(known)
        return (*before, *saved[2:])


class HandledThread(MarkedThread):
    """Evaluates the form of a program that handles markers."""

    joins_parts = False
    names: Mapping[str, Value] = {
        **_NAMES,
        "Undecided": Undecided,
        "Unknown": UnknownValue,
        "make_partial": markers.make_partial,
        "ordered_pairs": _ordered_pairs,
        "ordered_values": _ordered_values,
        "pairs": markers.each_pair,
        "partial": partial,
        "set_of": markers.make_set_of,
        "settle": markers.settle,
        "touched": _touched,
        "values": markers.each_value,
    }

    def load(self, code: Value, compiled: Value) -> None:
        """Define the functions of compiled modules."""
        super().load(code, compiled)
        if "object.get" in compiled.builtins:
            self.globals[compiled.builtins["object.get"]] = _carry
        weigh = self.globals["weigh"]
        self.globals["weigh"] = lambda found: None if isinstance(found, Special) else weigh(found)

    def decide(self, function: Callable[[], Value]) -> DecidedResult:
        """Return the result of a rule that does not depend on unknown values, and the causes of the unknown rest.

        Raises:
            EvaluationError: a builtin, a conflict or a limit ended it.
        """
        markers.MET.causes = ()
        try:
            value = self._evaluate(function)
        except Undecided as error:
            return DecidedResult(UNDEFINED, error.causes)
        except EvaluationError as error:
            # What was undecided before might have ended the evaluation without the error.
            if error.code == _BUDGET or not markers.MET.causes:
                raise
            return DecidedResult(UNDEFINED, markers.MET.causes)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            # Operations of Python refuse special collections with errors of their own.
            return DecidedResult(UNDEFINED, markers.MET.causes or (markers.NEEDED,))
        return outcome_of(value)


def outcome_of(value: Value) -> DecidedResult:
    """Return a result with what is not known of it."""
    if type(value) is PartialMembers:
        return DecidedResult(runtime.Members(value), value.causes)
    if type(value) is runtime.Members:
        return DecidedResult(value, ())
    if type(value) is MarkedSet:
        return DecidedResult(set(set.__iter__(value)), value.bounds()[2])
    return DecidedResult(value, markers.deep_causes(value))
