"""The faults of Python policies and their headers, from the syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set
from itertools import pairwise
from typing import get_args

from policyeng.bundle.header import Verdict
from policyeng.verify.mutation.rego import REPORTED, Mutation, Spoken, mutation, without_member

_COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
}
#: The parts of a header that affect outcomes; the rest is for people, or is tested by laws.
_DECIDING = frozenset({"judges", "parameters", "applies"})
_EVERY_VERDICT: tuple[str, ...] = get_args(Verdict)
#: Keys of a JSON Schema, of which only the default affects outcomes.
_OF_SCHEMAS = frozenset({"default", "items", "properties", "additionalProperties", "minimum", "pattern", "enum"})
_SWAPPED = {"resource": "workspace", "workspace": "resource"}
_QUANTIFIERS = {"all": "any", "any": "all"}


def python_mutations(source: str, spoken: Spoken) -> Iterator[Mutation]:
    """Yield every fault of a Python policy.

    Raises:
        SyntaxError: the module does not parse.
    """
    tree = ast.parse(source)
    yield from _PythonModule(source, spoken, _report_names(tree)).of(tree)


def normalize_source(source: str) -> str:
    """Return a text that is equal for two sources of the same program."""
    return ast.dump(ast.parse(source))


def _report_arguments(called: str) -> Set[str]:
    """Return the arguments of a call that are only text for people; cases check only the path of a denial."""
    if called == "Denial":
        return REPORTED
    return REPORTED | {"path"} if called == "Unknown" else frozenset()


def _is_report_text(called: str, argument: str) -> bool:
    return argument not in _DECIDING if called == "policy" else argument in _report_arguments(called)


def _report_names(tree: ast.AST) -> Set[str]:
    """Return the names that are only used in text for people, or in parts of headers that no case can check."""
    said: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            said += [keyword.value for keyword in node.keywords if _is_report_text(node.func.id, keyword.arg or "")]
    names: set[str] = set()
    while True:
        inside = {id(part) for expression in said for part in ast.walk(expression)}
        read = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
        found = {node.id for node in read if id(node) in inside} - {node.id for node in read if id(node) not in inside}
        if found <= names:
            return names
        names |= found
        assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
        said += [
            node.value
            for node in assigned
            if any(isinstance(target, ast.Name) and target.id in names for target in node.targets)
        ]


class _PythonModule:
    """A visitor of a module: the method `_of_<node name in lower case>` yields the faults of a node."""

    def __init__(self, source: str, spoken: Spoken, reported: Set[str]) -> None:
        self._source = source
        self._lines = source.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._spoken = spoken
        self._report_arguments = reported

    def of(self, node: ast.AST) -> Iterator[Mutation]:
        """Yield the faults of a node and of all nodes inside it."""
        if isinstance(node, ast.Import | ast.ImportFrom | ast.arguments):
            return
        own = getattr(self, f"_of_{type(node).__name__.lower()}", self._below)
        yield from own(node)

    def _below(self, node: ast.AST) -> Iterator[Mutation]:
        for part in ast.iter_child_nodes(node):
            yield from self.of(part)

    def _span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self._place(node.lineno, node.col_offset), self._place(end_line, end_column)

    def _place(self, line: int, column: int) -> int:
        """Return the offset of a column of a line; `ast` counts columns in bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _replaced(self, kind: str, node: ast.expr | ast.stmt, text: str) -> Mutation:
        return mutation(kind, *self._span(node), text)

    def _of_functiondef(self, node: ast.FunctionDef) -> Iterator[Mutation]:
        for decorator in node.decorator_list:
            yield from self.of(decorator)
        for statement in node.body:
            yield from self.of(statement)

    def _of_annassign(self, node: ast.AnnAssign) -> Iterator[Mutation]:
        if node.value is not None:
            yield from self.of(node.value)

    def _of_assign(self, node: ast.Assign) -> Iterator[Mutation]:
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if not names & self._report_arguments:
            yield from self.of(node.value)

    def _of_expr(self, node: ast.Expr) -> Iterator[Mutation]:
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node.value, ast.Yield | ast.YieldFrom):
            yield self._replaced("drop a denial", node, "yield from ()")
        yield from self._below(node)

    def _of_return(self, node: ast.Return) -> Iterator[Mutation]:
        if node.value is None:
            yield self._replaced("drop a rule", node, "pass")
        else:
            yield from self.of(node.value)

    def _of_if(self, node: ast.If | ast.While) -> Iterator[Mutation]:
        yield from self._condition(node.test)
        for statement in (*node.body, *node.orelse):
            yield from self.of(statement)

    _of_while = _of_if

    def _of_ifexp(self, node: ast.IfExp) -> Iterator[Mutation]:
        yield from self._condition(node.test)
        yield from self.of(node.body)
        yield from self.of(node.orelse)

    def _of_comprehension(self, node: ast.comprehension) -> Iterator[Mutation]:
        yield from self.of(node.iter)
        for test in node.ifs:
            yield from self._condition(test)

    def _condition(self, test: ast.expr) -> Iterator[Mutation]:
        yield self._replaced("drop a condition", test, "True")
        yield self._replaced("drop a rule", test, "False")
        yield from self.of(test)

    def _of_boolop(self, node: ast.BoolOp) -> Iterator[Mutation]:
        neutral = "True" if isinstance(node.op, ast.And) else "False"
        for operand in node.values:
            yield self._replaced("drop a condition", operand, neutral)
            yield from self.of(operand)

    def _of_unaryop(self, node: ast.UnaryOp) -> Iterator[Mutation]:
        if isinstance(node.op, ast.Not):
            yield self._replaced("negate a condition", node, f"bool({self._text(node.operand)})")
        yield from self.of(node.operand)

    def _of_compare(self, node: ast.Compare) -> Iterator[Mutation]:
        operands = [node.left, *node.comparators]
        for index, operator in enumerate(node.ops):
            written, others = _COMPARISONS[type(operator)]
            first = written.split()[0]
            start = self._source.index(first, self._span(operands[index])[1])
            last = written.split()[-1]
            end = self._source.index(last, start) + len(last)
            for other in others:
                yield mutation("flip a comparison", start, end, other)
        for operand in operands:
            yield from self.of(operand)

    def _of_attribute(self, node: ast.Attribute) -> Iterator[Mutation]:
        end = self._span(node)[1]
        if node.attr in _SWAPPED and isinstance(node.value, ast.Name):
            yield mutation("swap a path", end - len(node.attr), end, _SWAPPED[node.attr])
        yield from self.of(node.value)

    def _of_call(self, node: ast.Call) -> Iterator[Mutation]:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in _QUANTIFIERS:
            yield self._replaced("every to some", node.func, _QUANTIFIERS[name])
        if isinstance(node.func, ast.Attribute):
            yield from self.of(node.func)
        fallback = node.args[1] if name == "get" and len(node.args) == 2 else None
        # The first argument of `once` is a key, and any other key is equivalent.
        for argument in node.args[1:] if name == "once" else node.args:
            yield from self._fallback(argument) if argument is fallback else self.of(argument)
        for keyword in node.keywords:
            if name == "policy" and keyword.arg not in _DECIDING:
                continue
            if keyword.arg not in _report_arguments(name):
                yield from self.of(keyword.value)

    def _fallback(self, node: ast.expr) -> Iterator[Mutation]:
        text = self._text(node)
        if text in ("None", "{}", "[]", "()", '""'):
            yield self._replaced("change a fallback", node, '"_"' if text == "None" else "None")
        else:
            yield from self.of(node)

    def _of_constant(self, node: ast.Constant) -> Iterator[Mutation]:
        end = self._span(node)[1]
        if isinstance(node.value, bool):
            yield self._replaced("flip a boolean", node, str(not node.value))
        elif isinstance(node.value, int | float):
            for shifted in (node.value + 1, node.value - 1):
                yield self._replaced("shift a number", node, str(shifted))
        elif node.value in _EVERY_VERDICT:
            for other in _EVERY_VERDICT:
                yield mutation("change an absence", end - 1 - len(node.value), end - 1, other)
        elif isinstance(node.value, str) and node.lineno == node.end_lineno and " " not in node.value:
            yield mutation("change a text", end - 1, end - 1, "_")

    def _of_joinedstr(self, node: ast.JoinedStr) -> Iterator[Mutation]:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                yield from self.of(part.value)

    def _of_list(self, node: ast.List | ast.Set | ast.Tuple) -> Iterator[Mutation]:
        if isinstance(getattr(node, "ctx", None), ast.Store):
            return
        constants = [part.value for part in node.elts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        spans = [self._span(part) for part in node.elts]
        if len(node.elts) == 1 and constants:
            yield self._replaced("narrow a set", node, "set()" if isinstance(node, ast.Set) else "[]")
        elif (constants or isinstance(node, ast.List)) and not self._in_brackets(spans):
            for index in range(len(spans)):
                yield Mutation("narrow a set", (without_member(spans, index),))
        if constants and len(constants) == len(node.elts):
            yield from self._widened(constants, node)
            return
        yield from self._below(node)

    _of_set = _of_tuple = _of_list

    def _in_brackets(self, spans: Sequence[tuple[int, int]]) -> bool:
        """Check whether a member is in brackets, which are not part of its span, so that it cannot be removed."""
        between = [self._source[end:start] for (_, end), (start, _) in pairwise(spans)]
        return any("(" in text or ")" in text for text in between)

    def _widened(self, texts: Sequence[str], node: ast.List | ast.Set | ast.Tuple) -> Iterator[Mutation]:
        start = self._span(node.elts[0])[0]
        word = self._spoken.another(texts)
        if word:
            yield mutation("widen a set", start, start, f"{word!r}, ")

    def _of_dict(self, node: ast.Dict) -> Iterator[Mutation]:
        names = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        schema = not _OF_SCHEMAS.isdisjoint(names)
        if not schema and len(node.keys) > 1 and all(node.keys):
            spans = [
                (self._span(key)[0], self._span(value)[1])
                for key, value in zip(node.keys, node.values, strict=True)
                if key
            ]
            for index in range(len(spans)):
                yield Mutation("narrow a set", (without_member(spans, index),))
        for name, value in zip(names, node.values, strict=True):
            if not schema or name == "default":
                yield from self.of(value)

    def _text(self, node: ast.expr) -> str:
        return self._source[slice(*self._span(node))]
