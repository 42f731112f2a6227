"""Compile resolved rules to Python functions.

Each rule is a function; each body is a loop that runs once (`while True`), so that an expression that fails continues
with `break` or, within a loop over a collection, with `continue`. The text that is compiled has names of this module:
what a policy contains is a constant with a name (`k3`). The syntax tree of the text gets the lines of the Rego file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, TypeVar

from policyeng.rego.assembly import GeneratedModule, GeneratedProgram, assemble
from policyeng.rego.budget import compile_at, spend
from policyeng.rego.builtins import NOW, BuiltinError, UnsupportedError, load_pattern, signatures
from policyeng.rego.checker import Checker, terms_of, walk_expressions
from policyeng.rego.compiled import Compiled, Mask, PartialRule
from policyeng.rego.errors import Diagnostic, ModuleText, RegoError
from policyeng.rego.numbers import NumberTooLargeError, read_number
from policyeng.rego.resolver import Branch, Definition, operator_name
from policyeng.rego.runtime import look_up
from policyeng.rego.syntax import (
    Array,
    ArrayComprehension,
    Body,
    Call,
    Every,
    Expr,
    Logical,
    Not,
    Number,
    Object,
    ObjectComprehension,
    Ref,
    Scalar,
    Set,
    SetComprehension,
    Some,
    SomeIn,
    Term,
    Var,
    constant_names,
    root_name,
    walk_terms,
)
from policyeng.rego.tree import DataNode, path_text
from policyeng.rego.values import UNDEFINED, Value, WrittenDecimal, WrittenFloat, equal, make_set, to_key

#: CPython takes 20 nested loops and handlers.
_DEEPEST = 12
#: Members of a comprehension that count for nothing.
_UNCHARGED = 100
#: Characters of generated text that count as a step.
_CHARACTERS_OF_A_STEP = 32
_SCALARS = frozenset(("str", "int", "float", "bool", "NoneType"))
#: Rules that a call may evaluate without counting them as steps, and how often a body is taken to name the same one.
_FEW_CALLS = 100_000
_CALLS_OF_ONE = 4
_LONGEST_INLINED = 14
_MOST_INLINED = 3
_COMPREHENSIONS = (ArrayComprehension, SetComprehension, ObjectComprehension)
_KINDS = {ArrayComprehension: "list", SetComprehension: "set", ObjectComprehension: "dict"}
_COMPARISONS = {"lt": "is_less({0}, {1})", "gt": "is_less({1}, {0})", "lte": "not is_less({1}, {0})"}
_COMPARISONS["gte"] = "not is_less({0}, {1})"
_SIGNS = {"lt": "<", "gt": ">", "lte": "<=", "gte": ">="}
_PRINTS = frozenset(("print", "internal.print"))
_TYPE_CHECKS = {"is_string": "str", "is_object": "dict", "is_array": "list", "is_set": "set", "is_boolean": "bool"}
#: The methods that Python's strings have for builtins, and the type of what they return.
_METHODS = {
    "endswith": ("endswith", "bool"),
    "startswith": ("startswith", "bool"),
    "trim_prefix": ("removeprefix", "str"),
    "trim_suffix": ("removesuffix", "str"),
}
#: Builtins that always have a value.
_TOTAL = frozenset(
    ("eq", "equal", "neq", "lt", "lte", "gt", "gte", "internal.member_2", "internal.member_3", "is_null", *_TYPE_CHECKS)
)
#: What Go trims from ASCII text; Python would trim separators, too.
_SPACES = "\t\n\v\f\r "
_TRUE = Scalar(0, 0, value=True)
_RESULTS = {"string": "str", "boolean": "bool", "array": "list", "object": "dict", "set": "set"}


_Key = TypeVar("_Key")


class _Names(dict[_Key, str]):
    """Names by what they are for, whose changes since a mark can be undone; to copy all for each block takes too long.

    It is changed with `[...] =` alone.
    """

    def __init__(self, names: dict[_Key, str] | None = None) -> None:
        super().__init__(names or {})
        self.changes: list[tuple[_Key, str | None]] = []

    def __setitem__(self, key: _Key, name: str) -> None:
        self.changes.append((key, self.get(key)))
        super().__setitem__(key, name)

    def mark(self) -> int:
        return len(self.changes)

    def undo(self, mark: int) -> None:
        while len(self.changes) > mark:
            key, before = self.changes.pop()
            if before is None:
                super().__delitem__(key)
            else:
                super().__setitem__(key, before)


@dataclass(slots=True)
class _Text:
    source: ModuleText
    lines: list[str] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)


class Compiler:
    """Compiles the rules of a program.

    Attributes:
        root: the rules, with ordered bodies.
    """

    def __init__(
        self,
        root: DataNode,
        checker: Checker,
        data: Value,
        *,
        print_calls: bool = False,
        inlines: bool = True,
        covers: bool = False,
        lenient: Collection[str] = (),
    ) -> None:
        """Take the rules and what the checker found about them.

        Args:
            root: the rules, with ordered bodies.
            checker: what has checked them.
            data: base data, of which constant references become constants.
            print_calls: write calls of `print`.
            inlines: write small functions in the place of their calls, whose lines they then have.
            covers: write calls of `COVER` with the file and offset of each expression and head that is evaluated.
            lenient: the files in which a builtin that fails is undefined, and not an error.
        """
        self.writer: type[_Writer] = _Writer
        self.inlines = inlines
        self.covers = covers
        self.lenient = lenient
        #: The names that local variables of each function have in the Rego text, for debuggers.
        self.written: dict[str, dict[str, str]] = {}
        self.data = data
        self.base: dict[tuple[str, ...], str] = {}
        self.root = root
        self.checker = checker
        self.print_calls = print_calls
        self.scalars: list[Any] = []
        self.scalar_names: dict[tuple[type, Any], str] = {}
        self.constants: list[Any] = []
        self.builtins: dict[str, str] = {}
        self.patterns: dict[str, str] = {}
        self.rules: dict[tuple[str, ...], str] = {}
        self.parts: dict[tuple[str, ...], PartialRule] = {}
        self.pending: list[tuple[DataNode, Mask]] = []
        self.texts: dict[str, _Text] = {}
        self.count = 0
        self.expansions: dict[tuple[str, ...], int] = {}
        self.pure = self._find_pure()

    def renewed(self, checker: Checker) -> Compiler:
        """Return a compiler of the same rules and form, for what the checker has found since."""
        return Compiler(
            self.root,
            checker,
            self.data,
            print_calls=self.print_calls,
            inlines=self.inlines,
            covers=self.covers,
            lenient=self.lenient,
        )

    def compile(self) -> Compiled:
        """Return the code of every rule."""
        for node in self.root.below():
            if node.is_rule or node.dynamic:
                self.function_of(node)
        self.function_of(self.root)
        self.finish()
        code = [self._code(text) for text in self.texts.values()]
        functions = frozenset(node.path for node in self.root.below() if node.is_function)
        names = self.base, self.builtins, self.patterns, self.rules
        return Compiled(code, self.scalars, self.constants, *names, functions, self.parts)

    def generate(self) -> GeneratedProgram:
        """Return the Python text of every rule, which other versions of Python can compile."""
        rest = self.compile().dump_rest()
        return GeneratedProgram([self._generated(text) for text in self.texts.values()], self.written, rest)

    def compile_query(self, source: ModuleText, body: Body, variables: dict[str, str]) -> tuple[list[CodeType], str]:
        """Return the code of a query, and the name of the function that lists the values of its variables."""
        self.texts = {}
        name = self.fresh("q")
        writer = self.writer(self, source, ordered=True)
        writer.line(f"def {name}():")
        with writer.indented():
            writer.begin_parts("found = []")
            with writer.part():

                def succeed() -> None:
                    bound = writer.bound
                    parts = [
                        f"{self.scalar(written)}: {bound[name]}" for written, name in variables.items() if name in bound
                    ]
                    writer.line(f"found.append({{{', '.join(parts)}}})")

                writer.body(body, succeed)
            writer.return_found()
        self.emit(writer)
        self.finish()
        return [self._code(text) for text in self.texts.values()], name

    def compile_part(self, node: DataNode, count: int) -> list[CodeType]:
        """Return the code that evaluates a part of a set or object by its first keys; none where it is known."""
        self.texts = {}
        self.part_of(node, tuple(range(min(count, length_of(node)))))
        self.finish()
        return [self._code(text) for text in self.texts.values()]

    def finish(self) -> None:
        """Write the functions that others need."""
        while self.pending:
            node, mask = self.pending.pop()
            try:
                self._write_part(node, mask) if mask else self._write(node)
            except (RecursionError, NumberTooLargeError) as error:
                first = (node.definitions or node.dynamic)[0]
                message = str(error) if isinstance(error, NumberTooLargeError) else "the rule is nested too deeply"
                raise RegoError(Diagnostic("rego_compile_error", message, first.source, first.start)) from error

    # Names.

    def fresh(self, prefix: str) -> str:
        """Return a name that nothing else has."""
        self.count += 1
        return f"{prefix}{self.count}"

    def scalar(self, value: Value) -> str:
        """Return the name of a scalar."""
        if type(value) in {WrittenDecimal, WrittenFloat}:
            return self.constant(value)
        key = (type(value), value)
        name = self.scalar_names.get(key)
        if name is None:
            name = self.scalar_names[key] = f"k{len(self.scalars)}"
            self.scalars.append(value)
        return name

    def constant(self, value: Value) -> str:
        """Return the name of a constant."""
        self.constants.append(value)
        return f"K{len(self.constants) - 1}"

    def builtin(self, name: str) -> str:
        """Return the name of the function of a builtin."""
        return self.builtins.setdefault(name, f"b{len(self.builtins)}")

    def pattern(self, text: str) -> str | None:
        """Return the name of what matches a constant regular expression; None where it is none."""
        if text not in self.patterns:
            try:
                load_pattern(text)
            except (BuiltinError, UnsupportedError):
                return None
            self.patterns[text] = f"p{len(self.patterns)}"
        return self.patterns[text]

    def function_of(self, node: DataNode) -> str:
        """Return the name of the function of a rule or document; write it later."""
        if node.path not in self.rules:
            self.rules[node.path] = self.fresh("r")
            if node.dynamic or _is_set(node):
                self.parts[node.path] = length_of(node), _is_set(node), self._is_pure(node), {}
            self.pending.append((node, ()))
        return self.rules[node.path]

    def part_of(self, node: DataNode, mask: Mask) -> str:
        """Return the name of the function that evaluates a part of a document by some of its keys; write it later.

        Args:
            node: a set, an object that rules with variables in their heads build, or a document below one.
            mask: which parts of a path below the node are arguments of the function, beginning with the first.
        """
        self.function_of(node)
        names = self.parts.setdefault(node.path, (length_of(node), False, self._is_pure(node), {}))[3]
        if mask not in names:
            names[mask] = self.fresh("r")
            self.pending.append((node, mask))
        return names[mask]

    def emit(self, writer: _Writer) -> None:
        """Add what has been written to the code of its module."""
        for outlined in writer.outlined:
            self.emit(outlined)
        text = self.texts.setdefault(writer.source.file, _Text(writer.source))
        text.lines += writer.lines
        text.places += writer.places

    def _find_pure(self) -> set[tuple[str, ...]]:
        """Return the paths of rules that read neither the input nor what `with` replaces."""
        impure = set(self.checker.reads_input)
        readers: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for path, reads in self.checker.reads.items():
            for read in reads:
                readers.setdefault(read, set()).add(path)
        waiting = list(impure)
        while waiting:
            for reader in readers.get(waiting.pop(), ()):
                if reader not in impure:
                    impure.add(reader)
                    waiting.append(reader)
        return set(self.checker.reads) - impure

    def _expansion(self, path: tuple[str, ...]) -> int:
        """Return how many rules one call of a rule evaluates at most, without those that loops repeat."""
        # No rule reads itself: the checker has refused it. Chains of rules may be longer than calls can nest.
        waiting = [path]
        while waiting:
            reads = self.checker.reads.get(waiting[-1], ())
            unknown = [read for read in reads if read not in self.expansions]
            waiting += unknown
            if not unknown:
                total = sum(min(self.expansions[read], 1 << 30) for read in reads)
                self.expansions[waiting.pop()] = 1 + total * _CALLS_OF_ONE
        return self.expansions[path]

    def replaced_by(self, path: tuple[str, ...]) -> bool:
        """Return whether a modifier may replace a path or what it is in or contains."""
        return any(
            isinstance(target, tuple) and (target[: len(path)] == path or path[: len(target)] == target)
            for target in self.checker.replaced
        )

    # Functions.

    def _write(self, node: DataNode) -> None:
        definitions = node.definitions or node.dynamic
        if definitions:
            compile_at(definitions[0].source, definitions[0].start)
        source = definitions[0].source if definitions else ModuleText("<data>", "")
        name = self.rules[node.path]
        writer = self.writer(self, source)
        if definitions:
            writer.at(definitions[0].start)
        arity = len(node.definitions[0].arguments or ()) if node.is_function else 0
        arguments = ", ".join(f"a{index}" for index in range(arity))
        is_document = not node.is_rule or bool(node.dynamic)
        is_set = node.is_rule and node.definitions[0].key is not None
        # What is remembered would hide how often a builtin fails that is undefined then.
        is_lenient = any(definition.source.file in self.lenient for definition in node.definitions)
        is_remembered = node.is_function and not is_lenient and self.is_remembered(node)
        if not node.is_function:
            cache, key = self.cache_of(node), self.scalar(name)
            writer.line(f"def {name}():")
            with writer.indented():
                if self.replaced_by(node.path) and self.checker.replaced:
                    writer.line(f"found = replaced({self.constant(list(node.path))})")
                    writer.line("if found is not MISSING: return found")
                writer.line(f"found = {cache}.get({key}, MISSING)")
                made = (
                    f"finish({name}_(), look_up(DATA, {self.constant(list(node.path))}))"
                    if is_document
                    else f"make_set({name}_())"
                    if is_set
                    else f"{name}_()"
                )
                writer.line(f"if found is MISSING: found = {cache}[{key}] = {made}")
                writer.line("return found")
            name = f"{name}_"
        if is_remembered:
            writer.line(f"def {name}(a0): return {name}_m[a0] if type(a0) is str else {name}_(a0)")
            name = f"{name}_"
        writer.line(f"def {name}({arguments}):")
        with writer.indented():
            if self._expansion(node.path) > _FEW_CALLS:
                writer.line("TICK()")
            if node.is_function and self.replaced_by(node.path):
                writer.line(f"found = replaced_call({self.constant(list(node.path))}, [{arguments}])")
                writer.line("if found is not MISSING: return found")
            if is_document:
                self._document(writer, node)
            elif node.definitions[0].key is not None:
                self._set(writer, node.definitions)
            else:
                self._value(writer, node.definitions)
        if is_remembered:
            writer.line(f"{name}m = Remembered({name})")
        self.emit(writer)

    @property
    def is_quick(self) -> bool:
        """Check whether a body can be cached, because it is not traced and nothing that it reads is replaced."""
        return self.inlines and not self.covers and not self.print_calls and not self.checker.replaced

    def is_remembered(self, node: DataNode) -> bool:
        """Check whether a function's results are cached: it has one argument, which it uses as a string."""
        if not self.is_quick or node.path not in self.pure or len(node.definitions[0].arguments or ()) != 1:
            return False
        names = {part.name for rule in node.definitions for part in rule.arguments or () if isinstance(part, Var)}
        return any(
            isinstance(argument, Var) and argument.name in names and _takes_text(term, at)
            for rule in node.definitions
            for branch in rule.branches
            for expression in walk_expressions(branch.body)
            for term in terms_of(expression)
            if isinstance(term, Call)
            for at, argument in enumerate(term.arguments)
        )

    def constant_of(self, node: DataNode) -> Term | None:
        """Return the value of a rule that does not depend on input or data."""
        if not self.is_quick or len(node.definitions) != 1 or node.dynamic or node.children:
            return None
        definition = node.definitions[0]
        branch = definition.branches[0]
        is_one = definition.key is None and not definition.arguments and len(definition.branches) == 1
        is_always = all(one.value == _TRUE and not one.withs and not one.negated for one in branch.body)
        value = branch.value
        return value if is_one and is_always and value is not None and _is_constant(value) else None

    def cache_of(self, node: DataNode) -> str:
        """Return the name of the cache for the value of a rule: of the program or of one evaluation."""
        return "PROGRAM" if self._is_pure(node) else "CACHE"

    def _is_pure(self, node: DataNode) -> bool:
        return all(below.path in self.pure for below in node.below() if below.is_rule or below.dynamic)

    def _write_part(self, node: DataNode, mask: Mask) -> None:
        definitions = node.definitions or node.dynamic
        writer = self.writer(self, definitions[0].source if definitions else ModuleText("<data>", ""))
        if definitions:
            writer.at(definitions[0].start)
        writer.line(f"def {self.parts[node.path][3][mask]}({', '.join(f'a{place}' for place in mask)}):")
        with writer.indented():
            if self._expansion(node.path) > _FEW_CALLS:
                writer.line("TICK()")
            if node.definitions:
                self._set(writer, node.definitions, mask)
            else:
                self._document(writer, node, mask)
        self.emit(writer)

    def _set(self, writer: _Writer, definitions: list[Definition], mask: Mask = ()) -> None:
        # The members are listed as they are: to make a set of them costs more than most rules.
        writer.begin_parts("found = Members()")
        for definition in definitions:
            key = definition.key
            if key is None:
                raise TypeError("a rule of a set has a key")
            branch = definition.branches[0]
            with writer.in_source(definition), writer.part():
                if mask and _is_pattern(key):
                    writer.match(key, "a0")
                writer.require_index(branch.body, [key])

                def succeed(key: Term = key, branch: Branch = branch) -> None:
                    writer.at_head(branch)
                    writer.line(f"found.append({writer.value(key)})")

                writer.body(branch.body, succeed)
        writer.return_found()

    def _value(self, writer: _Writer, definitions: list[Definition]) -> None:
        rules = [definition for definition in definitions if not definition.default]
        values = [branch.value for definition in rules for branch in definition.branches]
        same = len(rules) > 0 and all(value == values[0] and _is_constant(value) for value in values if value)
        if same:
            writer.begin_parts()
        else:
            writer.line("found = UNDEFINED")
        for number, definition in enumerate(rules):
            with writer.in_source(definition):
                if same or len(rules) == 1:
                    for branch in definition.branches:
                        self._branch(writer, definition, branch, ends=True, same=same)
                elif len(definition.branches) == 1:
                    self._branch(writer, definition, definition.branches[0], ends=False, same=False)
                else:
                    name = f"{self.fresh('r')}_{number}"
                    inner = writer.outline()
                    arguments = ", ".join(f"a{index}" for index in range(len(definition.arguments or ())))
                    inner.line(f"def {name}({arguments}):")
                    with inner.indented():
                        inner.line("found = UNDEFINED")
                        for branch in definition.branches:
                            self._branch(inner, definition, branch, ends=True, same=False)
                        inner.line("return found")
                    writer.line(f"other = {name}({arguments})")
                    writer.line("if other is not UNDEFINED:")
                    with writer.indented():
                        self._agree(writer, definition, definition.branches[0], "other")
        if same:
            writer.end_parts()
        defaults = [definition for definition in definitions if definition.default]
        if defaults:
            if not same:
                writer.line("if found is not UNDEFINED: return found")
            with writer.in_source(defaults[0]):
                for index, argument in enumerate(defaults[0].arguments or ()):
                    if isinstance(argument, Var):
                        writer.bound[argument.name] = f"a{index}"
                with writer.block():
                    branch = defaults[0].branches[0]

                    def succeed() -> None:
                        writer.at_head(branch)
                        writer.line(f"return {writer.value(_value_of(branch))}")

                    writer.body(branch.body, succeed)
            writer.line("return UNDEFINED")
        else:
            writer.line("return UNDEFINED" if same else "return found")

    def _branch(self, writer: _Writer, definition: Definition, branch: Branch, *, ends: bool, same: bool) -> None:
        value = _value_of(branch)
        # Further results of the branch would be the same constant, so the first one decides.
        is_decided_by_one = same or (ends and _is_constant(value))
        if is_decided_by_one and not same:
            writer.begin_parts()
        with writer.part() if is_decided_by_one else writer.block():
            for index, argument in enumerate(definition.arguments or ()):
                writer.match(argument, f"a{index}")

            def succeed() -> None:
                writer.at_head(branch)
                code = writer.value(value)
                if is_decided_by_one or (ends and not writer.loops):
                    writer.line(f"return {code}")
                else:
                    self._agree(writer, definition, branch, code)

            writer.require_index(branch.body, [value])
            with writer.in_order(branch.body if is_decided_by_one else []):
                writer.body(branch.body, succeed)
        if is_decided_by_one and not same:
            writer.end_parts()
        if ends and not is_decided_by_one:
            writer.line("if found is not UNDEFINED: return found")

    def _agree(self, writer: _Writer, definition: Definition, branch: Branch, code: str) -> None:
        """Write what takes a value of a rule or function, or compares it with the one that there is."""
        kind = "rule" if definition.arguments is None else "function"
        line = definition.source.position(branch.start)[0]
        place = self.scalar((f"{kind} {path_text(definition.path)}", definition.source.file, line))
        writer.line(f"if found is UNDEFINED: found = {code}; at = {place}")
        writer.line(f"else: agree(found, {code}, at, {place})")

    def _document(self, writer: _Writer, node: DataNode, mask: Mask = ()) -> None:
        """Write what builds the object at a path from the rules below it, or its part at keys that are arguments.

        Below a rule with variables in its head, which OPA evaluates with all rules below its path, there are only the
        objects and sets that something is put into.
        """
        writer.line("found = Level()")
        above = (self.root.find(node.path[:count]) for count in range(len(node.path) + 1))
        is_sparse = any(
            not definition.is_ground for found in above if found is not None for definition in found.dynamic
        )
        for definition in node.dynamic:
            rest = definition.path[len(node.path) :]
            branch = definition.branches[0]
            key = definition.key
            parts = [*rest, *([] if key is None else [key])]
            keyed = [(place, part) for place, part in enumerate(parts) if place in mask and _is_pattern(part)]
            if key is not None and definition.is_ground and not is_sparse:
                with writer.block() if mask else nullcontext():
                    for place, part in keyed:
                        if place < len(rest):
                            writer.match(part, f"a{place}")
                    writer.line(f"add_at(found, ({', '.join([writer.value(part) for part in rest])},))")
            with writer.in_source(definition), writer.block():
                for place, part in keyed:
                    writer.match(part, f"a{place}")

                def succeed(branch: Branch = branch, rest: list[Term] = rest, key: Term | None = key) -> None:
                    writer.at_head(branch)
                    path = f"({', '.join([writer.value(part) for part in rest])},)"
                    if key is not None:
                        writer.line(f"add_at(found, {path}, {writer.value(key)})")
                    else:
                        writer.line(f"put_at(found, {path}, {writer.value(_value_of(branch))})")

                writer.require_index(branch.body, [*rest, *(term for term in (key, branch.value) if term is not None)])
                writer.body(branch.body, succeed)
        below = tuple(place - 1 for place in mask if place)
        for name, child in node.children.items():
            if not child.is_function:
                with writer.condition(f"a0 == {self.scalar(name)}") if mask else nullcontext():
                    # A document that is not finished still knows which of its objects rules build together.
                    unfinished = "_" if not child.is_rule else ""
                    call = f"{self.function_of(child)}{unfinished}()"
                    inner = tuple(place for place in below if place < length_of(child))
                    if inner[:1] == (0,):
                        call = f"{self.part_of(child, inner)}({', '.join(f'a{place + 1}' for place in inner)})"
                        call = f"make_set({call})" if child.is_rule else call
                    writer.line(f"below = {call}")
                    may_be_empty = child.is_rule and child.definitions[0].key is None
                    is_found = "below" if is_sparse and not may_be_empty else "below is not UNDEFINED"
                    writer.line(f"if {is_found}: join(found, {self.scalar(name)}, below)")
        writer.line("return found")

    # Code.

    def _code(self, text: _Text) -> CodeType:
        try:
            return assemble(self._generated(text), self.written)
        except (SyntaxError, RecursionError, SystemError) as error:
            # Only depth is left that Python does not take: blocks in blocks, or a term in a term.
            line = error.lineno or 1 if isinstance(error, SyntaxError) else 1
            raise _too_deep(text.source, text.places[line - 1][0]) from error

    def _generated(self, text: _Text) -> GeneratedModule:
        source = text.source
        positions: dict[int, int] = {}
        lines = []
        for start, _ in text.places:
            if start not in positions:
                positions[start] = source.position(min(start, len(source.text)))[0] if source.text else 1
            lines.append(positions[start])
        return GeneratedModule(source.file, "\n".join(text.lines), lines)


def _too_deep(source: ModuleText, start: int) -> RegoError:
    message = "loops and terms are nested too deeply here; make rules of their own of some"
    return RegoError(Diagnostic("rego_compile_error", message, source, start))


def _is_set(node: DataNode) -> bool:
    return node.is_rule and node.definitions[0].key is not None


def length_of(node: DataNode) -> int:
    """Return how many parts of a path below a node the rules have that build its value together, 0 for one value."""
    if node.is_rule:
        return int(_is_set(node))
    return max(
        (
            len(definition.path) - len(node.path) + (definition.key is not None)
            for below in node.below()
            if not below.is_function
            for definition in (*below.definitions, *below.dynamic)
        ),
        default=0,
    )


def _value_of(branch: Branch) -> Term:
    if branch.value is None:
        raise TypeError("a rule with a value has one")
    return branch.value


class _Writer:
    """Writes one function and those that it needs."""

    def __init__(self, compiler: Compiler, source: ModuleText, *, ordered: bool = False) -> None:
        self.compiler = compiler
        self.source = source
        #: The text of the rule that is being written, to which `offset` belongs.
        self.written_in = source
        self.offset = 0
        self.function = ""
        self.lines: list[str] = []
        self.places: list[tuple[int, int]] = []
        self.outlined: list[_Writer] = []
        self.place = 0
        self.inlining = 0
        self.depth = 0
        self.nested = 0
        self.loops = 0
        self.fail = "return UNDEFINED"
        self.ordered = ordered
        self.bound = _Names[str]()
        #: What is known about the type of a local name.
        self.kinds = _Names[str]()
        self.known = _Names[tuple[str, tuple[str, ...]]]()
        #: What blocks that have ended bind, within the block that is being written.
        self.bound_inside: list[tuple[str, str]] | None = None

    # Lines.

    def line(self, text: str) -> None:
        if text.startswith("def "):
            self.function = text[4 : text.index("(")]
        spend(1 + len(text) // _CHARACTERS_OF_A_STEP)
        self.lines.append(" " * self.depth + text)
        self.places.append((self.place, self.place))

    def at(self, start: int) -> None:
        self.offset = start
        # What another function contributes is at the place of its call.
        if not self.inlining and self.written_in is self.source:
            self.place = start

    def at_head(self, branch: Branch) -> None:
        """Write at the head of a rule what it makes of a solution of its body."""
        self.at(branch.start)
        self.cover()

    def cover(self) -> None:
        if self.compiler.covers:
            self.line(f"COVER({self.compiler.scalar((self.written_in.file, self.offset))})")

    @contextmanager
    def in_source(self, definition: Definition) -> Iterator[None]:
        """Write a rule of another file of the same package, with the line of this one where it begins."""
        before = self.place, self.written_in
        self.written_in = definition.source
        self.at(definition.start)
        yield
        self.place, self.written_in = before

    @contextmanager
    def indented(self) -> Iterator[None]:
        self.depth += 1
        yield
        self.depth -= 1

    @contextmanager
    def block(self) -> Iterator[None]:
        """Write lines after which control continues, whether they fail or not."""
        before = self.fail, self.depth, self.nested, self.loops
        names = self.bound, self.known, self.kinds
        marks = self.bound.mark(), self.known.mark(), self.kinds.mark()
        bound_before, bound_inside = self.bound_inside, list[tuple[str, str]]()
        self.bound_inside = bound_inside
        self.line("while True:")
        self.depth += 1
        self.nested += 1
        self.loops = 0
        self.fail = "break"
        yield
        if not self.inlining:
            own = (
                self.bound if bound_before is None else dict.fromkeys(key for key, _ in self.bound.changes[marks[0] :])
            )
            bound = [(written, self.bound[written]) for written in own if written[0] not in "@$"] + bound_inside
            if bound_before is None:
                shown = self.compiler.written.setdefault(self.function, {})
                for written, name in bound:
                    shown.setdefault(name, written.partition("@")[0])
            else:
                bound_before += bound
        self.bound_inside = bound_before
        self.fail, self.depth, self.nested, self.loops = before
        self.bound, self.known, self.kinds = names
        self._undo(marks)
        self.depth += 1
        self.line("break")
        self.depth -= 1

    # What a program of another form writes differently; see `handled`.

    def begin_parts(self, found: str = "") -> None:
        """Begin parts of which each contributes to the result by itself."""
        if found:
            self.line(found)

    def part(self) -> AbstractContextManager[None]:
        """Write a part as a block."""
        return self.block()

    def end_parts(self) -> None:
        """End parts of which none gave the result."""

    def return_found(self) -> None:
        """Return what the parts found."""
        self.line("return found")

    @contextmanager
    def in_order(self, body: Body) -> Iterator[None]:
        """Write loops that need not go on to their end: what comes first decides whether there is an error."""
        before = self.ordered
        self.ordered = before or self.may_fail_in(body)
        yield
        self.ordered = before

    def loop(self, header: str) -> None:
        """Begin a loop over a collection, which ends with the block."""
        self.line(header)
        self.depth += 1
        self.nested += 1
        self.loops += 1
        self.fail = "continue"
        self.line("TICK()")

    def outline(self) -> _Writer:
        inner = type(self)(self.compiler, self.source, ordered=self.ordered)
        inner.place, inner.written_in = self.place, self.written_in
        self.outlined.append(inner)
        return inner

    def fresh(self, prefix: str = "t") -> str:
        return self.compiler.fresh(prefix)

    @property
    def is_lenient(self) -> bool:
        """Whether a builtin that fails is undefined in the text that is being written."""
        return self.written_in.file in self.compiler.lenient

    def builtin(self, name: str) -> str:
        """Return the name of the function of a builtin, or of the one that is undefined where the builtin fails."""
        short = self.compiler.builtin(name)
        return f"{short}_" if self.is_lenient else short

    def require(self, code: str) -> None:
        self.line(f"if not ({code}): {self.fail}")

    def defined(self, code: str) -> None:
        self.line(f"if {code} is UNDEFINED: {self.fail}")

    # Bodies.

    def body(self, body: Body, succeed: Callable[[], None]) -> None:
        for index, expression in enumerate(body):
            if self.nested >= _DEEPEST:
                self.outline_rest(body[index:], succeed)
                return
            if _loop_of(expression)[0] is None or not self.join(body[index:]):
                self.expression(expression)
        succeed()

    def join(self, body: Body) -> bool:
        """Write the loop that a body begins with over those members for which its first conditions can be true.

        Where `some x in xs` comes before conditions such as `f(x.name) == wanted`, the members of a list that is used
        several times are found by what `f(x.name)` is for each, so that not each use walks all of them. Without such a
        condition, one such as `wanted in f(x.names)` finds them. The conditions are tested all the same.
        """
        member, collection = _loop_of(body[0])
        if member is None or collection is None or member.name in self.bound or not self.is_bound(collection):
            return False
        # An index would hide how often a builtin fails that is undefined then.
        if not self.compiler.is_quick or self.is_lenient:
            return False
        # What a member is found by depends on it alone and on where the list is from, which other uses have in common,
        # or on something else that they may have in common.
        given: AbstractSet[str] = {name for name in _names_of([Expr(0, 0, collection)]) if name in self.bound}
        found, needed = self.keys_of(body, member.name, given)
        if not any(isinstance(wanted, Var) for _, wanted in found):
            given = self.bound.keys()
            found, needed = self.keys_of(body, member.name, given, most=1)
        how = "matching"
        if not found:
            found, needed = self.keys_of(body, member.name, given, most=1, sides_of=_containment)
            how = "containing"
            if not found:
                return False
        start = body[0].start
        inner, name = self.outline(), self.fresh("f")
        own, wanted = zip(*found, strict=True)
        names = set(_names_of([*needed, *(Expr(start, start, part) for part in own)]))
        free = sorted(name for name in names if name in given)
        inner.bound = _Names({each: f"a{index}" for index, each in enumerate([member.name, *free])})
        inner.line(f"def {name}({', '.join(inner.bound.values())}):")
        with inner.indented():
            with inner.block():
                inner.body(needed, lambda: None)
                inner.line(f"return {_pattern([inner.value(part) for part in own])}")
                is_loop = inner.loops > 0
            inner.line("return UNDEFINED")
        if is_loop:
            self.outlined.remove(inner)
            return False
        self.at(start)
        base = self.value(collection)
        keys = _pattern([self.value(part) for part in wanted])
        arguments = ", ".join([base, keys, name, *(self.bound[each] for each in free)])
        item = self.fresh()
        others = f"{'ordered_' if self.ordered else ''}values({base})"
        self.loop(f"for {item} in {how}({arguments}) if type({base}) is list else {others}:")
        self.bound[member.name] = item
        return True

    def keys_of(
        self,
        body: Body,
        member: str,
        given: AbstractSet[str],
        most: int | None = None,
        sides_of: Callable[[Expr], Sequence[tuple[Term, Term]]] | None = None,
    ) -> tuple[list[tuple[Term, Term]], Body]:
        """Return what a member and those that a loop looks for must have in common.

        Args:
            body: begins with the loop.
            member: the variable of the loop.
            given: other variables on which what a member has may depend.
            most: of variables that are looked for; any number and constants where it is None.
            sides_of: returns the two sides of a condition, in each order that counts; by default of a comparison.

        Returns:
            Pairs of what a member has and what is looked for, which equal each other, and the expressions that what
            it has needs.
        """
        found: list[tuple[Term, Term]] = []
        needed: Body = []
        count = 0
        known = {member}
        for expression in body[1:]:
            if len(found) == most or expression.withs or expression.negated or not isinstance(expression.value, Call):
                break
            sides = (sides_of or _sides)(expression)
            for own, other in sides:
                if (
                    isinstance(other, Var if most else Scalar | Number | Var)
                    and self.is_bound(other)
                    and self.depends_only(own, known, given)
                    and not known.isdisjoint(_names_of([Expr(0, 0, own)]))
                ):
                    found.append((own, other))
                    count = len(needed)
                    break
            new = {name for name in _names_of([expression]) if name not in known and name not in self.bound}
            if not sides and len(new) < 2 and self.depends_only(expression.value, known, given, new):
                needed.append(expression)
                known |= new
            elif new:
                break
        return found, needed[:count]

    def depends_only(self, term: Term, *names: Container[str]) -> bool:
        """Return whether the value of a term depends on some variables alone, and no loop is needed for it."""
        for part in walk_terms(term):
            if isinstance(part, _COMPREHENSIONS):
                return False
            if isinstance(part, Var) and not any(part.name in each for each in names):
                return False
            if isinstance(part, Ref) and isinstance(part.head, Var) and part.head.name in {"input", "data"}:
                return False
            if isinstance(part, Call) and operator_name(part) == NOW:
                return False
            if isinstance(part, Call) and operator_name(part) is None:
                node = self.compiler.root.find(constant_names(part.operator.path))
                if node is None or node.path not in self.compiler.pure:
                    return False
        return True

    def require_index(self, body: Body, heads: list[Term]) -> None:
        """Write the conditions of a rule on its input and base data that OPA tests before it evaluates the body.

        They matter where something before them in the body can be an error. The index of OPA does more than this.
        """
        known: dict[str, Term] = {}
        failing = False
        for expression in [*body, *(Expr(0, 0, head) for head in heads)]:
            if failing:
                for modifier in expression.withs:
                    self.require_defined(modifier.value)
            if expression.withs or isinstance(expression.value, Every | Not | Logical | Some | SomeIn):
                failing = True
                continue
            value = expression.value
            if isinstance(value, Call) and operator_name(value) in _PRINTS:
                continue
            pair = value.arguments if isinstance(value, Call) and operator_name(value) in {"eq", "equal"} else ()
            failing = failing or self.may_fail(value)
            if len(pair) == 2 and not expression.negated:
                for one, other in (pair, pair[::-1]):
                    if isinstance(one, Var) and one.name not in self.bound:
                        known.setdefault(one.name, known.get(other.name, other) if isinstance(other, Var) else other)
            if not failing:
                continue
            terms = value.arguments if isinstance(value, Call) else [value]
            for term, other in zip(terms, terms[::-1], strict=True):
                is_tested = not expression.negated and (not pair or isinstance(other, Var | Scalar | Number | Array))
                if isinstance(term, Ref) and not is_tested and (pair or term is value):
                    # Only what its path contains is evaluated before.
                    for part in term.path:
                        self.require_defined(part)
                else:
                    self.require_defined(term)
            if not expression.negated:
                self.require_test(value, known)

    def may_fail(self, term: Term) -> bool:
        """Return whether the evaluation of a term of a body may end in an error."""
        for part in walk_terms(term):
            if isinstance(part, _COMPREHENSIONS) or (isinstance(part, Ref) and self.is_virtual(part)):
                return True
            if isinstance(part, Call) and operator_name(part) not in _TOTAL:
                return True
        return False

    def may_fail_in(self, body: Body) -> bool:
        """Return whether the evaluation of a body may end in an error."""
        return any(
            expression.withs
            or isinstance(expression.value, Every | Not | Logical | Some | SomeIn)
            or self.may_fail(expression.value)
            for expression in body
        )

    def is_virtual(self, ref: Ref) -> bool:
        """Return whether a reference is to what rules may define."""
        node: DataNode | None = self.compiler.root
        for part in ref.path if root_name(ref) == "data" else ():
            if node is None or node.is_rule or node.dynamic or not isinstance(part, Scalar | Number):
                break
            node = node.children.get(part.value) if isinstance(part, Scalar) and isinstance(part.value, str) else None
        return root_name(ref) == "data" and node is not None

    def is_indexed(self, term: Term) -> bool:
        """Return whether a term is a constant path into the input or base data, or an argument of the function."""
        if isinstance(term, Var):
            return term.name in self.bound
        return (
            isinstance(term, Ref)
            and isinstance(term.head, Var)
            and term.head.name in {"input", "data"}
            and all(isinstance(part, Scalar | Number) for part in term.path)
            and not self.is_virtual(term)
        )

    def require_defined(self, term: Term) -> None:
        """Write the look-ups of the constant references in a term."""
        for part in walk_terms(term):
            if isinstance(part, Ref) and self.is_indexed(part):
                self.value(part)

    def require_test(self, value: Term, known: dict[str, Term]) -> None:
        """Write a test of a value of the input by a constant."""
        if not isinstance(value, Call) or len(value.arguments) != 2:
            return
        one, other = (known.get(term.name, term) if isinstance(term, Var) else term for term in value.arguments)
        match operator_name(value):
            case "eq" | "equal":
                for left, right in ((one, other), (other, one)):
                    if isinstance(left, Ref) and left.path and isinstance(left.path[-1], Var):
                        collection = Ref(left.start, left.end, left.head, left.path[:-1])
                        if isinstance(right, Scalar | Number) and self.is_indexed(collection):
                            self.require(f"is_member({self.value(right)}, {self.value(collection)})")
                    if self.is_indexed(left) and isinstance(right, Scalar | Number):
                        self.require(self.equality(right, self.value(left)))
                    elif self.is_indexed(left) and isinstance(right, Array):
                        code = self.value(left)
                        self.require(f"isinstance({code}, list) and len({code}) == {len(right.items)}")
                        for index, item in enumerate(right.items):
                            if isinstance(item, Scalar | Number):
                                self.require(self.equality(item, self.keep(f"{code}[{index}]")))
            case "internal.member_2":
                if (self.is_indexed(one) and _is_constant(other)) or (
                    self.is_indexed(other) and isinstance(one, Scalar | Number)
                ):
                    self.require(f"is_member({self.value(one)}, {self.value(other)})")
            case "startswith" | "endswith" as name:
                if self.is_indexed(one) and isinstance(other, Scalar):
                    code = self.value(one)
                    self.require(f"type({code}) is str and {code}.{name}({self.value(other)})")

    def outline_rest(self, body: Body, succeed: Callable[[], None]) -> None:
        """Write the rest of a body as a loop over what a function finds, because loops cannot nest any deeper."""
        outputs = sorted({name for name in _names_of(body) if name not in self.bound})
        names = self.call_outlined(body, outputs)
        self.nested, before = 0, self.nested
        self.loop(f"for {_pattern(names)} in {self.last_call}:")
        self.nested = before
        for output, name in zip(outputs, names, strict=True):
            self.bound[output] = name
        succeed()

    last_call = ""

    def call_outlined(
        self, body: Body, outputs: list[str], prologue: Callable[[_Writer], None] | None = None
    ) -> list[str]:
        """Write a function that lists the values of variables for each solution of a body, and keep its call."""
        inner = self.outline()
        free = sorted({name for name in _names_of(body) if name in self.bound})
        name = self.fresh("f")
        parameters = [f"a{index}" for index in range(len(free))]
        inner.bound = _Names(dict(zip(free, parameters, strict=True)))
        inner.line(f"def {name}({', '.join(parameters)}):")
        with inner.indented():
            inner.begin_parts("found = []")
            if prologue is not None:
                prologue(inner)
            with inner.part():
                known = inner

                def succeed() -> None:
                    values = [known.bound.get(output, "UNDEFINED") for output in outputs]
                    known.line(f"found.append({_pattern(values)})")

                inner.body(body, succeed)
            if prologue is not None:
                inner.depth -= 1
                inner.line("finally: leave(saved)")
            inner.return_found()
        self.last_call = f"{name}({', '.join(self.bound[variable] for variable in free)})"
        return [self.fresh() for _ in outputs]

    def expression(self, expression: Expr) -> None:
        self.at(expression.start)
        self.cover()
        if expression.withs:
            self.modified(expression)
            return
        value = expression.value
        if expression.negated:
            self.negated(expression)
            return
        match value:
            case Every():
                self.every(value)
            case Not():
                self.line(f"if {self.holds(value.body)}: {self.fail}")
            case Logical():
                if value.operator == "and":
                    self.require(self.holds(value.left))
                    self.require(self.holds(value.right))
                else:
                    flag = self.holds(value.left)
                    with self.condition(f"not {flag}"):
                        right = self.holds(value.right)
                        self.line(f"{flag} = {right}")
                    self.require(flag)
            case Call():
                self.call(value, is_statement=not expression.generated)
            case Var() | Ref():
                code = self.value(value)
                self.line(f"if {code} is False: {self.fail}")
            case Scalar() if value.value is not False:
                pass
            case Scalar():
                self.line(self.fail)
            case _:
                self.value(value)  # type: ignore[arg-type]  # only terms are left

    @contextmanager
    def condition(self, code: str) -> Iterator[None]:
        self.line(f"if {code}:")
        marks = self.bound.mark(), self.known.mark(), self.kinds.mark()
        self.depth += 1
        yield
        self.depth -= 1
        self._undo(marks)

    def _undo(self, marks: tuple[int, int, int]) -> None:
        self.bound.undo(marks[0])
        self.known.undo(marks[1])
        self.kinds.undo(marks[2])

    def holds(self, body: Body) -> str:
        """Write a name that is true where a body has a solution."""
        flag = self.fresh()
        if self.nested + 1 >= _DEEPEST:
            names = self.call_outlined(body, [])
            if names:
                raise ValueError("no outputs")
            self.line(f"{flag} = bool({self.last_call})")
            return flag
        self.line(f"{flag} = False")
        depth = self.depth
        with self.block(), self.in_order(body):
            inner = self

            def succeed() -> None:
                inner.line(f"{flag} = True")
                inner.line("break")

            self.body(body, succeed)
            # Leave the outer loops, too.
            for level in range(self.depth - 1, depth + 1, -1):
                self.depth = level
                self.line(f"if {flag}: break")
        return flag

    def negated(self, expression: Expr) -> None:
        """Write `not`; the arguments of its call are evaluated before it, as OPA does."""
        value = expression.value
        if isinstance(value, Call):
            captured: list[Term] = []
            evaluated: tuple[type, ...] = (Array, Object, Set)
            if operator_name(value) not in {"eq", "equal"}:
                evaluated = (Ref, *evaluated, *_COMPREHENSIONS)
            for argument in value.arguments:
                variable = Var(argument.start, argument.end, self.fresh("captured "))
                if isinstance(argument, evaluated):
                    self.bound[variable.name] = self.value(argument)
                    captured.append(variable)
                else:
                    captured.append(argument)
            value = Call(value.start, value.end, value.operator, captured)
            self.at(expression.start)
        elif isinstance(value, Array | Object | Set):
            self.value(value)
        self.line(f"if {self.holds([Expr(expression.start, expression.end, value)])}: {self.fail}")

    def every(self, every: Every) -> None:
        if self.nested + 2 >= _DEEPEST:
            self.call_outlined([Expr(every.start, every.end, every)], [])
            self.require(self.last_call)
            return
        domain = self.value(every.domain)
        self.require(f"is_collection({domain})")
        flag = self.fresh()
        self.line(f"{flag} = True")
        with self.block(), self.in_order(every.body):
            names = []
            key = every.key
            item = self.fresh()
            if key is not None and not key.is_wildcard:
                place = self.fresh()
                self.loop(f"for {place}, {item} in {self.iterate('pairs', domain)}:")
                self.bound[key.name] = place
                names.append(place)
            else:
                self.loop(f"for {item} in {self.iterate('values', domain)}:")
            self.bound[every.value.name] = item
            inner = self.holds(every.body)
            self.line(f"if not {inner}:")
            self.line(f" {flag} = False")
            self.line(" break")
        self.require(flag)

    def modified(self, expression: Expr) -> None:
        """Write an expression with modifiers as a loop over the results of a function that runs with them."""
        targets = []
        values: list[Term] = []
        for modifier in expression.withs:
            target = modifier.target
            head = target.head.name if isinstance(target.head, Var) else ""
            path = constant_names(target.path)
            if head in {"input", "data"} and len(path) < len(target.path):
                raise NotImplementedError("a modifier of what is no constant path")
            value = modifier.value
            if isinstance(value, Call):
                targets.append((head, path, f"Function({self.builtin(operator_name(value) or '')})"))
                continue
            if isinstance(value, Ref):
                node = self.compiler.root.find(constant_names(value.path)) if root_name(value) == "data" else None
                if node is not None and node.is_function:
                    targets.append((head, path, f"Function({self.compiler.function_of(node)})"))
                    continue
                captured = Var(value.start, value.end, self.fresh("captured "))
                self.bound[captured.name] = self.value(value)
                value = captured
            targets.append((head, path, ""))
            values.append(value)
        plain = Expr(expression.start, expression.end, expression.value, expression.negated, [], expression.generated)
        carriers = [Expr(value.start, value.end, value) for value in values]
        outputs = sorted({name for name in _names_of([plain]) if name not in self.bound})

        def prologue(inner: _Writer) -> None:
            remaining = iter(values)
            parts = []
            for head, path, function in targets:
                code = function or inner.value(next(remaining))
                name = "input" if head == "input" else "data" if head == "data" else ".".join([head, *path])
                where = list(path) if head in {"input", "data"} else []
                parts.append(f"({inner.compiler.scalar(name)}, {inner.compiler.constant(where)}, {code})")
            inner.line(f"saved = enter([{', '.join(parts)}])")
            inner.line("try:")
            inner.depth += 1
            inner.nested += 1

        names = self.call_outlined_with(plain, carriers, outputs, prologue)
        if not outputs:
            self.require(self.last_call)
            return
        self.loop(f"for {_pattern(names)} in {self.last_call}:")
        for output, name in zip(outputs, names, strict=True):
            self.bound[output] = name

    def call_outlined_with(
        self, plain: Expr, carriers: Body, outputs: list[str], prologue: Callable[[_Writer], None]
    ) -> list[str]:
        free = {name for name in _names_of([*carriers, plain]) if name in self.bound}
        inner_body = [plain]
        # The values of modifiers are arguments of the function, too.
        names = self.call_outlined(inner_body, outputs, prologue) if not carriers else None
        if names is None:
            marker = [*inner_body]
            names = self._outlined_with_values(marker, sorted(free), outputs, prologue)
        return names

    def _outlined_with_values(
        self, body: Body, free: list[str], outputs: list[str], prologue: Callable[[_Writer], None]
    ) -> list[str]:
        inner = self.outline()
        name = self.fresh("f")
        parameters = [f"a{index}" for index in range(len(free))]
        inner.bound = _Names(dict(zip(free, parameters, strict=True)))
        inner.line(f"def {name}({', '.join(parameters)}):")
        with inner.indented():
            inner.begin_parts("found = []")
            prologue(inner)
            with inner.part():

                def succeed() -> None:
                    values = [inner.bound.get(output, "UNDEFINED") for output in outputs]
                    inner.line(f"found.append({_pattern(values)})")

                inner.body(body, succeed)
            inner.depth -= 1
            inner.line("finally: leave(saved)")
            inner.return_found()
        self.last_call = f"{name}({', '.join(self.bound[variable] for variable in free)})"
        return [self.fresh() for _ in outputs]

    # Terms.

    def value(self, term: Term) -> str:
        """Write what computes a term and return its code, which is cheap to repeat; fail where it is undefined."""
        match term:
            case Scalar():
                return self.scalar(term.value)
            case Number():
                return self.scalar(read_number(term.text))
            case Var():
                if term.name not in self.bound:
                    raise KeyError(term.name)
                return self.bound[term.name]
            case Ref():
                return self.ref(term)
            case Array() | Set() | Object() if _is_constant(term):
                name = self.compiler.constant(_constant_value(term))
                self.kinds[name] = {Array: "list", Set: "set", Object: "dict"}[type(term)]
                return name
            case Array():
                codes = [self.value(item) for item in term.items]
                return self.weigh(self.keep(f"[{', '.join(codes)}]", "list"), codes)
            case Set():
                codes = [self.value(item) for item in term.items]
                keys = ", ".join([self.key(item) for item in term.items])
                return self.weigh(self.keep(f"{{{keys}}}", "set"), codes)
            case Object():
                return self.object(term)
            case ArrayComprehension() | SetComprehension() | ObjectComprehension():
                return self.comprehension(term)
        raise TypeError(f"a term of a resolved body is no {type(term).__name__}")

    def scalar(self, value: Value) -> str:
        name = self.compiler.scalar(value)
        self.kinds[name] = type(value).__name__
        return name

    def keep(self, code: str, kind: str = "") -> str:
        name = self.fresh()
        self.line(f"{name} = {code}")
        if kind:
            self.kinds[name] = kind
        return name

    def key(self, term: Term) -> str:
        """Return the code of a term in the form of a key."""
        code = self.value(term)
        if self.kinds.get(code) in {"str", "int", "float", "NoneType"}:
            return code
        return f"({code} if type({code}) is str else to_key({code}))"

    def weigh(self, found: str, codes: list[str]) -> str:
        """Write the weighing of a collection of which a part may be a collection."""
        if any(self.kinds.get(code) not in _SCALARS for code in codes):
            self.weigh_now(found)
        return found

    def weigh_now(self, found: str) -> None:
        parts = f"{found}.values()" if self.kinds.get(found) == "dict" else found
        self.line(f"if not COLLECTIONS.isdisjoint(map(type, {parts})): weigh({found})")

    def object(self, term: Object) -> str:
        codes = [(self.value(key), self.value(item)) for key, item in term.items]
        values = [item for _, item in codes]
        if all(self.kinds.get(key) == "str" for key, _ in codes):
            items = ", ".join(f"{key}: {item}" for key, item in codes)
            return self.weigh(self.keep(f"{{{items}}}", "dict"), values)
        name = self.keep("{}", "dict")
        for key, item in codes:
            self.line(f"{name}[{key} if type({key}) is str else to_key({key})] = {item}")
        return self.weigh(name, values)

    def comprehension(self, term: ArrayComprehension | SetComprehension | ObjectComprehension) -> str:
        if self.nested + 1 >= _DEEPEST:
            return self.outlined_comprehension(term)
        kind = _KINDS[type(term)]
        found = self.keep({"list": "[]", "set": "set()", "dict": "{}"}[kind], kind)
        self.collect(term, found, self.block)
        return found

    def collect(
        self,
        term: ArrayComprehension | SetComprehension | ObjectComprehension,
        found: str,
        within: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """Write what puts the members of a comprehension into a collection, in a block of its own."""
        is_scalar = False
        before = self.ordered
        self.ordered = self.ordered or isinstance(term, ArrayComprehension)
        with within():

            def succeed() -> None:
                nonlocal is_scalar
                if isinstance(term, ObjectComprehension):
                    code = self.value(term.value)
                    self.line(f"put({found}, {self.value(term.key)}, {code})")
                elif isinstance(term, SetComprehension):
                    code = self.value(term.term)
                    self.line(f"{found}.add({self.key(term.term)})")
                else:
                    code = self.value(term.term)
                    self.line(f"{found}.append({code})")
                is_scalar = self.kinds.get(code) in _SCALARS

            self.body(term.body, succeed)
        self.ordered = before
        self.line(f"if len({found}) > {_UNCHARGED}: charge(len({found}))")
        if not is_scalar:
            self.weigh_now(found)

    def outlined_comprehension(self, term: Term) -> str:
        inner = self.outline()
        holder = [Expr(term.start, term.end, term)]
        free = sorted({name for name in _names_of(holder) if name in self.bound})
        name = self.fresh("f")
        parameters = [f"a{index}" for index in range(len(free))]
        inner.bound = _Names(dict(zip(free, parameters, strict=True)))
        inner.line(f"def {name}({', '.join(parameters)}):")
        with inner.indented():
            inner.line(f"return {inner.value(term)}")
        return self.keep(f"{name}({', '.join(self.bound[variable] for variable in free)})")

    # References.

    def ref(self, ref: Ref) -> str:
        head = ref.head
        if not isinstance(head, Var):
            return self.follow(self.value(head), ref.path)
        if head.name == "input" and head.name not in self.bound:
            if not ref.path:
                self.defined("INPUT")
                return "INPUT"
            return self.follow("INPUT", ref.path)
        if head.name == "data" and head.name not in self.bound:
            return self.data(ref.path)
        return self.follow(self.bound[head.name], ref.path)

    def data(self, path: list[Term]) -> str:
        node = self.compiler.root
        for index, part in enumerate(path):
            if node.is_rule or node.dynamic:
                return self.follow(self.part_value(node, path[index:]), path[index:])
            if not isinstance(part, Scalar | Number):
                return self.reach(node, path[index:])
            child = node.children.get(part.value) if isinstance(part, Scalar) and isinstance(part.value, str) else None
            if child is None:
                return self.base_data(path)
            node = child
        return self.rule(node)

    def base_data(self, path: list[Term]) -> str:
        """Write a look-up in base data, where a number is a key by its text."""
        base = "DATA"
        names = constant_names(path)
        if names and not self.compiler.replaced_by(names):
            value = look_up(self.compiler.data, names)
            if value is UNDEFINED:
                self.line(self.fail)
            base = self.compiler.base.setdefault(names, f"B{len(self.compiler.base)}")
            self.kinds[base] = type(value).__name__
            path = path[len(names) :]
        for index, part in enumerate(path):
            if isinstance(part, Scalar) and isinstance(part.value, str):
                base = self.look_up(base, (part.value,))
            elif self.is_bound(part):
                key = self.value(part)
                quick = f"{base}.get({key}, UNDEFINED) if type({base}) is dict and type({key}) is str"
                base = self.keep(f"{quick} else data_item({base}, {key})")
                self.defined(base)
            else:
                return self.follow(base, path[index:])
        return base

    def reach(self, node: DataNode, path: list[Term]) -> str:
        """Write a look-up of a name that is not constant among packages and rules.

        What is bound is evaluated alone. A name that is not bound is each of those that the rest of the path fits,
        because others may need this very rule.
        """
        free = [place for place, part in enumerate(path) if not self.is_bound(part)]
        count = self._find_parts(node, path)
        while count < len(path) and count not in free:
            count += 1
        keys = ", ".join("FREE" if place in free else self.value(path[place]) for place in range(count))
        arguments = f"{self.compiler.constant(node.path)}, ({keys},)"
        free = [place for place in free if place < count]
        if not free:
            found = self.keep(f"reach({arguments})")
            self.defined(found)
            return self.follow(found, path[count:])
        names = [self.fresh() for _ in free]
        found = self.fresh()
        self.loop(f"for {_pattern([*names, found])} in reach_each({arguments}):")
        for place, name in zip(free, names, strict=True):
            self.match(path[place], name)
        return self.follow(found, path[count:])

    def _find_parts(self, node: DataNode, path: list[Term]) -> int:
        """Return how many parts of a path below a node may name rules, and have those evaluated that are parts."""
        reached, count = [node], 0
        for place, part in enumerate(path):
            inner = []
            for each in reached:
                if each.is_rule or each.dynamic:
                    count = max(count, place + length_of(each))
                    self.mask_of(each, path[place:])
                else:
                    inner.append(each)
            if isinstance(part, Scalar | Number):
                names = [part.value] if isinstance(part, Scalar) and isinstance(part.value, str) else []
                reached = [each.children[name] for each in inner for name in names if name in each.children]
            else:
                reached = [child for each in inner for child in each.children.values()]
            if not reached:
                break
            count = max(count, place + 1)
        return min(count, len(path))

    def mask_of(self, node: DataNode, path: list[Term]) -> Mask:
        """Have a part of a set or object evaluated by the parts of a path that are bound; nothing if the first is not.

        Returns:
            Which they are.
        """
        mask = tuple(place for place, part in enumerate(path[: length_of(node)]) if self.is_bound(part))
        if mask[:1] != (0,):
            return ()
        self.compiler.part_of(node, mask)
        return mask

    def part_value(self, node: DataNode, path: list[Term]) -> str:
        """Write the evaluation of a rule, or of its part at the keys of a path that are bound."""
        mask = () if node.is_function else self.mask_of(node, path)
        if not mask:
            return self.rule(node)
        codes = [self.value(path[place]) if place in mask else "FREE" for place in range(length_of(node))[: len(path)]]
        place = self.compiler.function_of(node), tuple(codes)
        if place not in self.known:
            self.known[place] = self.keep(f"part({self.compiler.constant(node.path)}, ({', '.join(codes)},))")
        found = self.known[place]
        if node.is_rule and not self.compiler.replaced_by(node.path):
            self.kinds[found] = "set"
        else:
            self.defined(found)
        return found

    def rule(self, node: DataNode) -> str:
        if node.is_function:
            self.line(self.fail)
            return "UNDEFINED"
        constant = self.compiler.constant_of(node)
        if constant is not None:
            return self.value(constant)
        function = self.compiler.function_of(node)
        place = (function, ())
        if place not in self.known:
            if self.compiler.replaced_by(node.path):
                name = self.keep(f"{function}()")
            else:
                # The look-up in the cache is here, because most rules are evaluated several times.
                cache, key = self.compiler.cache_of(node), self.compiler.scalar(function)
                name = self.keep(f"{cache}.get({key}, MISSING)")
                self.line(f"if {name} is MISSING: {name} = {function}()")
            self.known[place] = name
            if node.path and not self.inlining:
                self.compiler.written.setdefault(self.function, {}).setdefault(name, node.path[-1])
            if node.is_rule and node.definitions[0].key is not None and not node.dynamic:
                self.kinds[name] = "set"
            else:
                self.defined(name)
        return self.known[place]

    def follow(self, base: str, path: list[Term]) -> str:
        """Write the look-ups of a path, with a loop for each part that is not bound."""
        index = 0
        while index < len(path):
            names = []
            while index < len(path) and isinstance(part := path[index], Scalar) and isinstance(part.value, str):
                names.append(part.value)
                index += 1
            if names:
                base = self.look_up(base, tuple(names))
                continue
            part = path[index]
            index += 1
            base = self.step(base, part)
        return base

    def look_up(self, base: str, names: tuple[str, ...]) -> str:
        place = (base, names)
        if place in self.known:
            return self.known[place]
        found = self.fresh()
        gets = "".join(f".get({self.compiler.scalar(name)}, UNDEFINED)" for name in names)
        if self.kinds.get(base) == "dict" and len(names) == 1:
            self.line(f"{found} = {base}{gets}")
        else:
            self.line(f"try: {found} = {base}{gets}")
            self.line(f"except AttributeError: {found} = look_up({base}, {self.compiler.constant(list(names))})")
        self.defined(found)
        self.known[place] = found
        return found

    def iterate(self, how: str, base: str) -> str:
        if how == "values" and self.kinds.get(base) == "list":
            return base
        prefix = "ordered_" if self.ordered else ""
        if how == "values":
            return f"{base} if type({base}) is list else {prefix}values({base})"
        return f"{prefix}pairs({base})"

    def step(self, base: str, part: Term) -> str:
        if self.is_bound(part):
            key = self.value(part)
            code = f"item({base}, {key})"
            if self.kinds.get(key) == "str":
                code = f"{base}.get({key}, UNDEFINED) if type({base}) is dict else {code}"
            elif isinstance(part, Var):
                code = f"{base}.get({key}, UNDEFINED) if type({base}) is dict and type({key}) is str else {code}"
            found = self.keep(code)
            self.defined(found)
            return found
        found = self.fresh()
        if isinstance(part, Var) and part.is_wildcard and part.name not in self.bound:
            self.loop(f"for {found} in {self.iterate('values', base)}:")
            self.bound[part.name] = "UNDEFINED"
            return found
        place = self.fresh()
        self.loop(f"for {place}, {found} in {self.iterate('pairs', base)}:")
        self.match(part, place)
        return found

    def is_computable(self, term: Term) -> bool:
        """Return whether a term can be computed where its references bind variables."""
        match term:
            case Ref():
                return self.is_bound(Ref(term.start, term.end, term.head, []))
            case Array() | Set():
                return all(map(self.is_computable, term.items))
            case Object():
                return all(self.is_computable(part) for pair in term.items for part in pair)
        return self.is_bound(term)

    def is_bound(self, term: Term) -> bool:
        """Return whether a term can be computed without binding anything."""
        match term:
            case Var():
                return term.name in self.bound
            case Array() | Set():
                return all(map(self.is_bound, term.items))
            case Object():
                return all(self.is_bound(key) and self.is_bound(item) for key, item in term.items)
            case Ref():
                return all(map(self.is_bound, term.path)) and (
                    not isinstance(term.head, Var)
                    or term.head.name in self.bound
                    or term.head.name in {"input", "data"}
                )
        return True

    # Unification.

    def match(self, pattern: Term, code: str) -> None:
        """Write what binds the variables of a pattern to the parts of a value, or fails."""
        if isinstance(pattern, Var) and pattern.name not in self.bound:
            self.bound[pattern.name] = code
            return
        if self.is_bound(pattern):
            self.require(self.equality(pattern, code))
            return
        if isinstance(pattern, Array):
            self.require(f"isinstance({code}, list) and len({code}) == {len(pattern.items)}")
            for index, item in enumerate(pattern.items):
                if not (isinstance(item, Var) and item.is_wildcard):
                    self.match(item, self.keep(f"{code}[{index}]"))
                else:
                    self.bound[item.name] = "UNDEFINED"
            return
        if isinstance(pattern, Object):
            self.require(f"isinstance({code}, dict) and len({code}) == {len(pattern.items)}")
            for key, item in pattern.items:
                found = self.keep(f"{code}.get({self.key(key)}, UNDEFINED)")
                self.defined(found)
                self.match(item, found)
            return
        # A reference whose path binds variables.
        self.require(self.equality_of(self.value(pattern), code))

    def unify(self, left: Term, right: Term) -> None:
        waiting = [(left, right)]
        while waiting:
            rest: list[tuple[Term, Term]] = []
            for first, second in waiting:
                if not self.unified(first, second, rest):
                    rest.append((first, second))
            if rest == waiting:
                # What is left has references that bind variables.
                place, computed, other = next(
                    (place, *sides)
                    for place, pair in enumerate(rest)
                    for sides in (pair, pair[::-1])
                    if self.is_computable(sides[0])
                )
                del rest[place]
                self.match(other, self.value(computed))
            waiting = rest

    def unified(self, left: Term, right: Term, rest: list[tuple[Term, Term]]) -> bool:
        if isinstance(left, Array) and isinstance(right, Array):
            if len(left.items) != len(right.items):
                self.line(self.fail)
                for name in _names_of([Expr(0, 0, left), Expr(0, 0, right)]):
                    if name not in self.bound:
                        self.bound[name] = "UNDEFINED"
                return True
            if not (self.is_bound(left) and self.is_bound(right)):
                rest.extend(zip(left.items, right.items, strict=True))
                return True
        if (
            isinstance(left, Object)
            and isinstance(right, Object)
            and not (self.is_bound(left) and self.is_bound(right))
        ):
            return self.unified_objects(left, right, rest)
        if self.is_bound(left):
            if isinstance(left, _COMPREHENSIONS) and not isinstance(right, _COMPREHENSIONS) and self.is_bound(right):
                left, right = right, left
            if isinstance(right, _COMPREHENSIONS) and not isinstance(left, _COMPREHENSIONS):
                code = self.value(left)
                if not (isinstance(left, Ref) and root_name(left) == "data" and not self.is_virtual(left)):
                    # OPA does not evaluate it for a value of another type, unless that is base data.
                    self.require(f"isinstance({code}, {_KINDS[type(right)]})")
                self.require(self.equality_of(code, self.value(right)))
            elif isinstance(left, Ref) and self.is_bound(right):
                code = self.value(left)
                self.require(self.equality_of(code, self.value(right)))
            elif (isinstance(right, Ref) and isinstance(left, Scalar)) or self.is_bound(right):
                self.require(self.equality(left, self.value(right)))
            else:
                self.match(right, self.value(left))
            return True
        if self.is_bound(right):
            self.match(left, self.value(right))
            return True
        for pattern, ref in ((left, right), (right, left)):
            if isinstance(ref, Ref) and isinstance(pattern, Var | Array | Object):
                self.match(pattern, self.value(ref))
                return True
        return False

    def unified_objects(self, left: Object, right: Object, rest: list[tuple[Term, Term]]) -> bool:
        if not all(self.is_bound(key) for key, _ in [*left.items, *right.items]):
            return False
        if len(left.items) != len(right.items):
            self.line(self.fail)
        others = list(right.items)
        for key, item in left.items:
            same = [value for other, value in others if other == key]
            if same:
                rest.append((item, same[0]))
            else:
                self.line(self.fail)
                for name in _names_of([Expr(0, 0, left), Expr(0, 0, right)]):
                    if name not in self.bound:
                        self.bound[name] = "UNDEFINED"
                return True
        return True

    def equality(self, term: Term, code: str) -> str:
        """Return code that compares a bound term with a value."""
        if isinstance(term, Scalar):
            return self.equality_of(code, self.scalar(term.value))
        return self.equality_of(self.value(term), code)

    def equality_of(self, left: str, right: str) -> str:
        if left[0] == right[0] == "k":
            one, other = (self.compiler.scalars[int(code[1:])] for code in (left, right))
            return str(equal(one, other))
        for one, other in ((left, right), (right, left)):
            kind = self.kinds.get(other, "")
            if kind == "NoneType":
                return f"{one} is None"
            if kind == "bool" and other[0] == "k":
                return f"{one} is {other}"
            if kind == "str":
                return f"{one} == {other}"
            if kind in {"int", "float"} and other[0] == "k" and abs(self.compiler.scalars[int(other[1:])]) < 1 << 53:
                return f"{one} == {other} and type({one}) is not bool"
        return f"{left} == {right} if type({left}) is str else equal({left}, {right})"

    # Calls.

    def call(self, call: Call, *, is_statement: bool) -> None:
        name = operator_name(call)
        if name in {"eq", "equal"} and len(call.arguments) == 2:
            self.unify(*call.arguments)
            return
        if name in _PRINTS:
            self.print(call)
            return
        if name == "walk":
            self.walk(call)
            return
        arity = self.compiler.checker.arity(call)
        if arity is None:
            raise KeyError(name)
        inputs, outputs = call.arguments[:arity], call.arguments[arity:]
        codes = [self.value(argument) for argument in inputs]
        self.at(call.start)
        inlined = self.inlined(call, codes) if name is None else None
        code, kind, total = inlined or self.invocation(call, name, inputs, codes)
        if outputs:
            output = outputs[0]
            if isinstance(output, Var) and output.name not in self.bound:
                found = self.keep(code, kind)
                if not total:
                    self.defined(found)
                self.bound[output.name] = found
            else:
                found = self.keep(code, kind)
                if not total:
                    self.defined(found)
                self.match(output, found)
        elif kind == "bool" and total:
            self.require(code)
            if name in _TYPE_CHECKS and codes[0][0] in "at":
                self.kinds[codes[0]] = _TYPE_CHECKS[name]
        elif is_statement:
            found = self.keep(code)
            self.line(f"if {found} is False or {found} is UNDEFINED: {self.fail}")

    def invocation(self, call: Call, name: str | None, inputs: list[Term], codes: list[str]) -> tuple[str, str, bool]:
        """Return the code of a call, the kind of its result, and whether it always has one."""
        arguments = ", ".join(codes)
        if name is None:
            node = self.compiler.root.find(constant_names(call.operator.path))
            if node is None:
                raise KeyError(constant_names(call.operator.path))
            # A modifier replaces the value of a rule, but not what a call of the rule gives.
            uncached = "_" if not node.is_function and self.compiler.replaced_by(node.path) else ""
            return f"{self.compiler.function_of(node)}{uncached}({arguments})", "", False
        if name in self.compiler.checker.replaced:
            plain = self.builtin(name)
            return f"call_replaced({self.compiler.scalar(name)}, {plain}, [{arguments}])", "", False
        inline = self.inline(name, inputs, codes)
        if inline is not None:
            return (*inline, not self.is_lenient)
        result = signatures()[name].get("result", {}).get("type", "")
        return f"{self.builtin(name)}({arguments})", _RESULTS.get(result, ""), False

    def inlined(self, call: Call, codes: list[str]) -> tuple[str, str, bool] | None:
        """Write the body of a small function in the place of its call; return the code and kind of its value.

        A function of one body without a loop is written so: where the body fails, the call is undefined, and so is
        the expression around it.
        """
        node = self.compiler.root.find(constant_names(call.operator.path))
        if node is None or not node.is_function or not self.compiler.inlines or len(node.definitions) != 1:
            return None
        if self.inlining > _MOST_INLINED:
            return None
        definition = node.definitions[0]
        arguments = definition.arguments or []
        if (
            definition.default
            or len(definition.branches) != 1
            or not all(isinstance(argument, Var) for argument in arguments)
            or len({argument.name for argument in arguments if isinstance(argument, Var)}) != len(arguments)
            or self.compiler.replaced_by(node.path)
        ):
            return None
        state = len(self.lines), len(self.outlined), self.loops, self.depth, self.nested, self.fail, self.place
        bound, marks = self.bound, (self.known.mark(), self.kinds.mark())
        self.bound = _Names(
            {argument.name: code for argument, code in zip(arguments, codes, strict=True) if isinstance(argument, Var)}
        )
        self.inlining += 1
        self.require_index(definition.branches[0].body, [_value_of(definition.branches[0])])
        for expression in definition.branches[0].body:
            self.expression(expression)
            if self.loops != state[2] or len(self.lines) - state[0] > _LONGEST_INLINED:
                break
        else:
            code = self.value(_value_of(definition.branches[0]))
            if self.loops == state[2]:
                self.inlining -= 1
                self.bound = bound
                return code, self.kinds.get(code, ""), True
        self.inlining -= 1
        del self.lines[state[0] :], self.places[state[0] :], self.outlined[state[1] :]
        _, _, self.loops, self.depth, self.nested, self.fail, self.place = state
        self.bound = bound
        self.known.undo(marks[0])
        self.kinds.undo(marks[1])
        return None

    def inline(self, name: str, inputs: list[Term], codes: list[str]) -> tuple[str, str] | None:
        """Return the code and kind of a builtin that Python has, for the usual types; its function does the rest."""
        kinds = [self.kinds.get(code, "") for code in codes]
        if name in {"equal", "eq"}:
            return self.equality_of(*codes), "bool"
        if name == "neq":
            return f"not ({self.equality_of(*codes)})", "bool"
        if name in _COMPARISONS:
            slow = _COMPARISONS[name].format(*codes)
            if kinds == ["int", "int"]:
                return f"{codes[0]} {_SIGNS[name]} {codes[1]}", "bool"
            for one, other in ((0, 1), (1, 0)):
                if kinds[one] == "int":
                    quick = f"{codes[0]} {_SIGNS[name]} {codes[1]}"
                    return f"{quick} if type({codes[other]}) is int else {slow}", "bool"
            quick = f"{codes[0]} {_SIGNS[name]} {codes[1]}"
            return f"{quick} if type({codes[0]}) is int and type({codes[1]}) is int else {slow}", "bool"
        if name == "count":
            if kinds[0] in {"list", "set", "dict"}:
                return f"len({codes[0]})", "int"
            return f"len({codes[0]}) if type({codes[0]}) is list else {self.builtin(name)}({codes[0]})", "int"
        if name == "internal.member_2":
            if isinstance(inputs[1], Array | Set) and _is_constant(inputs[1]):
                found = _constant_value(inputs[1])
                if all(part is None or type(part) is str for part in found):
                    names = self.compiler.constant(set(found) - {None})
                    quick = f"type({codes[0]}) is str and {codes[0]} in {names}"
                    return f"({quick} or {codes[0]} is None)" if None in found else quick, "bool"
            if kinds[0] == "str" and kinds[1] in {"list", "set"}:
                return f"{codes[0]} in {codes[1]}", "bool"
            found = f"is_member({', '.join(codes)})"
            if kinds[0] == "str":
                found = f"({codes[0]} in {codes[1]} if type({codes[1]}) is set else {found})"
            return found, "bool"
        if name == "internal.member_3":
            return f"is_pair({', '.join(codes)})", "bool"
        if name in _TYPE_CHECKS:
            # A special collection is of a subclass.
            kind = _TYPE_CHECKS[name]
            is_kind = "isinstance({0}, {1})" if kind in {"dict", "list", "set"} else "type({0}) is {1}"
            return is_kind.format(codes[0], kind), "bool"
        if name == "is_null":
            return f"{codes[0]} is None", "bool"
        if name in {"lower", "upper", "trim_space"}:
            check = (
                f"{codes[0]}.isascii()" if kinds[0] == "str" else f"type({codes[0]}) is str and {codes[0]}.isascii()"
            )
            quick = f"strip({self.scalar(_SPACES)})" if name == "trim_space" else f"{name}()"
            return f"{codes[0]}.{quick} if {check} else {self.builtin(name)}({codes[0]})", "str"
        if name == "contains":
            checks = [f"type({code}) is str" for code, kind in zip(codes, kinds, strict=True) if kind != "str"]
            slow = f" if {' and '.join(checks)} else {self.builtin(name)}({', '.join(codes)})" if checks else ""
            return f"{codes[1]} in {codes[0]}{slow}", "bool"
        if name == "object.get" and kinds[1] == "str":
            quick = f"{codes[0]}.get({codes[1]}, {codes[2]})"
            slow = f"{self.builtin(name)}({', '.join(codes)})"
            return quick if kinds[0] == "dict" else f"{quick} if type({codes[0]}) is dict else {slow}", ""
        if name in {"substring", "array.slice"} and (bounds := _bounds(name, inputs, codes, kinds)):
            kind = "str" if name == "substring" else "list"
            slow = f"{self.builtin(name)}({', '.join(codes)})"
            return f"{codes[0]}[{bounds}] if type({codes[0]}) is {kind} else {slow}", kind
        if name == "regex.match" and isinstance(inputs[0], Scalar) and isinstance(inputs[0].value, str):
            pattern = self.compiler.pattern(inputs[0].value)
            if pattern is not None:
                quick = f"bool({pattern}({codes[1]}))"
                slow = f"{self.builtin(name)}({', '.join(codes)})"
                return quick if kinds[1] == "str" else f"{quick} if type({codes[1]}) is str else {slow}", "bool"
        if name in _METHODS:
            method, kind = _METHODS[name]
            checks = [f"type({code}) is str" for code, found in zip(codes, kinds, strict=True) if found != "str"]
            quick = f"{codes[0]}.{method}({codes[1]})"
            if not checks:
                return quick, kind
            return f"{quick} if {' and '.join(checks)} else {self.builtin(name)}({', '.join(codes)})", kind
        if name == "plus" or (name == "minus" and "int" in kinds):
            sign = "+" if name == "plus" else "-"
            checks = [f"type({code}) is int" for code, kind in zip(codes, kinds, strict=True) if kind != "int"]
            quick = f"{codes[0]} {sign} {codes[1]}"
            if checks:
                quick += f" if {' and '.join(checks)} else {self.builtin(name)}({', '.join(codes)})"
            return quick, ""
        return None

    def walk(self, call: Call) -> None:
        base = self.value(call.arguments[0])
        found = self.fresh()
        self.loop(f"for {found} in {self.builtin('walk')}({base}):")
        if len(call.arguments) > 1:
            self.match(call.arguments[1], found)

    def print(self, call: Call) -> None:
        """Write a call of print; what is undefined is shown as such."""
        if not self.compiler.print_calls:
            return
        place = call.start
        parts = []
        for argument in call.arguments:
            found = self.keep("[]", "list")
            with self.block():
                self.line(f"{found}.append({self.value(argument)})")
            parts.append(found)
        file, line = self.written_in.file, self.written_in.position(place)[0]
        self.line(f"PRINT({self.compiler.scalar(file)}, {self.compiler.scalar(line)}, [{', '.join(parts)}])")


def _takes_text(call: Call, at: int) -> bool:
    """Check whether a call is of a builtin that requires a string as an argument."""
    name = operator_name(call)
    types = signatures()[name]["arguments"] if name is not None else []
    return name == "is_string" or (at < len(types) and types[at]["type"] == "string")


def _loop_of(expression: Expr) -> tuple[Var | None, Ref | None]:
    """Return the variable and the collection of `some x in xs`, where an expression is that."""
    value = expression.value
    sides = value.arguments if isinstance(value, Call) and operator_name(value) == "eq" else []
    if expression.withs or expression.negated or len(sides) != 2:
        return None, None
    member, item = sides
    is_loop = isinstance(item, Ref) and item.path and isinstance(item.path[-1], Var) and item.path[-1].is_wildcard
    if not (is_loop and isinstance(member, Var) and isinstance(item, Ref)):
        return None, None
    return member, Ref(item.start, item.end, item.head, item.path[:-1])


def _sides(expression: Expr) -> Sequence[tuple[Term, Term]]:
    """Return both sides of a comparison with `==`, in both orders."""
    value = expression.value
    if not isinstance(value, Call) or operator_name(value) != "equal" or len(value.arguments) != 2:
        return ()
    left, right = value.arguments
    return (left, right), (right, left)


def _containment(expression: Expr) -> Sequence[tuple[Term, Term]]:
    """Return the collection of `value in collection`, and the value."""
    value = expression.value
    if not isinstance(value, Call) or operator_name(value) != "internal.member_2" or len(value.arguments) != 2:
        return ()
    contained, collection = value.arguments
    return ((collection, contained),)


def _is_pattern(term: Term) -> bool:
    """Return whether the variables of a term of a head can get their values from a value that it must equal."""
    match term:
        case Var():
            return True
        case Array(items=items):
            return all(map(_is_pattern, items))
        case Object(items=pairs):
            return all(_is_constant(key) and _is_pattern(item) for key, item in pairs)
    return _is_constant(term)


def _pattern(names: list[str]) -> str:
    return f"({', '.join(names)},)" if names else "()"


def _names_of(body: Body) -> Iterator[str]:
    """Names of all variables of a body, those inside of its closures included."""
    for expression in walk_expressions(body):
        value = expression.value
        if isinstance(value, Every):
            yield value.value.name
            if value.key is not None:
                yield value.key.name
        for term in terms_of(expression):
            if isinstance(term, Var) and term.name not in {"input", "data"}:
                yield term.name


def _bounds(name: str, inputs: list[Term], codes: list[str], kinds: list[str]) -> str:
    """Return the code of the bounds of a slice that begins at a constant; nothing where they are not known so far."""
    start, end = (_constant_value(term) if isinstance(term, Number) else None for term in inputs[1:])
    if type(start) is not int or not 0 <= start < 1 << 31 or (type(end) is int and abs(end) >= 1 << 31):
        return ""
    if type(end) is int:
        return f"{start}:{max(end, 0)}" if name == "array.slice" else f"{start}:{start + end if end >= 0 else ''}"
    return f"{start}:{codes[2]} if {codes[2]} > 0 else 0" if name == "array.slice" and kinds[2] == "int" else ""


def _is_constant(term: Term) -> bool:
    match term:
        case Scalar() | Number():
            return True
        case Array() | Set():
            return all(map(_is_constant, term.items))
        case Object():
            return all(_is_constant(key) and _is_constant(item) for key, item in term.items)
    return False


def _constant_value(term: Term) -> Value:
    match term:
        case Number():
            return read_number(term.text)
        case Array():
            return [_constant_value(item) for item in term.items]
        case Set():
            return make_set(_constant_value(item) for item in term.items)
        case Object():
            return {to_key(_constant_value(key)): _constant_value(item) for key, item in term.items}
        case Scalar():
            return term.value
    raise TypeError("only a constant term has a value")
