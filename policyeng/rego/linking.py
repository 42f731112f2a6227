"""Check the modules of a program as OPA does, and compile them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping

from policyeng.rego.annotations import Annotations
from policyeng.rego.budget import (
    UNLIMITED,
    EvaluationLimits,
    compile_at,
)
from policyeng.rego.builtins import NOW, REFUSED, signatures
from policyeng.rego.checker import Checker
from policyeng.rego.compiler import Compiler
from policyeng.rego.errors import RegoError, remember_text
from policyeng.rego.linked import Linked, limited
from policyeng.rego.parser import parse_module
from policyeng.rego.program import Program
from policyeng.rego.resolver import Definition, resolve_module
from policyeng.rego.safety import Orderer
from policyeng.rego.syntax import Module, constant_names, pattern_variables, root_name
from policyeng.rego.thread import Cover, Print
from policyeng.rego.tree import build_tree, conflicts, data_conflicts
from policyeng.rego.values import Value


def compile_modules(
    modules: Mapping[str, str],
    data: Value = None,
    *,
    version: int = 1,
    strict: bool = False,
    print_: Print | None = None,
    limits: EvaluationLimits = UNLIMITED,
    has_time: bool = False,
) -> Program:
    """Compile modules to a program.

    Args:
        modules: texts by file name.
        data: base data below `data`.
        version: of Rego, where a module does not state its own: 0 or 1.
        strict: refuse what OPA refuses in strict mode, too.
        print_: called with the place and the values of each `print`; without it, a module that prints is refused.
        limits: of what is compiled; those of evaluations are not used.
        has_time: evaluations are given a time, which `time.now_ns()` returns; without it, a call is refused.

    Raises:
        RegoError: with everything that is wrong, or the limit that is exceeded.
    """
    parsed = [parse_module(file, text, version, limits) for file, text in modules.items()]
    return link(parsed, {} if data is None else data, strict=strict, print_=print_, limits=limits, has_time=has_time)


def link(
    parsed: Iterable[Module],
    data: Value,
    *,
    strict: bool = False,
    types: bool = True,
    print_: Print | None = None,
    cover: Cover | None = None,
    names: Mapping[str, str] | None = None,
    lenient: Collection[str] = (),
    limits: EvaluationLimits = UNLIMITED,
    has_time: bool = False,
) -> Program:
    """Compile parsed modules to a program; see `compile_modules`.

    Args:
        parsed: the modules.
        data: base data below `data`.
        strict: refuse what OPA refuses in strict mode, too.
        types: refuse what can never be for its types, as OPA does. It changes no result, so a program that is
            evaluated does without: types are checked where policies are written.
        print_: called with the place and the values of each `print`; without it, a module that prints is refused.
        cover: called with the place of each expression and head that is evaluated.
        names: how errors of evaluations name files, where it is not as parsed.
        lenient: the files in which a builtin that fails is undefined, as without OPA's `strict-builtin-errors`.
        limits: of what is compiled.
        has_time: evaluations are given a time, which `time.now_ns()` returns.

    Raises:
        RegoError: with everything that is wrong, or the limit that is exceeded.
    """
    modules = list(parsed)
    for module in modules:
        remember_text(module.source.file, module.source.text)
    with limited(limits):
        compiler = _compiler_of(
            modules,
            data,
            strict=strict,
            types=types,
            prints=print_ is not None,
            covers=cover is not None,
            lenient=frozenset(lenient),
            has_time=has_time,
        )
        compiled = compiler.compile()
        linked = Linked(compiler.root, compiler.checker, compiler, limits)
    return Program(compiled, data, linked, print_, cover=cover, names=names)


def _compiler_of(
    modules: list[Module],
    data: Value,
    *,
    strict: bool,
    types: bool,
    prints: bool,
    covers: bool,
    lenient: Collection[str],
    has_time: bool,
) -> Compiler:
    """Check modules and return what compiles them."""
    annotations = Annotations(modules)
    faults = list(annotations.faults)
    siblings: dict[tuple[str, ...], set[str]] = {}
    for module in modules:
        own = siblings.setdefault(constant_names(module.package.path), set())
        own.update(root_name(rule.head.ref) for rule in module.rules)
    definitions: list[Definition] = []
    for module in modules:
        try:
            own = siblings[constant_names(module.package.path)]
            definitions += resolve_module(module, own, signatures(), strict=strict, annotations=annotations)
        except RegoError as error:
            faults += error.diagnostics
    root = build_tree(siblings, definitions)
    faults += conflicts(root)
    faults += data_conflicts(root, data)
    if faults:
        raise RegoError(*faults)
    refused = REFUSED.keys() - ({NOW} if has_time else set())
    checker = Checker(root, allow_print=prints, refused=refused)
    checker.check()
    faults += checker.faults
    unknown = {(fault.source.file, fault.offset) for fault in faults}
    for definition in definitions:
        compile_at(definition.source, definition.start)
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
    if types:
        from policyeng.rego.type_checker import check_types  # loaded where types are checked

        if faults := check_types(root, checker):
            raise RegoError(*faults)
    # Debuggers, coverage and readers of what is printed expect small functions where they are written.
    inlines = not prints and not covers and sys.gettrace() is None
    return Compiler(root, checker, data, print_calls=prints, inlines=inlines, covers=covers, lenient=lenient)
