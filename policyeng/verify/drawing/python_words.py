"""The words of a Python policy: constants of its code and of what it calls and asks in `policyeng.facts`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType

from policyeng.bundle import Policy
from policyeng.facts import Facts
from policyeng.verify.drawing.edits import Json

#: Longer constants are messages and explanations.
LONGEST = 64
#: The package that Python policies share, as Rego policies share `lib`.
_LIBRARY = "policyeng.facts"


@dataclass(frozen=True)
class Code:
    """The constants of a Python policy and of the functions beside it, of shared functions, and of the catalogue's."""

    own: list[Json]
    borrowed: list[Json]
    asked: list[str]


def code_of(policy: Policy) -> Code:
    """What stands in the code of a Python policy that is in force; nothing of another one."""
    found = Code([], [], [])
    if policy.python is None or policy.rules:
        return found
    judge, applies = policy.python.functions
    beside = [*judge.__globals__.values(), applies]
    waiting = [value for value in beside if isinstance(value, FunctionType) and value.__module__ == judge.__module__]
    for function in waiting:  # which grows while it is walked
        parts = list(_parts(function.__code__))
        words = [word for part in parts for constant in part.co_consts for word in _words_in(constant)]
        if function in _CATALOGUE.values():
            found.asked.extend(word for word in words if isinstance(word, str))
        elif function.__module__ == judge.__module__:
            found.own.extend(words)
        else:
            stated = [function.__globals__.get(name) for part in parts for name in part.co_names]
            found.borrowed.extend([*words, *(word for constant in stated for word in _words_in(constant))])
        waiting += [called for part in parts for called in _called(function, part) if called not in waiting]
    return found


def _parts(code: CodeType) -> Iterator[CodeType]:
    """A piece of code and those inside of it, such as comprehensions."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)


def _called(function: FunctionType, part: CodeType) -> Iterator[FunctionType]:
    """The functions of the library that a part of a function names, and what it asks `facts`, the catalogue."""
    known = [function.__globals__.get(name) for name in part.co_names]
    modules = [value for value in known if isinstance(value, ModuleType) and value.__name__.startswith(_LIBRARY)]
    known += [getattr(module, name, None) for module in modules for name in part.co_names]
    if function in _CATALOGUE.values() or "facts" in (*part.co_names, *part.co_varnames, *part.co_freevars):
        known += [_CATALOGUE.get(name) for name in part.co_names]
    for value in map(_unwrapped, known):
        if value is not None and value.__module__.startswith(_LIBRARY):
            yield value


def _unwrapped(value: object) -> FunctionType | None:
    """The function in a cached one or in a method; None for what is none."""
    value = getattr(value, "__wrapped__", None) or getattr(value, "func", None) or value
    return value if isinstance(value, FunctionType) else None


#: What the catalogue can be asked, by name.
_CATALOGUE = {name: function for name, value in vars(Facts).items() if (function := _unwrapped(value))}


def _words_in(constant: object) -> Iterator[Json]:
    if isinstance(constant, tuple | frozenset | dict):
        for member in (*constant, *constant.values()) if isinstance(constant, dict) else constant:
            yield from _words_in(member)
    is_word = isinstance(constant, str) and len(constant) <= LONGEST and constant.count(" ") < 3
    if is_word or (isinstance(constant, int | float) and not isinstance(constant, bool)):
        yield constant  # type: ignore[misc]  # a text or a number
