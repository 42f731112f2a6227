"""The rules of a compiled program, from which queries, parts and the other forms are compiled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType

from policyeng.rego.assembly import GeneratedProgram
from policyeng.rego.budget import UNLIMITED, CompilationLimitError, EvaluationLimits, compiling
from policyeng.rego.builtins import signatures
from policyeng.rego.checker import Checker
from policyeng.rego.compiled import Compiled
from policyeng.rego.compiler import Compiler, length_of
from policyeng.rego.errors import LIMIT_ERROR, Diagnostic, ModuleText, RegoError
from policyeng.rego.parser import SPLIT_HINT, parse_query
from policyeng.rego.resolver import resolve_body, resolve_query
from policyeng.rego.safety import Orderer
from policyeng.rego.syntax import Body, Module, Var, constant_names, walk
from policyeng.rego.tree import DataNode


@contextmanager
def limited(limits: EvaluationLimits) -> Iterator[None]:
    """Refuse what takes too many steps to compile, with the place of what was being compiled."""
    with compiling(limits) as steps:
        try:
            yield
        except CompilationLimitError as error:
            source = steps.source or ModuleText("", "")
            diagnostic = Diagnostic(LIMIT_ERROR, f"the program {error}", source, steps.offset, (SPLIT_HINT,))
            raise RegoError(diagnostic) from None


@dataclass(slots=True)
class Linked:
    """The rules of a program and what was found about them.

    Attributes:
        root: the rules.
        checker: what has checked them.
        compiler: what has compiled them.
        limits: of what is compiled.
    """

    root: DataNode
    checker: Checker
    compiler: Compiler
    limits: EvaluationLimits = UNLIMITED

    def compile_handled(self) -> Compiled:
        """Compile the form that handles markers.

        Raises:
            RegoError: loops are nested too deeply for it, in a reference with very many variables.
        """
        with limited(self.limits):
            return self._handled_compiler().compile()

    def generate(self) -> tuple[GeneratedProgram, GeneratedProgram]:
        """Return the Python text of the plain form, and of the form that handles markers.

        Raises:
            RegoError: as for `compile_handled`.
        """
        with limited(self.limits):
            return self.compiler.renewed(self.checker).generate(), self._handled_compiler().generate()

    def _handled_compiler(self) -> Compiler:
        from policyeng.rego.marker_handling import HandledCompiler  # imported when a document has markers

        plain = self.compiler
        return HandledCompiler(plain.root, plain.checker, plain.data, inlines=plain.inlines, lenient=plain.lenient)

    def compile_part(self, path: tuple[str | int, ...]) -> list[CodeType]:
        """Return the code that evaluates a part of a set or object alone, where a path leads to one and it is new."""
        node = self.root
        for place, name in enumerate(path):
            if (node.is_rule or node.dynamic) and length_of(node):
                return self.compiler.compile_part(node, len(path) - place)
            child = node.children.get(name) if isinstance(name, str) else None
            if child is None or child.is_function:
                break
            node = child
        return []

    def compile_query(self, query: str) -> tuple[list[CodeType], str, Compiled | None]:
        """Compile a query.

        Returns:
            Its code, the name of its function there, and the program again where the query replaces what rules do not
            look for.

        Raises:
            RegoError: the query is not well formed.
        """
        source = ModuleText("query", query)
        return self._compile_resolved(source, *resolve_query(parse_query(query), source))

    def compile_body(self, body: Body, module: Module) -> tuple[list[CodeType], str, Compiled | None]:
        """Compile a query in the words of a module of the program, as parsed; see `compile_query`."""
        node = self.root.find(constant_names(module.package.path))
        siblings = [name for name, child in node.children.items() if _has_rules(child)] if node is not None else []
        names = {node.name for node in walk(body) if isinstance(node, Var)}
        return self._compile_resolved(module.source, *resolve_body(body, module, siblings, signatures(), names))

    def _compile_resolved(
        self, source: ModuleText, body: Body, variables: dict[str, str]
    ) -> tuple[list[CodeType], str, Compiled | None]:
        checker = self.checker
        checker.faults = []
        replaced = set(checker.replaced)
        checker.check_body(source, body)
        orderer = Orderer(source, checker.arity)
        body = orderer.order(body, frozenset())
        if faults := [*checker.faults, *orderer.faults]:
            raise RegoError(*faults)
        if checker.types is not None:
            from policyeng.rego.type_checker import check_query_types  # loaded where types are checked

            if faults := check_query_types(self.root, checker, source, body):
                raise RegoError(*faults)
        recompiled = None
        if checker.replaced != replaced:
            old = self.compiler
            self.compiler = old.renewed(checker)
            self.compiler.count = old.count
            recompiled = self.compiler.compile()
        code, name = self.compiler.compile_query(source, body, variables)
        return code, name, recompiled


def _has_rules(node: DataNode) -> bool:
    """Return whether a name of a package is one of its rules, and not a package below it."""
    if node.definitions or node.dynamic:
        return True
    return not node.is_package and any(map(_has_rules, node.children.values()))
