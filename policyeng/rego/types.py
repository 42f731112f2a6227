"""The types of Rego values that the type checker infers, as in OPA's package `types`.

A type is a tuple that begins with its rank, so that types have equality and the order in which OPA writes a union.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

from policyeng.rego.budget import spend
from policyeng.rego.numbers import parse_number
from policyeng.rego.syntax import Array as ArrayTerm
from policyeng.rego.syntax import Number as NumberTerm
from policyeng.rego.syntax import Object as ObjectTerm
from policyeng.rego.syntax import Scalar as ScalarTerm
from policyeng.rego.syntax import Set as SetTerm
from policyeng.rego.syntax import Term
from policyeng.rego.values import sort_key

#: A constant as its `sort_key`.
Key = tuple[Any, ...]
#: A type as `opa capabilities` prints it.
Json = dict[str, Any]


class ScalarType(NamedTuple):
    """Null, boolean, number, string, or nothing that is known."""

    rank: int


class ArrayType(NamedTuple):
    """An array: the types of its first items, then of all others."""

    rank: int
    dynamic: Type
    static: tuple[Type, ...]


class ObjectType(NamedTuple):
    """An object: the types of other keys and their values, if there may be others, then of the values of known keys."""

    rank: int
    dynamic: tuple[Type, ...]
    static: tuple[tuple[Key, Type], ...]


class SetType(NamedTuple):
    """A set; the member of the empty set is `UNKNOWN`."""

    rank: int
    of: Type


class Union(NamedTuple):
    """One of several types in their order; of any type if there are none."""

    rank: int
    members: tuple[Type, ...]


class Function(NamedTuple):
    """A function."""

    rank: int
    arguments: tuple[Type, ...]
    result: Type


Type = ScalarType | ArrayType | ObjectType | SetType | Union | Function

UNKNOWN: Type = ScalarType(-1)
NULL = ScalarType(0)
BOOLEAN = ScalarType(1)
NUMBER = ScalarType(2)
STRING = ScalarType(3)
ANY = Union(7, ())

_SCALARS = {"null": NULL, "boolean": BOOLEAN, "number": NUMBER, "string": STRING}
_NAMES = {-1: "???", **{found.rank: name for name, found in _SCALARS.items()}}
#: What a message writes of one type, in characters.
_WIDTH = 120
#: A type with more parts than this is any: rules that use each other twice double it each time.
_MAX_PARTS = 5_000


def array(static: Iterable[Type] = (), dynamic: Type = UNKNOWN) -> ArrayType:
    """Return the type of an array."""
    return ArrayType(4, dynamic, tuple(static))


def object_(static: Iterable[tuple[Key, Type]] = (), dynamic: tuple[Type, ...] = ()) -> ObjectType:
    """Return the type of an object."""
    return ObjectType(5, dynamic, tuple(sorted(dict(static).items())))


def set_(of: Type) -> SetType:
    """Return the type of a set."""
    return SetType(6, of)


def function(arguments: Iterable[Type], result: Type) -> Function:
    """Return the type of a function."""
    return Function(8, tuple(arguments), result)


def from_json(found: Json | None) -> Type:
    """Return the type that OPA's JSON describes."""
    if found is None:
        return UNKNOWN
    kind = found["type"]
    if kind == "array":
        return array(map(from_json, found.get("static", ())), from_json(found.get("dynamic")))
    if kind == "object":
        dynamic = found.get("dynamic")
        return object_(
            ((sort_key(entry["key"]), from_json(entry["value"])) for entry in found.get("static", ())),
            (from_json(dynamic["key"]), from_json(dynamic["value"])) if dynamic else (),
        )
    if kind == "set":
        return set_(from_json(found.get("of")))
    if kind == "any":
        return Union(7, tuple(sorted(map(from_json, found.get("of", ())))))
    return _SCALARS[kind]


def constant_key(term: Term) -> Key | None:
    """Return the key of a constant; a set is one like an array, as in OPA. None for a term that has variables."""
    match term:
        case ScalarTerm():
            return sort_key(term.value)
        case NumberTerm():
            return sort_key(parse_number(term.text))
        case ArrayTerm() | SetTerm():
            items = [constant_key(item) for item in term.items]
            known = tuple(item for item in items if item is not None)
            if len(known) < len(items):
                return None
            return 6, known if isinstance(term, ArrayTerm) else tuple(sorted(set(known)))
        case ObjectTerm():
            pairs = [(constant_key(key), constant_key(value)) for key, value in term.items]
            entries = [(key, value) for key, value in pairs if key is not None and value is not None]
            return (7, tuple(sorted(entries))) if len(entries) == len(pairs) else None
    return None


def key_type(key: Key) -> Type:
    """Return the type of a constant."""
    if key[0] == 6:
        return array(map(key_type, key[1]))
    if key[0] == 7:
        return object_((name, key_type(value)) for name, value in key[1])
    return ScalarType(key[0])


def key_text(key: Key) -> str:
    """Return a constant as messages write it."""
    if key[0] == 6:
        return f"[{', '.join(map(key_text, key[1]))}]"
    if key[0] == 7:
        return f"{{{', '.join(f'{key_text(name)}: {key_text(value)}' for name, value in key[1])}}}"
    return "null" if key[0] == 0 else str(key[1]).lower() if key[0] == 1 else str(key[1])


def text(found: Type) -> str:
    """Return a type as OPA writes it, shortened where it is long."""
    written = _text(found)
    return written if len(written) <= _WIDTH else f"{written[:_WIDTH]}…"


def _text(found: Type) -> str:
    match found:
        case ScalarType():
            return _NAMES[found.rank]
        case ArrayType():
            static = f"<{', '.join(map(_text, found.static))}>" if found.static else ""
            return f"array{static}" + (f"[{_text(found.dynamic)}]" if found.dynamic != UNKNOWN else "")
        case ObjectType():
            static = ", ".join(f"{key_text(key)}: {_text(value)}" for key, value in found.static)
            dynamic = f"[{': '.join(map(_text, found.dynamic))}]" if found.dynamic else ""
            return "object" + (f"<{static}>" if static else "") + dynamic
        case SetType():
            return "set" if found.of == UNKNOWN else f"set[{_text(found.of)}]"
        case Union():
            return f"any<{', '.join(map(_text, found.members))}>" if found.members else "any"
    return f"({', '.join(map(_text, found.arguments))}) => {_text(found.result)}"


def is_unknown(found: Type) -> bool:
    """Return whether a type, or a part of it, is not known; so it is in the type of the empty set."""
    match found:
        case ScalarType():
            return found == UNKNOWN
        case ArrayType():
            return any(map(is_unknown, found.static)) or (found.dynamic != UNKNOWN and is_unknown(found.dynamic))
        case ObjectType():
            return any(is_unknown(value) for _, value in found.static) or any(map(is_unknown, found.dynamic))
        case SetType():
            return is_unknown(found.of)
        case Function():
            return any(map(is_unknown, found.arguments)) or is_unknown(found.result)
    return False


def bounded(found: Type) -> Type:
    """Return a type, or any type in its place if it has too many parts."""
    if isinstance(found, ScalarType):
        return found
    rest: list[Type] = [found]
    count = 0
    while rest:
        match rest.pop():
            case ArrayType(dynamic=dynamic, static=static):
                rest += [dynamic, *static]
            case ObjectType(dynamic=pair, static=properties):
                rest += [*pair, *(value for _, value in properties)]
            case SetType(of=of):
                rest.append(of)
            case Union(members=members):
                rest += members
            case Function(arguments=arguments, result=result):
                rest += [*arguments, result]
        count += 1
        if count > _MAX_PARTS:
            return ANY
    return found


def either(left: Type, right: Type) -> Type:
    """Return the union of two types."""
    if left == right or right == UNKNOWN:
        return left
    if left == UNKNOWN:
        return right
    if isinstance(left, Function) or isinstance(right, Function):
        if not (isinstance(left, Function) and isinstance(right, Function)):
            return UNKNOWN
        if len(left.arguments) != len(right.arguments):
            return UNKNOWN
        return function(map(either, left.arguments, right.arguments), either(left.result, right.result))
    if ANY in (left, right):
        return ANY
    members = {*_members(left), *_members(right)}
    spend(len(members))
    return Union(7, tuple(sorted(members)))


def any_of(found: Iterable[Type]) -> Type:
    """Return the union of types."""
    # Equal types first, and one sort of the rest: a literal may have thousands of items.
    found = tuple(found)
    different = set(found) - {UNKNOWN}
    if len(different) < 3 or any(isinstance(one, Function) for one in different):
        # As in OPA, the union with a function depends on the order.
        return reduce(either, found, UNKNOWN)
    if ANY in different:
        return ANY
    return Union(7, tuple(sorted({member for one in different for member in _members(one)})))


def _members(found: Type) -> tuple[Type, ...]:
    return found.members if isinstance(found, Union) else (found,)


def select(found: Type, key: Key) -> Type:
    """Return the type of the part of a value at a constant key, `UNKNOWN` if it has none."""
    match found:
        case ArrayType():
            if key[0] != NUMBER.rank or not isinstance(key[1], int) or key[1] < 0:
                return UNKNOWN
            return found.static[key[1]] if key[1] < len(found.static) else found.dynamic
        case ObjectType():
            place = bisect_left(found.static, (key,))
            if place < len(found.static) and found.static[place][0] == key:
                return found.static[place][1]
            return found.dynamic[1] if found.dynamic and _contains(found.dynamic[0], key_type(key)) else UNKNOWN
        case SetType():
            return key_type(key) if _contains(found.of, key_type(key)) else UNKNOWN
        case Union(members=members):
            return any_of(select(member, key) for member in members) if members else ANY
    return UNKNOWN


def _contains(wide: Type, narrow: Type) -> bool:
    return wide == narrow or (isinstance(wide, Union) and (not wide.members or narrow in wide.members))


def keys(found: Type) -> Type:
    """Return the type of what enumerates a value: indices, keys or members; `UNKNOWN` for a scalar."""
    match found:
        case ArrayType():
            return NUMBER
        case ObjectType():
            return any_of([*(key_type(key) for key, _ in found.static), *found.dynamic[:1]])
        case SetType():
            return found.of
        case Union(members=members):
            return any_of(map(keys, members)) if members else ANY
    return UNKNOWN


def values(found: Type) -> Type:
    """Return the type of what a value contains; `UNKNOWN` for a scalar."""
    match found:
        case ArrayType():
            return any_of([*found.static, found.dynamic])
        case ObjectType():
            return any_of([*(value for _, value in found.static), *found.dynamic[1:]])
        case SetType():
            return found.of
        case Union(members=members):
            return any_of(map(values, members)) if members else ANY
    return UNKNOWN


def is_empty(found: Type) -> bool:
    """Return whether values of a type contain nothing."""
    match found:
        case ArrayType() | ObjectType():
            return not found.static and found.dynamic in ((), UNKNOWN)
        case SetType():
            return found.of == UNKNOWN
    return False


def may_equal(left: Type, right: Type) -> bool:
    """Return whether a value of one type may be equal to one of the other."""
    if left == UNKNOWN or right == UNKNOWN:
        return False
    if isinstance(right, Union) and not isinstance(left, Union):
        left, right = right, left
    match left, right:
        case Union(), Union():
            return _may_contain(left, right) or _may_contain(right, left)
        case Union(), _:
            return _may_contain(left, right)
        case ScalarType(), _:
            return left == right
        case ArrayType(), ArrayType():
            return (
                _items_may_equal(left, right)
                and _items_may_equal(right, left)
                and (UNKNOWN in (left.dynamic, right.dynamic) or may_equal(left.dynamic, right.dynamic))
            )
        case ObjectType(), ObjectType():
            return (
                _properties_may_equal(left, right)
                and _properties_may_equal(right, left)
                and (not left.dynamic or not right.dynamic or _may_equal_if_known(left.dynamic[1], right.dynamic[1]))
            )
        case SetType(), SetType():
            return _may_equal_if_known(left.of, right.of)
        case Function(), Function():
            return len(left.arguments) == len(right.arguments) and all(map(may_equal, left.arguments, right.arguments))
    return False


def _may_equal_if_known(left: Type, right: Type) -> bool:
    return UNKNOWN in (left, right) or may_equal(left, right)


def _may_contain(union: Union, found: Type) -> bool:
    if isinstance(found, Function):
        return False
    return not union.members or any(may_equal(member, found) for member in union.members)


def _items_may_equal(left: ArrayType, right: ArrayType) -> bool:
    return all(may_equal(item, select(right, (NUMBER.rank, index))) for index, item in enumerate(left.static))


def _properties_may_equal(left: ObjectType, right: ObjectType) -> bool:
    for key, value in left.static:
        other = select(right, key)
        if other == UNKNOWN:
            if not left.dynamic and not right.dynamic:
                return False
        elif not may_equal(value, other):
            return False
    return True


def merge(left: Type, right: Type) -> Type:
    """Return the type of a document that rules of two types define: like `either`, but objects and sets grow."""
    if isinstance(left, Union) and not isinstance(right, Union):
        left, right = right, left
    match left, right:
        case ObjectType(static=()), ObjectType(static=()):
            if not left.dynamic or not right.dynamic:
                return left if left.dynamic else right
            key = either(left.dynamic[0], right.dynamic[0])
            return object_((), (key, merge(left.dynamic[1], right.dynamic[1])))
        case ObjectType(static=(), dynamic=(key, value)), Union(members=members):
            for member in members:
                match member:
                    case ObjectType(static=(), dynamic=(other_key, other)):
                        grown = object_((), (either(other_key, key), either(other, value)))
                        return Union(7, tuple(sorted({*members} - {member} | {grown})))
        case SetType(), SetType():
            return set_(either(left.of, right.of))
    return either(left, right)


@dataclass(slots=True)
class Tree:
    """The types of documents by their paths.

    Attributes:
        type: of the document as a whole, `UNKNOWN` where only parts of it have one.
        children: by the constants that follow.
    """

    type: Type = UNKNOWN
    children: dict[Key, Tree] = field(default_factory=dict)

    def put(self, path: Iterable[Key], found: Type) -> None:
        """Set the type at a path."""
        node = self
        for key in path:
            node = node.children.setdefault(key, Tree())
        node.type = found

    def insert(self, path: tuple[Key, ...], found: Type) -> None:
        """Add what a rule defines at a path to its type, and to the types of the objects around it and inside of it."""
        node = self
        for place, key in enumerate(path, start=1):
            child = node.children.setdefault(key, Tree())
            if isinstance(child.type, ObjectType) and place < len(path):
                child.type = _insert_into(child.type, path[place:], found)
            node = child
        node.type = bounded(merge(node.type, found))
        if isinstance(found, ObjectType):
            for inner, leaf in node.leaves(()):
                if isinstance(node.type, ObjectType):
                    node.type = _insert_into(node.type, inner, leaf)

    def leaves(self, path: tuple[Key, ...]) -> Iterable[tuple[tuple[Key, ...], Type]]:
        """Yield the paths and types of the parts, each path after the given one."""
        for key, child in self.children.items():
            if child.type != UNKNOWN:
                yield (*path, key), child.type
            else:
                yield from child.leaves((*path, key))

    def extent(self) -> Type:
        """Return the type of the whole document; base data may add to it."""
        if self.type != UNKNOWN:
            return self.type
        scalars = (BOOLEAN.rank, NUMBER.rank, STRING.rank)
        spend(len(self.children))
        static = ((key, child.extent()) for key, child in self.children.items() if key[0] in scalars)
        return object_(static, (STRING, ANY))


def _insert_into(outer: ObjectType, path: tuple[Key, ...], found: Type) -> ObjectType:
    inner = found if len(path) == 1 else _insert_into(object_(), path[1:], found)
    key = key_type(path[0])
    if outer.dynamic:
        return outer._replace(dynamic=(either(outer.dynamic[0], key), either(outer.dynamic[1], inner)))
    return outer._replace(dynamic=(key, inner))
