"""What is computed of all members of a collection."""

from __future__ import annotations

import fractions
from collections.abc import Callable

from policyeng.rego import numbers
from policyeng.rego.budget import charged
from policyeng.rego.builtins.registry import builtin, too_deep, wrong_element, wrong_type
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
        try:
            return charged(members(collection))
        except RecursionError:
            raise too_deep() from None
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
    try:
        # Of equal numbers (1 and 1.0) OPA takes the last, Python the first.
        return pick(reversed(found), key=sort_key)
    except RecursionError:
        raise too_deep() from None


@builtin("sort")
def sort_members(collection: Value) -> Value:
    """Return the members of a collection as an array in their order."""
    if type(collection) is list:
        try:
            return charged(sort_values(collection))
        except RecursionError:
            raise too_deep() from None
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
