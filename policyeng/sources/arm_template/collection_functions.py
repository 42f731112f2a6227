"""The functions of ARM templates on lists and objects, whose content can be unresolved.

Each takes the values of its arguments and raises ExpressionError for invalid ones.
Source: https://learn.microsoft.com/azure/azure-resource-manager/templates/template-functions-array and -object.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.models import lowered
from policyeng.sources.arm_template.cidr_functions import FUNCTIONS as NETWORKS
from policyeng.sources.arm_template.expressions import ExpressionError
from policyeng.sources.arm_template.scalar_functions import (
    Function,
    a_list,
    a_number,
    a_text,
    an_object,
    check_length,
    convert_to_text,
    is_equal,
)
from policyeng.sources.template_parameters import Unresolved

#: The maximum length of a range in ARM.
_LONGEST_RANGE = 10_000
#: A limit for functions that compare all pairs of entries.
_LONGEST_COMPARED = 2_000

_ABSENT = Unresolved("absent")


def member(holder: object, key: object) -> object:
    """Return the member with a key, compared without case, or the entry at an index.

    Raises:
        ExpressionError: it does not exist.
    """
    found = _member(holder, key)
    if found is _ABSENT:
        raise ExpressionError(f"there is no `{key}` in it")
    return found


def _member(holder: object, key: object) -> object:
    if isinstance(holder, dict) and isinstance(key, str):
        if key in holder:
            return holder[key]
        return next((value for name, value in holder.items() if lowered(name) == lowered(key)), _ABSENT)
    if isinstance(holder, list | str) and isinstance(key, int) and not isinstance(key, bool):
        return holder[key] if 0 <= key < len(holder) else _ABSENT
    if holder is None:
        return _ABSENT
    raise ExpressionError("it has no members")


def _try_get(holder: object, *keys: object) -> object:
    for key in keys:
        if isinstance(holder, Unresolved):
            return holder
        holder = _member(holder, key)
        if holder is _ABSENT:
            return None
    return holder


def _concat(*parts: object) -> object:
    if parts and all(isinstance(part, list) for part in parts):
        return [entry for part in parts for entry in a_list(part)]
    if any(isinstance(part, list | dict) for part in parts):
        raise ExpressionError("lists and strings cannot be joined")
    return check_length("".join("" if part is None else convert_to_text(part) for part in parts))


def _union(*parts: object) -> object:
    if all(isinstance(part, list) for part in parts):
        return _distinct([entry for part in parts for entry in a_list(part)])
    merged: dict[str, object] = {}
    for part in parts:
        merged = _merge(merged, an_object(part))
    return merged


def _merge(left: dict[str, object], right: dict[str, object]) -> dict[str, object]:
    """Merge objects recursively; lists are replaced. Keys are compared without case."""
    names = {lowered(key): key for key in left}
    merged = dict(left)
    for key, value in right.items():
        own = names.get(lowered(key), key)
        mine = merged.get(own)
        if isinstance(mine, dict) and isinstance(value, dict):
            merged[own] = _merge(mine, value)
        elif isinstance(mine, Unresolved) and isinstance(value, dict):
            merged[own] = mine  # its other members are not known
        else:
            merged[own] = value
    return merged


def _distinct(entries: list[object]) -> list[object]:
    if len(entries) > _LONGEST_COMPARED:
        raise ExpressionError(f"it compares more than {_LONGEST_COMPARED} entries")
    distinct: list[object] = []
    for entry in entries:
        if not any(is_equal(entry, other) for other in distinct):
            distinct.append(entry)
    return distinct


def _intersection(first: object, *others: object) -> object:
    if isinstance(first, dict):
        return {
            key: value
            for key, value in first.items()
            if all(key in an_object(other) and is_equal(value, an_object(other)[key]) for other in others)
        }
    _distinct([entry for part in (first, *others) for entry in a_list(part)])  # checks the limit
    return [
        entry
        for entry in _distinct(a_list(first))
        if all(any(is_equal(entry, one) for one in a_list(other)) for other in others)
    ]


def _contains(holder: object, sought: object) -> bool:
    if isinstance(holder, dict):
        return any(lowered(key) == lowered(convert_to_text(sought)) for key in holder)
    if isinstance(holder, list):
        return any(is_equal(entry, sought) for entry in holder)
    return convert_to_text(sought) in a_text(holder)


def _length(value: object) -> int:
    if isinstance(value, str | list | dict):
        return len(value)
    raise ExpressionError("it has no length")


def _end(value: object, index: int) -> object:
    if isinstance(value, str):
        return value[index] if value else ""
    return a_list(value)[index] if value else None


def _part(value: object, count: object, *, skipped: bool) -> object:
    number = max(0, a_number(count))
    whole = value if isinstance(value, str) else a_list(value)
    return whole[number:] if skipped else whole[:number]


def _range(start: object, count: object) -> list[object]:
    if not 0 <= a_number(count) <= _LONGEST_RANGE:
        raise ExpressionError(f"a range has 0 to {_LONGEST_RANGE} numbers")
    return list(range(a_number(start), a_number(start) + a_number(count)))


def _numbers(values: tuple[object, ...]) -> list[int]:
    numbers = [a_number(value) for value in (a_list(values[0]) if isinstance(values[0], list) else values)]
    if not numbers:
        raise ExpressionError("there are no numbers")
    return numbers


def _create_object(*pairs: object) -> object:
    if len(pairs) % 2:
        raise ExpressionError("a key has no value")
    if unknown := next((key for key in pairs[::2] if isinstance(key, Unresolved)), None):
        return unknown
    return {a_text(key): value for key, value in zip(pairs[::2], pairs[1::2], strict=True)}


def _items(value: object) -> list[object]:
    return [{"key": key, "value": inner} for key, inner in sorted(an_object(value).items())]


def _index(entries: object, sought: object, *, last: bool) -> int:
    if isinstance(entries, str):
        text, part = lowered(entries), lowered(a_text(sought))
        return text.rfind(part) if last else text.find(part)
    found = [index for index, entry in enumerate(a_list(entries)) if is_equal(entry, sought)]
    return -1 if not found else found[-1 if last else 0]


def _join(parts: object, sign: object = ",") -> str:
    return check_length(a_text(sign).join(convert_to_text(part) for part in a_list(parts)))


def _flatten(parts: object) -> object:
    if unknown := next((part for part in a_list(parts) if isinstance(part, Unresolved)), None):
        return unknown
    return [entry for part in a_list(parts) for entry in a_list(part)]


def _merge_shallowly(parts: object) -> object:
    if unknown := next((part for part in a_list(parts) if isinstance(part, Unresolved)), None):
        return unknown
    return {key: value for part in a_list(parts) for key, value in an_object(part).items()}


def _empty(value: object) -> bool:
    return value is None or _length(value) == 0


#: Functions that combine values, which can be unresolved, by name in lower case.
MAKING: Mapping[str, Function] = {"createarray": lambda *entries: list(entries), "createobject": _create_object}

#: Functions of lists and objects whose content can be unresolved, by name in lower case.
SHALLOW: Mapping[str, Function] = {
    "array": lambda value: value if isinstance(value, list) else [value],
    "empty": _empty,
    "first": lambda value: _end(value, 0),
    "flatten": _flatten,
    "items": _items,
    "last": lambda value: _end(value, -1),
    "length": _length,
    "objectkeys": lambda value: sorted(an_object(value)),
    "shallowmerge": _merge_shallowly,
    "skip": lambda value, count: _part(value, count, skipped=True),
    "take": lambda value, count: _part(value, count, skipped=False),
    "tryget": _try_get,
}

#: Functions whose arguments must be resolved completely, by name in lower case.
WHOLE: Mapping[str, Function] = {
    **NETWORKS,
    "indexof": lambda entries, sought: _index(entries, sought, last=False),
    "intersection": _intersection,
    "join": _join,
    "lastindexof": lambda entries, sought: _index(entries, sought, last=True),
    "max": lambda *values: max(_numbers(values)),
    "min": lambda *values: min(_numbers(values)),
    "range": _range,
}

#: Functions that compare entries of lists, which must be resolved, but not values of objects; `concat` compares none.
BY_KEY: Mapping[str, Function] = {"concat": _concat, "contains": _contains, "union": _union}
