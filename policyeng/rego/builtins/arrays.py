"""Operations of arrays."""

from __future__ import annotations

from policyeng.rego.budget import charge, charged
from policyeng.rego.builtins.registry import builtin, check_array, check_integer
from policyeng.rego.values import Value


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
