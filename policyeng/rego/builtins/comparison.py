"""Comparison and membership as functions; the compiler writes most calls of them in place."""

from __future__ import annotations

from policyeng.rego.builtins.registry import builtin
from policyeng.rego.runtime import is_member, is_pair
from policyeng.rego.values import Value, equal, is_less

builtin("equal")(equal)
builtin("lt")(is_less)
builtin("internal.member_2")(is_member)
builtin("internal.member_3")(is_pair)


@builtin("neq")
def differ(left: Value, right: Value) -> bool:
    """Return whether two values differ."""
    return not equal(left, right)


@builtin("gt")
def is_greater(left: Value, right: Value) -> bool:
    """Return whether a value is after another."""
    return is_less(right, left)


@builtin("lte")
def is_at_most(left: Value, right: Value) -> bool:
    """Return whether a value is not after another."""
    return not is_less(right, left)


@builtin("gte")
def is_at_least(left: Value, right: Value) -> bool:
    """Return whether a value is not before another."""
    return not is_less(left, right)
