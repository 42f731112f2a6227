"""Read the header of a Python policy from the syntax tree of its module, without running any of it.

A header may use literals, f-strings, list comprehensions without conditions, and names: of constants that the module
defines once at its top level, and of constants that it imports from `policyeng.facts` or `policyeng.models`.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from policyeng.errors import BundleError

_REMEDY = "write it with literals, and with constants of the module that are literals"
#: Modules of ours whose constants headers may name.
_OURS = ("policyeng.facts", "policyeng.models")
#: Where `policy` can be imported from.
_HOMES = frozenset({"policyeng", "policyeng.bundle", "policyeng.bundle.policy_types"})
#: The maximum size of a header, in nodes and characters: constants that name each other can double it line by line.
_MOST = 1_000_000
_NONE: Mapping[str, object] = MappingProxyType({})


class StatedHeader(NamedTuple):
    """What `@policy(...)` states in the text of a module: the fields of the header, and whether there is `applies`."""

    fields: Mapping[str, object]
    has_applies: bool


def read_header(content: bytes, place: str) -> StatedHeader:
    """Return what the one `@policy(...)` of a module states.

    Raises:
        BundleError: the module does not compile, does not declare exactly one policy, or states its header with
            something else than literals and constants; names the line.
    """
    try:
        module = ast.parse(content, place)
        compile(content, place, "exec", dont_inherit=True)  # finds more faults than the parser does
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BundleError(f"the module cannot be loaded: {type(error).__name__}: {error}", place=(place,)) from error
    declared = [call for function in module.body for call in _policies_of(function, _names_of_policy(module))]
    if len(declared) != 1:
        what = f"{len(declared)} functions carry `@policy(...)`"
        raise BundleError(what, place=(place,), remedy="declare exactly one, at the top level of the module")
    return _HeaderEvaluator(module, place).stated(declared[0])


def _names_of_policy(module: ast.Module) -> frozenset[str]:
    """Return the expressions by which a module can name the decorator, such as `policy` or `policyeng.policy`."""
    names = set()
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module in _HOMES:
            names |= {alias.asname or alias.name for alias in node.names if alias.name == "policy"}
            names |= {f"{alias.asname or alias.name}.policy" for alias in node.names if alias.name == "bundle"}
            names |= {"policy" for alias in node.names if alias.name == "*"}
        elif isinstance(node, ast.Import):
            names |= {f"{alias.asname or alias.name}.policy" for alias in node.names if alias.name in _HOMES}
    return frozenset(names)


def _policies_of(node: ast.stmt, names: frozenset[str]) -> Iterator[ast.Call]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) in names:
                yield decorator


class _HeaderEvaluator:
    """Evaluates the expressions of one header; everything counts against one limit."""

    def __init__(self, module: ast.Module, place: str) -> None:
        self._place = place
        self._left = _MOST
        self._imported: dict[str, tuple[str, str]] = {}
        self._constants: dict[str, ast.expr | None] = {}  # None for a name that is bound in another way, or again
        for statement in module.body:
            for name, value in _list_bindings(statement):
                self._constants[name] = None if name in self._constants else value
            if isinstance(statement, ast.ImportFrom) and not statement.level and statement.module:
                home = statement.module
                self._imported |= {alias.asname or alias.name: (home, alias.name) for alias in statement.names}

    def stated(self, call: ast.Call) -> StatedHeader:
        if call.args:
            raise self._refused(call.args[0])
        fields: dict[str, object] = {}
        has_applies = False
        for keyword in call.keywords:
            if keyword.arg == "applies":
                has_applies = not (isinstance(keyword.value, ast.Constant) and keyword.value.value is None)
                continue
            try:
                value = self._value(keyword.value, _NONE)
            except RecursionError:
                raise self._refused(keyword.value) from None
            if keyword.arg is not None:
                fields[keyword.arg] = value
            elif isinstance(value, dict) and all(isinstance(name, str) for name in value) and "applies" not in value:
                fields |= value
            else:
                raise self._refused(keyword.value)
        return StatedHeader(fields, has_applies)

    def _value(self, node: ast.expr, local: Mapping[str, object]) -> object:
        self._count(1, node)
        read: Callable[[ast.expr, Mapping[str, object]], object] | None = getattr(
            self, f"_of_{type(node).__name__.lower()}", None
        )
        if read is None:
            raise self._refused(node)
        return read(node, local)

    def _of_constant(self, node: ast.Constant, _: Mapping[str, object]) -> object:
        if node.value is not None and not isinstance(node.value, str | int | float):
            raise self._refused(node)
        self._count(len(node.value) if isinstance(node.value, str) else 1, node)
        return node.value

    def _of_list(self, node: ast.List, local: Mapping[str, object]) -> object:
        return list(self._elements(node.elts, local))

    def _of_tuple(self, node: ast.Tuple, local: Mapping[str, object]) -> object:
        return tuple(self._elements(node.elts, local))

    def _of_dict(self, node: ast.Dict, local: Mapping[str, object]) -> object:
        made: dict[object, object] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            member = self._value(value, local)
            if key is not None:
                name = self._value(key, local)
                if not isinstance(name, str | int | float | None):
                    raise self._refused(key)
                made[name] = member
            elif isinstance(member, dict):
                made |= member
            else:
                raise self._refused(value)
        return made

    def _of_unaryop(self, node: ast.UnaryOp, local: Mapping[str, object]) -> object:
        value = self._value(node.operand, local)
        if not isinstance(node.op, ast.USub) or not isinstance(value, int | float) or isinstance(value, bool):
            raise self._refused(node)
        return -value

    def _of_binop(self, node: ast.BinOp, local: Mapping[str, object]) -> object:
        left, right = self._value(node.left, local), self._value(node.right, local)
        if isinstance(node.op, ast.Add):
            if isinstance(left, str) and isinstance(right, str):
                return left + right
            if isinstance(left, list) and isinstance(right, list):
                return left + right
            if isinstance(left, tuple) and isinstance(right, tuple):
                return left + right
        raise self._refused(node)

    def _of_joinedstr(self, node: ast.JoinedStr, local: Mapping[str, object]) -> object:
        return "".join(str(self._value(part, local)) for part in node.values)

    def _of_formattedvalue(self, node: ast.FormattedValue, local: Mapping[str, object]) -> object:
        value = self._value(node.value, local)
        is_short = isinstance(value, str) or (isinstance(value, int) and value.bit_length() <= 64)
        if node.conversion != -1 or node.format_spec is not None or not is_short:
            raise self._refused(node)
        return value

    def _of_listcomp(self, node: ast.ListComp, local: Mapping[str, object]) -> object:
        scopes: list[Mapping[str, object]] = [local]
        for generator in node.generators:
            if generator.ifs or generator.is_async or not isinstance(generator.target, ast.Name):
                raise self._refused(node)
            name, source = generator.target.id, generator.iter
            scopes = [{**scope, name: each} for scope in scopes for each in self._iterated(source, scope)]
        return [self._value(node.elt, scope) for scope in scopes]

    def _of_name(self, node: ast.Name, local: Mapping[str, object]) -> object:
        if node.id in local:
            value = local[node.id]
            self._count(len(repr(value)), node)
            return value
        constant = self._constants.get(node.id)
        if constant is not None and node.id not in self._imported:
            return self._value(constant, _NONE)
        home, name = self._imported.get(node.id, ("", ""))
        if node.id in self._constants or not any(home == ours or home.startswith(f"{ours}.") for ours in _OURS):
            raise self._refused(node)
        try:
            value = getattr(importlib.import_module(home), name)
        except (ImportError, AttributeError):
            raise self._refused(node) from None
        if not _is_plain(value):
            raise self._refused(node)
        self._count(len(repr(value)), node)
        return value

    def _elements(self, nodes: list[ast.expr], local: Mapping[str, object]) -> Iterator[object]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from self._iterated(node.value, local)
            else:
                yield self._value(node, local)

    def _iterated(self, node: ast.expr, local: Mapping[str, object]) -> Iterator[object]:
        value = self._value(node, local)
        if not isinstance(value, list | tuple | dict):
            raise self._refused(node)
        yield from value

    def _count(self, more: int, node: ast.expr) -> None:
        self._left -= more
        if self._left < 0:
            place = f"{self._place}:{node.lineno}"
            raise BundleError("the header is too large", place=(place,), remedy="shorten its constants")

    def _refused(self, node: ast.expr) -> BundleError:
        try:
            text = " ".join(ast.unparse(node).split())
        except RecursionError:
            text = "..."
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        what = f"the header cannot be read without running the module: `{shown}`"
        return BundleError(what, place=(f"{self._place}:{node.lineno}",), remedy=_REMEDY)


def _list_bindings(statement: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the names that a statement at the top level of a module binds, with the expression where it is one."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _assigned(target, statement.value)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield from _assigned(statement.target, statement.value)
    elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name, None
    elif not isinstance(statement, ast.Import | ast.ImportFrom):
        stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
        yield from ((node.id, None) for node in stored if not isinstance(node.ctx, ast.Load))


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        alike = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        parts = value.elts if alike and isinstance(value, ast.Tuple | ast.List) else [None] * len(target.elts)
        starred = any(isinstance(node, ast.Starred) for node in chain(target.elts, filter(None, parts)))
        for one, part in zip(target.elts, parts, strict=True):
            if part is None or starred:
                yield from ((node.id, None) for node in ast.walk(one) if isinstance(node, ast.Name))
            else:
                yield from _assigned(one, part)


def _is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(member) for key, member in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)
