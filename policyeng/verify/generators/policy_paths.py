"""Find the paths of `input` that Rego reads, and the constants near them, in the syntax tree; only for generators.

Variables for a part of `input` are followed (`:=`, `some ... in`, `every ... in`, `object.get`); arguments of functions
are not. A place that is missed here is only drawn less often.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType, ModuleType
from typing import NamedTuple

from policyeng.bundle import Policy
from policyeng.bundle.rego_trees import aliases_of
from policyeng.facts import Facts
from policyeng.parsing.json_pointer import escaped
from policyeng.rego.syntax import (
    Array,
    Call,
    Every,
    Expr,
    Module,
    Node,
    Number,
    Object,
    Ref,
    Rule,
    Scalar,
    Set,
    SomeIn,
    Var,
    dotted_name,
    parts_of,
    walk,
)
from policyeng.verify.generators.json_mutations import Json

#: Longer constants are messages and explanations.
LONGEST = 64
#: The package that Python policies share, as Rego policies share `lib`.
_LIBRARY = "policyeng.facts"


@dataclass(frozen=True)
class Code:
    """The constants of a Python policy and its functions, of shared functions, and of those of the catalog."""

    own: list[Json]
    borrowed: list[Json]
    asked: list[str]


def code_of(policy: Policy) -> Code:
    """Return the constants in the code of an active Python policy; empty for other policies."""
    found = Code([], [], [])
    if policy.python is None or policy.rules:
        return found
    judge, applies = policy.python.functions
    available = [*judge.__globals__.values(), applies]
    waiting = [value for value in available if isinstance(value, FunctionType) and value.__module__ == judge.__module__]
    for function in waiting:  # the loop appends to it
        parts = list(_parts(function.__code__))
        words = [word for part in parts for constant in part.co_consts for word in _words_in(constant)]
        if function in _CATALOGUE.values():
            found.asked.extend(word for word in words if isinstance(word, str))
        elif function.__module__ == judge.__module__:
            found.own.extend(words)
        else:
            stated = [function.__globals__.get(name) for part in parts for name in part.co_names]
            found.borrowed.extend([*words, *(word for constant in stated for word in _words_in(constant))])
        waiting += [
            called for part in parts for called in _find_called_functions(function, part) if called not in waiting
        ]
    return found


def _parts(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those inside it, such as comprehensions."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)


def _find_called_functions(function: FunctionType, part: CodeType) -> Iterator[FunctionType]:
    """Yield the library functions that a code object refers to, and the methods of the catalog that it calls."""
    known = [function.__globals__.get(name) for name in part.co_names]
    modules = [value for value in known if isinstance(value, ModuleType) and value.__name__.startswith(_LIBRARY)]
    known += [getattr(module, name, None) for module in modules for name in part.co_names]
    if function in _CATALOGUE.values() or "facts" in (*part.co_names, *part.co_varnames, *part.co_freevars):
        known += [_CATALOGUE.get(name) for name in part.co_names]
    for value in map(_unwrap, known):
        if value is not None and value.__module__.startswith(_LIBRARY):
            yield value


def _unwrap(value: object) -> FunctionType | None:
    """Return the function inside a cached function or a method; None for other values."""
    value = getattr(value, "__wrapped__", None) or getattr(value, "func", None) or value
    return value if isinstance(value, FunctionType) else None


#: The methods of the catalog, by name.
_CATALOGUE = {name: function for name, value in vars(Facts).items() if (function := _unwrap(value))}


def _words_in(constant: object) -> Iterator[Json]:
    if isinstance(constant, tuple | frozenset | dict):
        for member in (*constant, *constant.values()) if isinstance(constant, dict) else constant:
            yield from _words_in(member)
    is_word = isinstance(constant, str) and len(constant) <= LONGEST and constant.count(" ") < 3
    if is_word or (isinstance(constant, int | float) and not isinstance(constant, bool)):
        yield constant  # type: ignore[misc]  # a text or a number


#: The longest list that is drawn for its length.
_LONGEST_LIST = 12
#: The longest chain of variables that is followed.
_STEPS = 4

_Path = tuple[str, ...]


class PolicyRead(NamedTuple):
    """A place in `input`, as the keys of its path (`*`: any member), and the constants near it."""

    path: _Path
    near: tuple[Json, ...]


def reads_of(trees: Sequence[Module]) -> Iterator[PolicyRead]:
    """Yield every place that the modules of a package read, once per condition."""
    variables = _variables(trees)
    bound = ((name, value) for name, value in _assignments(trees) if name not in variables and _is_constant(value))
    named = {name: tuple(constants_of([value])) for name, value in bound}
    for parts, decides in _conditions(trees):
        condition = _Condition(variables)
        for part in parts:
            condition.take(part)
        found = dict.fromkeys([*condition.fetched, *condition.paths])
        said = [*condition.constants, *(word for name in condition.names for word in named.get(name, ()))]
        near = tuple(sorted(said, key=lambda word: not isinstance(word, str)))
        if condition.says_logic or (decides and not near):
            near += (True, False)
        for path in found:
            yield PolicyRead(path, tuple(_lists(near)) if path in condition.counted else near)


def constants_of(nodes: object) -> Iterator[Json]:
    """Yield the quoted texts and the numbers of nodes, in order."""
    for node in walk(nodes):
        if isinstance(node, Number):
            yield json.loads(node.text)
        elif isinstance(node, Scalar) and isinstance(node.value, str) and node.end - node.start > len(node.value):
            yield node.value


@dataclass
class _Condition:
    """The variables and places in one condition.

    Attributes:
        variables: the variables for parts of `input`.
        fetched: the places that it reads with `object.get`.
        paths: the places that it reads in other ways.
        counted: the places whose members it counts.
    """

    variables: Mapping[str, _Path]
    fetched: list[_Path] = field(default_factory=list)
    paths: list[_Path] = field(default_factory=list)
    counted: set[_Path] = field(default_factory=set)
    constants: list[Json] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    says_logic: bool = False

    def take(self, node: Node) -> None:
        """Add the variables and places of a node, but not those of conditions inside it."""
        if isinstance(node, Scalar | Number):
            self._constant(node)
        elif isinstance(node, Var | Ref):
            self._reference(node)
        elif isinstance(node, Call):
            self._call(node)
        elif isinstance(node, Object):
            self._object(node)
        elif not isinstance(node, Expr):
            self._below(node)

    def _below(self, node: Node) -> None:
        for part in parts_of(node):
            self.take(part)

    def _object(self, node: Object) -> None:
        """Add the values; the keys, and the texts of a denial, are not compared with anything."""
        constants, says_logic = [*self.constants], self.says_logic
        for _, value in node.items:
            self.take(value)
        if any(_key(key) == "msg" for key, _ in node.items):
            self.constants, self.says_logic = constants, says_logic

    def _constant(self, node: Scalar | Number) -> None:
        if isinstance(node, Number):
            self.constants.append(json.loads(node.text))
        elif isinstance(node.value, str) and node.value:
            self.constants.append(node.value)
        elif isinstance(node.value, bool):
            self.says_logic = True

    def _reference(self, node: Var | Ref) -> None:
        root = node.head if isinstance(node, Ref) else node
        if isinstance(root, Var):
            self.names.append(root.name)
        else:
            self.take(root)
        if path := path_of(node, self.variables):
            self.paths.append(path)
        for part in node.path if isinstance(node, Ref) else ():
            if not isinstance(part, Scalar | Var):
                self.take(part)

    def _call(self, node: Call) -> None:
        name, arguments = dotted_name(node.operator), node.arguments
        if name == "count" and arguments and (path := path_of(arguments[0], self.variables)):
            self.counted.add(path)
        if name == "object.get" and len(arguments) == 3:
            path = path_of(node, self.variables)
            if path is not None:
                self.fetched.append(path)
                arguments = arguments[2:]
        for part in arguments:
            self.take(part)


def _conditions(trees: Iterable[Module]) -> Iterator[tuple[list[Node], bool]]:
    """Yield the nodes of each condition and head, and whether it decides an outcome, unlike parts of denials."""
    for node in walk([tree.rules for tree in trees]):
        if isinstance(node, Expr):
            yield list(parts_of(node)), True
        elif isinstance(node, Rule):
            yield [part for part in (node.head.key, node.head.value) if part is not None], node.head.key is None


def _assignments(trees: Iterable[Module]) -> Iterator[tuple[str, Node]]:
    """Yield the names that bodies and rules assign, with their values."""
    for rule in (rule for tree in trees for rule in tree.rules):
        head = rule.head
        if isinstance(head.ref.head, Var) and head.value is not None and head.args is None and not head.ref.path:
            yield head.ref.head.name, head.value
        for node in walk(rule):
            if isinstance(node, Call) and dotted_name(node.operator) in ("assign", "eq"):
                target, value = node.arguments
                if isinstance(target, Var):
                    yield target.name, value


def _list_members(trees: Iterable[Module]) -> Iterator[tuple[str, Node]]:
    """Yield the variables for members, with the collections."""
    for node in walk([tree.rules for tree in trees]):
        if isinstance(node, SomeIn) and isinstance(variable := node.member.arguments[-2], Var):
            yield variable.name, node.member.arguments[-1]
        elif isinstance(node, Every):
            yield node.value.name, node.domain


def _variables(trees: Sequence[Module]) -> dict[str, _Path]:
    """Return the places of variables; a name for several places has the first, which is good enough for generators."""
    known: dict[str, _Path] = {"input": ()}
    for tree in trees:
        roots = {name: path.split(".") for name, path in aliases_of(tree).items()}
        known |= {name: tuple(path) for name, (root, *path) in roots.items() if root == "input"}
    members, bound = list(_list_members(trees)), list(_assignments(trees))
    for _ in range(_STEPS):
        before = len(known)
        for name, holder in members:
            path = path_of(holder, known)
            if path is not None and name not in known:
                known[name] = (*path, "*")
        for name, value in bound:
            condition = _Condition(known)
            condition.take(value)
            path = next(iter([*condition.fetched, *condition.paths]), None)
            if path and name not in known:
                known[name] = path
        if len(known) == before:
            break
    return known


def path_of(node: Node, variables: Mapping[str, _Path]) -> _Path | None:
    """Return the place of a reference or a call of `object.get`; None if it is not in `input`."""
    if isinstance(node, Var):
        return variables.get(node.name)
    if isinstance(node, Call) and dotted_name(node.operator) == "object.get" and len(node.arguments) == 3:
        holder, key, _ = node.arguments
        # A computed key can be one key or a path of several.
        parts = key.items if isinstance(key, Array) else [key] if isinstance(key, Scalar) else []
    elif isinstance(node, Ref):
        holder, parts = node.head, node.path
    else:
        return None
    path = path_of(holder, variables)
    return None if path is None else (*path, *map(_key, parts))


def _key(part: Node) -> str:
    return part.value if isinstance(part, Scalar) and isinstance(part.value, str) else "*"


def _is_constant(value: Node) -> bool:
    return all(isinstance(node, Scalar | Number | Array | Set | Object) for node in walk(value))


def _lists(near: Iterable[Json]) -> Iterator[Json]:
    """Yield lists about as long as some numbers."""
    for number in near:
        if isinstance(number, int) and not isinstance(number, bool) and number <= _LONGEST_LIST:
            for length in range(max(0, number - 1), number + 2):
                yield [f"x{position}" for position in range(length)]


def pointer_of(path: _Path) -> str:
    """Return a path as a JSON Pointer."""
    return "".join(f"/{escaped(key)}" for key in path)
