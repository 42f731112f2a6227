"""The types of values, and comparison and membership as functions; the compiler writes most calls of them in place."""

from __future__ import annotations

import re
from functools import partial

from policyeng.rego.budget import charged
from policyeng.rego.builtins.registry import BuiltinError, OperandError, builtin, wrong_type
from policyeng.rego.numbers import read_number
from policyeng.rego.runtime import is_member, is_pair
from policyeng.rego.values import Value, equal, is_less, is_number, make_set, members
from policyeng.rego.values import type_name as name_of

_KINDS = {type(None): "null", bool: "boolean", str: "string", list: "array", dict: "object", set: "set"}
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
#: What is not below rounds to an infinite float.
_INFINITE = (1 << 1024) - (1 << 970)


def _is_a(kind: type, value: Value) -> Value:
    """Return whether a value is of a type."""
    return type(value) is kind


def _cast(kind: type, value: Value) -> Value:
    """Return a value of a type, and refuse any other."""
    if type(value) is not kind:
        raise wrong_type(1, value, _KINDS[kind])
    return value


for _kind, _name in _KINDS.items():
    builtin(f"is_{_name}")(partial(_is_a, _kind))
    builtin(f"cast_{_name}")(partial(_cast, _kind))
builtin("is_number")(is_number)


@builtin("type_name")
def name_type(value: Value) -> Value:
    """Return the name of the type of a value."""
    return name_of(value)


@builtin("to_number")
def convert_to_number(value: Value) -> Value:
    """Return the number that a string, a boolean or null represents."""
    if type(value) is str:
        return _read_number(value)
    if value is None or value is False:
        return 0
    if value is True:
        return 1
    if is_number(value):
        return value
    raise wrong_type(1, value, "null", "boolean", "number", "string")


def _read_number(text: str) -> Value:
    if _NUMBER.fullmatch(text):
        number = read_number(text.removeprefix("+"))
        if number >= _INFINITE or number <= -_INFINITE:  # comparisons are exact, `abs` rounds a decimal
            raise BuiltinError(f"parsing {text[:40]!r}: value out of range")
        return number
    if text.lstrip("+-").lower() in ("inf", "infinity", "nan"):
        raise OperandError("operand 1 must be valid number string but got string")
    raise BuiltinError(f"parsing {text[:40]!r}: invalid syntax")


@builtin("cast_array")
def cast_array(value: Value) -> Value:
    """Return an array, or the members of a set as one."""
    if type(value) is list:
        return value
    if type(value) is not set:
        raise wrong_type(1, value, "array", "set")
    return charged(members(value))


@builtin("cast_set")
def cast_set(value: Value) -> Value:
    """Return a set, or the elements of an array as one."""
    if type(value) is set:
        return value
    if type(value) is not list:
        raise wrong_type(1, value, "array", "set")
    return charged(make_set(value))


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
