"""The functions of the builtins by their OPA names, and how they refuse their operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from policyeng.rego.numbers import to_int64
from policyeng.rego.values import Value, is_number, type_name

Function = Callable[..., Value]
_F = TypeVar("_F", bound=Function)

#: Filled by the modules of this package when they are imported.
FUNCTIONS: dict[str, Function] = {}


class BuiltinError(Exception):
    """A builtin that cannot give a value, as under `strict-builtin-errors` of OPA.

    Attributes:
        code: as OPA names it.
    """

    code = "eval_builtin_error"


class UnsupportedError(Exception):
    """A call for which OPA may have a value, and this engine has none; not a `BuiltinError`, which may be undefined.

    Attributes:
        code: as OPA names that of a builtin.
    """

    code = "eval_builtin_error"


class OperandError(BuiltinError):
    """An operand of a type that the builtin does not take."""

    code = "eval_type_error"


def builtin(name: str) -> Callable[[_F], _F]:
    """Register a function as the builtin of a name."""

    def register(function: _F) -> _F:
        FUNCTIONS[name] = function
        return function

    return register


def wrong_type(position: int, value: Value, *expected: str) -> OperandError:
    """Return the error for an operand of a wrong type, with the message of OPA.

    Args:
        position: from 1.
        value: the operand.
        expected: names of the types it may have.
    """
    wanted = expected[0] if len(expected) == 1 else f"one of {{{', '.join(expected)}}}"
    return OperandError(f"operand {position} must be {wanted} but got {type_name(value)}")


def wrong_element(position: int, collection: Value, element: Value, *expected: str) -> OperandError:
    """Return the error for an element of a wrong type in an operand, with the message of OPA."""
    kind = type_name(collection)
    wanted = f"{kind} of {expected[0]}s" if len(expected) == 1 else f"{kind} of (any of) {{{', '.join(expected)}}}"
    return OperandError(f"operand {position} must be {wanted} but got {kind} containing {type_name(element)}")


def check_string(position: int, value: Value) -> str:
    """Return a string operand.

    Raises:
        OperandError: it is not a string.
    """
    if type(value) is not str:
        raise wrong_type(position, value, "string")
    return value


def check_number(position: int, value: Value) -> Value:
    """Return a number operand.

    Raises:
        OperandError: it is not a number.
    """
    if not is_number(value):
        raise wrong_type(position, value, "number")
    return value


def check_integer(position: int, value: Value) -> int:
    """Return an integer operand, which OPA stores in 64 bits.

    Raises:
        OperandError: it is not an integer, or too large.
    """
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return value
    found = to_int64(check_number(position, value))
    if found is None:
        raise OperandError(f"operand {position} must be integer number but got floating-point number")
    return found


def check_array(position: int, value: Value) -> list[Value]:
    """Return an array operand.

    Raises:
        OperandError: it is not an array.
    """
    if type(value) is not list:
        raise wrong_type(position, value, "array")
    return value


def check_object(position: int, value: Value) -> dict[Value, Value]:
    """Return an object operand.

    Raises:
        OperandError: it is not an object.
    """
    if type(value) is not dict:
        raise wrong_type(position, value, "object")
    return value


def check_set(position: int, value: Value) -> set[Value]:
    """Return a set operand, with its members in the hashable form.

    Raises:
        OperandError: it is not a set.
    """
    if type(value) is not set:
        raise wrong_type(position, value, "set")
    return value
