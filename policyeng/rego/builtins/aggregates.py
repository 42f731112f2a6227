"""Builtins on the members of collections: aggregates, arrays and sets."""

from __future__ import annotations

import fractions
from collections.abc import Callable

from policyeng.rego import numbers
from policyeng.rego.budget import charge, charged
from policyeng.rego.builtins.registry import (
    builtin,
    check_array,
    check_integer,
    check_set,
    wrong_element,
    wrong_type,
)
from policyeng.rego.values import UNDEFINED, Value, ValueKey, from_key, is_number, members, sort_key, sort_values

_COUNTED = frozenset((list, dict, set, str))
_TRUE = ValueKey(True)
#: The mantissa with which OPA multiplies numbers that are not all integers.
_PRODUCT_BITS = 53


@builtin("count")
def count_members(collection: Value) -> Value:
    """Count the members of a collection or the characters of a string."""
    if type(collection) in _COUNTED:
        return len(collection)
    raise wrong_type(1, collection, "array", "object", "set", "string")


@builtin("sum")
def add_all(collection: Value) -> Value:
    """Add the numbers of an array or a set."""
    if type(collection) is list and set(map(type, collection)) <= {int}:
        return sum(collection)
    found = _list_numbers(collection)
    whole = [numbers.to_integer(one) for one in found]
    if None not in whole:
        return numbers.check_size(sum(one for one in whole if one is not None))
    total = fractions.Fraction(0)
    for one in found:
        total = numbers.round_to_mantissa(total + numbers.round_to_mantissa(numbers.to_fraction(one)))
    return numbers.from_fraction(total)


@builtin("product")
def multiply_all(collection: Value) -> Value:
    """Multiply the numbers of an array or a set."""
    found = _list_numbers(collection)
    whole = [numbers.to_integer(one) for one in found]
    if None not in whole:
        result = 1
        for one in whole:
            result = numbers.check_size(result * (one or 0))
        return result
    total = fractions.Fraction(1)
    for one in found:
        factor = numbers.round_to_mantissa(numbers.to_fraction(one))
        total = numbers.round_to_mantissa(total * factor, _PRODUCT_BITS)
        numbers.check_exponent(total)
    return numbers.from_fraction(total, _PRODUCT_BITS)


def _list_numbers(collection: Value) -> list[Value]:
    found = _list_members(collection)
    wrong = next((one for one in found if not is_number(one)), UNDEFINED)
    if wrong is not UNDEFINED:
        raise wrong_element(1, collection, wrong, "number")
    return found


def _list_members(collection: Value) -> list[Value]:
    if type(collection) is list:
        return collection
    if type(collection) is set:
        return charged(members(collection))
    raise wrong_type(1, collection, "set", "array")


@builtin("max")
def find_largest(collection: Value) -> Value:
    """Return the largest member; there is none in an empty collection."""
    return _pick(max, collection)


@builtin("min")
def find_smallest(collection: Value) -> Value:
    """Return the smallest member; there is none in an empty collection."""
    return _pick(min, collection)


def _pick(pick: Callable[..., Value], collection: Value) -> Value:
    if type(collection) is list:
        found = collection
    elif type(collection) is set:
        found = list(map(from_key, collection))
    else:
        raise wrong_type(1, collection, "set", "array")
    if not found:
        return UNDEFINED
    kinds = set(map(type, found))
    if kinds <= {str} or kinds <= {int}:
        return pick(found)
    # Of equal numbers (1 and 1.0) OPA takes the last, Python the first.
    return pick(reversed(found), key=sort_key)


@builtin("sort")
def sort_members(collection: Value) -> Value:
    """Return the members of a collection as an array in their order."""
    if type(collection) is list:
        return charged(sort_values(collection))
    return _list_members(collection)


@builtin("all")
def check_all(collection: Value) -> Value:
    """Check that every member is true."""
    if type(collection) is list:
        return all(one is True for one in collection)
    if type(collection) is set:
        return not collection or collection == {_TRUE}
    raise wrong_type(1, collection, "array", "set")


@builtin("any")
def check_any(collection: Value) -> Value:
    """Check that a member is true."""
    if type(collection) is list:
        return any(one is True for one in collection)
    if type(collection) is set:
        return _TRUE in collection
    raise wrong_type(1, collection, "array", "set")


@builtin("array.concat")
def join_arrays(left: Value, right: Value) -> Value:
    """Return the elements of one array and then of another."""
    return charged(check_array(1, left) + check_array(2, right))


@builtin("array.flatten")
def flatten(array: Value) -> Value:
    """Replace each array in an array by its elements."""
    check_array(1, array)
    # The same array may be in it many times.
    charge(sum(len(one) for one in array if type(one) is list))
    return [element for one in array for element in (one if type(one) is list else (one,))]


@builtin("array.slice")
def slice_array(array: Value, start: Value, stop: Value) -> Value:
    """Return the elements from one index to before another."""
    check_array(1, array)
    first, end = check_integer(2, start), check_integer(3, stop)
    return charged(array[max(first, 0) : max(end, 0)])


@builtin("array.reverse")
def reverse_array(array: Value) -> Value:
    """Return the elements from the last to the first."""
    return charged(check_array(1, array)[::-1])


@builtin("and")
def intersect(left: Value, right: Value) -> Value:
    """Return the members that are in both sets."""
    if type(left) is set and type(right) is set:
        return charged(left & right)
    return charged(check_set(1, left) & check_set(2, right))


@builtin("or")
def unite(left: Value, right: Value) -> Value:
    """Return the members that are in either set."""
    if type(left) is set and type(right) is set:
        return charged(left | right)
    return charged(check_set(1, left) | check_set(2, right))


@builtin("set_diff")
def subtract(left: Value, right: Value) -> Value:
    """Return the members that are in the first set only."""
    return charged(check_set(1, left) - check_set(2, right))


@builtin("intersection")
def intersect_all(collection: Value) -> Value:
    """Return the members that are in all sets of a set."""
    found = _list_sets(collection)
    return charged(set.intersection(*found)) if found else set()


@builtin("union")
def unite_all(collection: Value) -> Value:
    """Return the members that are in any set of a set."""
    return charged(set().union(*_list_sets(collection)))


def _list_sets(collection: Value) -> list[set[Value]]:
    keys = check_set(1, collection)
    found = [key.value for key in keys if type(key) is ValueKey and type(key.value) is set]
    if len(found) < len(keys):
        # OPA reports the first in the order of the members.
        check_set(1, members(keys)[0])
    return found
