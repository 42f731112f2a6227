"""The mutants of a policy, and the bundles with a mutant in place of its policy."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import get_args

import orjson
import yaml

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.analysis import analysis_of, is_reference_to
from policyeng.bundle.discovery import policies_of
from policyeng.bundle.header import Verdict
from policyeng.bundle.rego_trees import tree_of
from policyeng.errors import BundleError
from policyeng.evaluation.pointers import values_at
from policyeng.models import JsonObject, lowered
from policyeng.testing.observed_reads import observe
from policyeng.verify.generators.estates import EstateGenerator
from policyeng.verify.mutation.rego import (
    REPORTED,
    Mutant,
    Mutation,
    MutationTargets,
    Spoken,
    TextEdit,
    mutants,
    mutation,
    rego_mutations,
    without_member,
)

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
    report_texts: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            report_texts += [
                keyword.value for keyword in node.keywords if _is_report_text(node.func.id, keyword.arg or "")
            ]
    names: set[str] = set()
    while True:
        inside = {id(part) for expression in report_texts for part in ast.walk(expression)}
        read = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
        found = {node.id for node in read if id(node) in inside} - {node.id for node in read if id(node) not in inside}
        if found <= names:
            return names
        names |= found
        assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
        report_texts += [
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
            if name == "zip" and keyword.arg == "strict":
                continue  # it checks the lengths, which are equal in a policy without errors
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


#: A block of comments, with the package after it if it is the header.
_COMMENTS = re.compile(r"^((?:#.*\n)++)(\s*package[ \t])?", re.MULTILINE)
_METADATA = re.compile(r"^#[ \t]*METADATA[ \t]*\n", re.MULTILINE)
_INTEGER = re.compile(r"-?\d+")


def header_mutations(source: str, spoken: Spoken) -> Iterator[Mutation]:
    """Yield every fault of the header of a module.

    Text for people (titles, messages, sources), `consults` and the contracts are not changed; laws test the contracts.
    """
    place = _block(source)
    if place is None:
        return
    start, end = place
    # The comment signs become spaces, so every character stays at its place.
    before = re.sub(r"[^\n]", " ", source[:start])
    tree = yaml.compose(before + re.sub(r"^#", " ", source[start:end], flags=re.MULTILINE), yaml.SafeLoader)
    yield from _HeaderMutants(source, spoken).mutations(tree)


def _block(source: str) -> tuple[int, int] | None:
    """Find where the header above the package begins, after its first line, and ends."""
    for comments in _COMMENTS.finditer(source):
        if comments[2] and (first := _METADATA.search(comments[1])):
            return comments.start() + first.end(), comments.end(1)
    return None


class _HeaderMutants:
    def __init__(self, source: str, spoken: Spoken) -> None:
        self._source = source
        self._spoken = spoken

    def mutations(self, tree: yaml.Node | None) -> Iterator[Mutation]:
        fields = {**_fields(tree), **_fields(_fields(tree).get("custom"))}
        yield from self._judges(fields.get("judges"))
        schemas = _fields(fields.get("parameters"))
        for schema in _fields(schemas.get("properties", fields.get("parameters"))).values():
            yield from self._default(_fields(schema).get("default"))

    def _judges(self, judges: yaml.Node | None) -> Iterator[Mutation]:
        entries = _entries(judges)
        if isinstance(judges, yaml.SequenceNode) and len(entries) > 1:
            for index in range(len(entries)):
                yield Mutation("drop a selector", (self._dropped(judges, index),))
        for entry in _list_entries(judges):
            for index, (key, where) in enumerate(_pairs(entry)):
                if key.value == "where":
                    yield Mutation("drop a selector", (self._dropped(entry, index),))
                    yield from self._where(where)

    def _where(self, where: yaml.Node) -> Iterator[Mutation]:
        pairs = _pairs(where)
        for index, (_, allowed) in enumerate(pairs):
            if len(pairs) > 1:
                yield Mutation("drop a selector", (self._dropped(where, index),))
            yield from self._set(allowed)

    def _default(self, default: yaml.Node | None) -> Iterator[Mutation]:
        if isinstance(default, yaml.SequenceNode):
            yield from self._set(default)
        elif isinstance(default, yaml.ScalarNode):
            start, end = _span(default)
            if _INTEGER.fullmatch(default.value):
                for other in (int(default.value) + 1, int(default.value) - 1):
                    yield mutation("shift a number", start, end, str(other))
            elif default.value in ("true", "false"):
                yield mutation("flip a boolean", start, end, "false" if default.value == "true" else "true")
            else:
                quoted = int(default.style in ("'", '"'))
                yield mutation("change a text", end - quoted, end - quoted, "_")

    def _set(self, node: yaml.Node) -> Iterator[Mutation]:
        entries = _entries(node)
        if not isinstance(node, yaml.SequenceNode) or not entries:
            return
        for index in range(len(entries)):
            edit = self._dropped(node, index) if len(entries) > 1 else TextEdit(*_span(node), "[]")
            yield Mutation("narrow a set", (edit,))
        start = _span(entries[0])[0]
        scalars = [entry.value for entry in entries if isinstance(entry, yaml.ScalarNode)]
        word = self._spoken.another(scalars) if _in_brackets(node) and len(scalars) == len(entries) else None
        if word:
            yield mutation("widen a set", start, start, f"{orjson.dumps(word).decode()}, ")

    def _dropped(self, node: yaml.Node, index: int) -> TextEdit:
        """Remove a member of a list or mapping: in brackets with its comma, otherwise with its lines."""
        members = [member if isinstance(member, tuple) else (member, member) for member in node.value]
        spans = [(first.start_mark.index, _end(last)) for first, last in members]
        if _in_brackets(node):
            return without_member(spans, index)
        start = self._source.rindex("\n", 0, spans[index][0]) + 1
        end = self._source.index("\n", spans[index][1]) + 1
        if self._source.count("\n", start, spans[index][0]) == 0 and self._opens(node, index, start):
            # The first key of a mapping in a list follows the hyphen, which stays.
            start = spans[index][0]
            end = spans[index + 1][0] if index + 1 < len(spans) else spans[index][1]
        return TextEdit(start, end, "")

    def _opens(self, node: yaml.Node, index: int, start: int) -> bool:
        line = self._source[start : node.start_mark.index]
        return isinstance(node, yaml.MappingNode) and index == 0 and "-" in line


def _fields(node: yaml.Node | None) -> dict[str, yaml.Node]:
    return {key.value: value for key, value in _pairs(node)}


def _pairs(node: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    return node.value if isinstance(node, yaml.MappingNode) else []


def _entries(node: yaml.Node | None) -> list[yaml.Node]:
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _list_entries(node: yaml.Node | None) -> list[yaml.Node]:
    """Return the entries of a list; a value that is not a list is the only entry."""
    return [node] if isinstance(node, yaml.MappingNode) else _entries(node)


def _span(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.index, node.end_mark.index


def _in_brackets(node: yaml.Node) -> bool:
    return isinstance(node, yaml.CollectionNode) and bool(node.flow_style)


def _end(node: yaml.Node) -> int:
    """Return the end of the last scalar in a node; a block ends where the next one begins."""
    if isinstance(node, yaml.ScalarNode) or _in_brackets(node) or not node.value:
        end: int = node.end_mark.index
        return end
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


#: Longer texts are messages.
_LONGEST = 40


class Written:
    """The original policy, with its cases."""

    def __init__(self, bundle: Bundle, policy: Policy) -> None:
        """Read the policy.

        Raises:
            BundleError: the policy has no cases, or is not UTF-8.
        """
        self.bundle = bundle.only([policy])
        self.policy = policy
        self._file = PurePosixPath(policy.file)
        if policy.cases is None:
            raise BundleError(f"`{policy.id}` has no cases", remedy="add a `cases.yaml` next to it")
        self._root = policy.cases.parents[len(self._file.parent.parts)]
        self._modules = dict(_needed_modules(bundle, policy))
        # Use the verified text of the bundle, because the file can have changed.
        self._source = self._modules[policy.file] if policy.rules else _text_of(policy)

    def mutants(self) -> list[Mutant]:
        """Return all mutants of the policy, in the order of their places.

        Mutants that are obviously the same program as the original or an earlier mutant are left out.
        """
        made = mutants(self.policy.id, self.policy.file, self._source, self._mutations())
        if self.policy.rules:
            return made
        programs = {normalize_source(self._source)}
        return [mutant for mutant in made if _is_new(mutant, programs)]

    def bundle_of(self, mutant: Mutant) -> Bundle:
        """Return the bundle with the mutant as the only active policy.

        Raises:
            BundleError: the mutant is not a policy; compile errors appear in the evaluation.
        """
        read = policies_of(self._root, {self._file: mutant.source.encode()})
        if len(read) != 1:
            raise BundleError("the mutant is not a policy", place=(mutant.file,))
        policy = read[0] if read[0].python else replace(read[0], python=self.policy.python)
        modules = self._modules
        if self.policy.rules:
            if self._tree_of(mutant.source) == self._tree_of(self._source):  # the same program under another header
                return self.bundle.rewritten(policy, modules.items(), self.bundle.digest)
            modules = {**modules, self.policy.file: mutant.source}
        digest = hashlib.sha256(f"{self.bundle.digest} {mutant.source}".encode()).hexdigest()
        return self.bundle.rewritten(policy, modules.items(), digest)

    def _mutations(self) -> Iterator[Mutation]:
        if self.policy.header.evidence:  # it has no text of its own to change
            return
        if not self.policy.rules:
            yield from python_mutations(self._source, self._spoken())
            return
        header, file = self.policy.header, self.policy.file
        yield from header_mutations(self._source, self._spoken())
        places = MutationTargets(observe(self.bundle, self.policy).pointers, tuple(header.parameters), self._spoken())
        yield from rego_mutations(self._source, file in self.bundle.rego_v0, places)

    def _tree_of(self, source: str) -> tuple[object, ...]:
        tree = tree_of(source, self.policy.file in self.bundle.rego_v0)
        return tree.package, tree.imports, tree.rules

    def _spoken(self) -> Spoken:
        estates = EstateGenerator(self.bundle)
        standing = dict(estates.vocabulary.words[self.policy.id].standing)
        for declared in self.policy.header.judges:
            peers = [one for one in estates.baselines.resources.values() if _is_of(one, declared.type)]
            standing |= {
                pointer: tuple(value for one in peers for value in _texts(values_at(one, pointer)))
                for pointer in declared.where
            }
        return Spoken([sorted(set(_texts(values))) for values in standing.values()])


def _is_of(resource: JsonObject, kind: str) -> bool:
    return lowered(str(resource.get("type"))) == lowered(kind)


def _text_of(policy: Policy) -> str:
    try:
        return policy.python.text.decode() if policy.python else ""
    except UnicodeDecodeError as error:
        raise BundleError(f"the policy is not UTF-8: {error}", place=(policy.file,)) from error


def _is_new(mutant: Mutant, programs: set[str]) -> bool:
    """Check whether a Python text is another program than the known ones; syntax errors appear when it is loaded."""
    try:
        program = normalize_source(mutant.source)
    except (SyntaxError, ValueError):
        return True
    new = program not in programs
    programs.add(program)
    return new


def _texts(values: Iterable[object]) -> Iterator[str]:
    """Yield the short texts among values, and among the members of lists."""
    for value in values:
        if isinstance(value, list):
            yield from _texts(value)
        elif isinstance(value, str) and 0 < len(value) <= _LONGEST and not value.startswith("/"):
            yield value


def _needed_modules(bundle: Bundle, policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield the modules that a policy reads, directly or not; the others would only be compiled for every mutant."""
    sources = dict(bundle.modules)
    analyses = {path: analysis_of(text, path in bundle.rego_v0, path) for path, text in bundle.modules}
    waiting = [policy.file] if policy.file in sources else []
    seen = set(waiting)
    for path in waiting:  # the loop appends to it
        yield path, sources[path]
        roots = (read.partition(".") for read in analyses[path].reads)
        reads = [name for root, _, name in roots if root == "data"]
        for other, analysis in analyses.items():
            if other not in seen and any(is_reference_to(read, analysis.package) for read in reads):
                seen.add(other)
                waiting.append(other)
