"""Check the modules of a program as OPA does, and compile them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import CodeType

from policyeng.rego.builtins import signatures
from policyeng.rego.checker import Checker
from policyeng.rego.compiled import Compiled
from policyeng.rego.compiler import Compiler
from policyeng.rego.errors import Diagnostic, ModuleText, RegoError, remember_text
from policyeng.rego.parser import parse_module, parse_query
from policyeng.rego.program import Cover, Print, Program
from policyeng.rego.resolver import Definition, resolve_body, resolve_module, resolve_query
from policyeng.rego.safety import Orderer
from policyeng.rego.syntax import Body, Module, Var, constant_names, pattern_variables, root_name, walk
from policyeng.rego.tree import DataNode, build_tree, conflicts
from policyeng.rego.type_checker import check_query_types, check_types
from policyeng.rego.values import Value


@dataclass(slots=True)
class Linked:
    """The rules of a program and what was found about them."""

    root: DataNode
    checker: Checker
    compiler: Compiler

    def compile_handled(self) -> Compiled:
        """Compile the form that handles markers.

        Raises:
            RegoError: loops are nested too deeply for it, in a reference with very many variables.
        """
        from policyeng.rego.marker_handling import HandledCompiler  # imported when a document has markers

        plain = self.compiler
        compiler = HandledCompiler(plain.root, plain.checker, plain.data, inlines=plain.inlines, lenient=plain.lenient)
        return compiler.compile()

    def compile_query(self, query: str) -> tuple[CodeType, str, Compiled | None]:
        """Compile a query.

        Returns:
            Its code, the name of its function there, and the program again where the query replaces what rules do not
            look for.

        Raises:
            RegoError: the query is not well formed.
        """
        source = ModuleText("query", query)
        return self._compile_resolved(source, *resolve_query(parse_query(query), source))

    def compile_body(self, body: Body, module: Module) -> tuple[CodeType, str, Compiled | None]:
        """Compile a query in the words of a module of the program, as parsed; see `compile_query`."""
        node = self.root.find(constant_names(module.package.path))
        siblings = [name for name, child in node.children.items() if _has_rules(child)] if node is not None else []
        names = {node.name for node in walk(body) if isinstance(node, Var)}
        return self._compile_resolved(module.source, *resolve_body(body, module, siblings, signatures(), names))

    def _compile_resolved(
        self, source: ModuleText, body: Body, variables: dict[str, str]
    ) -> tuple[CodeType, str, Compiled | None]:
        checker = self.checker
        checker.faults = []
        replaced = set(checker.replaced)
        checker.check_body(source, body)
        orderer = Orderer(source, checker.arity)
        body = orderer.order(body, frozenset())
        if faults := [*checker.faults, *orderer.faults]:
            raise RegoError(*faults)
        if faults := check_query_types(self.root, checker, source, body):
            raise RegoError(*faults)
        recompiled = None
        if checker.replaced != replaced:
            old = self.compiler
            self.compiler = Compiler(
                old.root,
                checker,
                old.data,
                print_calls=old.print_calls,
                inlines=old.inlines,
                covers=old.covers,
                lenient=old.lenient,
            )
            self.compiler.count = old.count
            recompiled = self.compiler.compile()
        code, name = self.compiler.compile_query(source, body, variables)
        return code, name, recompiled


def _has_rules(node: DataNode) -> bool:
    """Return whether a name of a package is one of its rules, and not a package below it."""
    if node.definitions or node.dynamic:
        return True
    return not node.is_package and any(map(_has_rules, node.children.values()))


def compile_modules(
    modules: Mapping[str, str],
    data: Value = None,
    *,
    version: int = 1,
    strict: bool = False,
    print_: Print | None = None,
) -> Program:
    """Compile modules to a program.

    Args:
        modules: texts by file name.
        data: base data below `data`.
        version: of Rego, where a module does not state its own: 0 or 1.
        strict: refuse what OPA refuses in strict mode, too.
        print_: called with the place and the values of each `print`; without it, a module that prints is refused.

    Raises:
        RegoError: with everything that is wrong.
        LibraryError: a builtin needs a library that is not installed.
    """
    parsed = [parse_module(file, text, version) for file, text in modules.items()]
    return link(parsed, {} if data is None else data, strict=strict, print_=print_)


def link(
    parsed: Iterable[Module],
    data: Value,
    *,
    strict: bool = False,
    print_: Print | None = None,
    cover: Cover | None = None,
    names: Mapping[str, str] | None = None,
    lenient: Collection[str] = (),
) -> Program:
    """Compile parsed modules to a program; see `compile_modules`.

    Args:
        parsed: the modules.
        data: base data below `data`.
        strict: refuse what OPA refuses in strict mode, too.
        print_: called with the place and the values of each `print`; without it, a module that prints is refused.
        cover: called with the place of each expression and head that is evaluated.
        names: how errors of evaluations name files, where it is not as parsed.
        lenient: the files in which a builtin that fails is undefined, as without OPA's `strict-builtin-errors`.
    """
    modules = list(parsed)
    for module in modules:
        remember_text(module.source.file, module.source.text)
    faults: list[Diagnostic] = []
    siblings: dict[tuple[str, ...], set[str]] = {}
    for module in modules:
        own = siblings.setdefault(constant_names(module.package.path), set())
        own.update(root_name(rule.head.ref) for rule in module.rules)
    definitions: list[Definition] = []
    for module in modules:
        try:
            definitions += resolve_module(
                module, siblings[constant_names(module.package.path)], signatures(), strict=strict
            )
        except RegoError as error:
            faults += error.diagnostics
    root = build_tree(siblings, definitions)
    faults += conflicts(root)
    if faults:
        raise RegoError(*faults)
    checker = Checker(root, allow_print=print_ is not None)
    checker.check()
    faults += checker.faults
    unknown = {(fault.source.file, fault.offset) for fault in faults}
    for definition in definitions:
        orderer = Orderer(definition.source, checker.arity)
        bound = frozenset(variable.name for term in definition.arguments or () for variable in pattern_variables(term))
        for branch in definition.branches:
            head = [*definition.path, *(term for term in (definition.key, branch.value) if term is not None)]
            orderer.check_head(head, branch.body, bound)
            branch.body = orderer.order(branch.body, bound)
        # The result of a call that is refused is unsafe, too, which adds no information.
        faults += [fault for fault in orderer.faults if (fault.source.file, fault.offset) not in unknown]
    if faults:
        raise RegoError(*faults)
    if faults := check_types(root, checker):
        raise RegoError(*faults)
    # Debuggers, coverage and readers of what is printed expect small functions where they are written.
    inlines = print_ is None and cover is None and sys.gettrace() is None
    compiler = Compiler(
        root,
        checker,
        data,
        print_calls=print_ is not None,
        inlines=inlines,
        covers=cover is not None,
        lenient=frozenset(lenient),
    )
    return Program(compiler.compile(), data, Linked(root, checker, compiler), print_, cover=cover, names=names)
