"""Names of modules to rules, base data, builtins and local variables, as OPA resolves them.

A resolved body contains no `some`, no `:=` and no nested call: a declared variable has a name of its own (`x@3`), a
reference to a rule begins with `data`, and a call inside of a term is an expression before it, whose last argument is a
generated variable (`@4`). A head has variables and constants only where OPA's has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from policyeng.rego.annotations import Annotations
from policyeng.rego.budget import compile_at, spend
from policyeng.rego.builtins import signatures
from policyeng.rego.errors import Diagnostic, ModuleText, RegoError
from policyeng.rego.paths import write_part
from policyeng.rego.syntax import (
    COMPREHENSIONS,
    Array,
    ArrayComprehension,
    Body,
    Call,
    Every,
    Expr,
    Import,
    Logical,
    Module,
    Not,
    Number,
    Object,
    ObjectComprehension,
    Ref,
    Rule,
    Scalar,
    Set,
    SetComprehension,
    Some,
    SomeIn,
    Template,
    Term,
    Var,
    With,
    children_of,
    constant_names,
    constant_term,
    dotted_name,
    pattern_variables,
    results_of,
    root_name,
)
from policyeng.rego.values import Value

COMPILE_ERROR = "rego_compile_error"
TYPE_ERROR = "rego_type_error"
_ROOTS = frozenset(("data", "input"))
_METADATA = frozenset(("rego.metadata.chain", "rego.metadata.rule"))
_KEYWORD_ROOTS = frozenset(("future", "rego"))


@dataclass(slots=True)
class Branch:
    """One body of a rule, with the value it gives.

    Attributes:
        value: None for a member of a set.
        schemas: those in annotations that describe what it reads.
    """

    value: Term | None
    body: Body
    start: int
    end: int
    schemas: list[Value] = field(default_factory=list)


@dataclass(slots=True)
class Definition:
    """One rule of a module, resolved.

    Attributes:
        path: below `data`; text where it is constant.
        arguments: of a function, else None; a head `f()` without arguments is that of a rule.
        key: the member that it contributes to a set, else None.
        branches: its body and those of its `else`.
    """

    source: ModuleText
    path: list[Term]
    arguments: list[Term] | None
    key: Term | None
    branches: list[Branch]
    default: bool
    start: int
    end: int
    rule: Rule = field(repr=False)

    @property
    def prefix(self) -> tuple[str, ...]:
        """The names of its path before the first that is not a constant string."""
        return constant_names(self.path)

    @property
    def is_ground(self) -> bool:
        """Whether its whole path is constant."""
        return all(isinstance(part, Scalar | Number) for part in self.path)


def operator_name(call: Call) -> str | None:
    """Return the dotted name of a builtin, None for a function of a module."""
    return None if root_name(call.operator) == "data" else dotted_name(call.operator)


def resolve_module(
    module: Module,
    siblings: Iterable[str],
    builtins: Iterable[str],
    *,
    strict: bool,
    annotations: Annotations | None = None,
) -> list[Definition]:
    """Resolve the rules of a module.

    Args:
        module: as parsed.
        siblings: names of rules of the same package in any module.
        builtins: names of all builtins.
        strict: refuse unused imports, variables and arguments, too.
        annotations: of the program; those of the module alone where there are none.

    Raises:
        RegoError: names that OPA refuses.
    """
    resolver = _Resolver(module, siblings, builtins, strict=strict)
    resolver.annotations = annotations or Annotations([module])
    found = [resolver.definition(rule) for rule in module.rules]
    resolver.check_imports()
    if resolver.faults:
        raise RegoError(*resolver.faults)
    return found


def resolve_query(body: Body, source: ModuleText) -> tuple[Body, dict[str, str]]:
    """Resolve a query.

    Returns:
        its body, and the names of its variables by how they are written.

    Raises:
        RegoError: names that OPA refuses.
    """
    return resolve_body(body, Module(source, 1, Ref(0, 0, Var(0, 0, "data"), []), [], [], []), (), ())


def resolve_body(
    body: Body, module: Module, siblings: Iterable[str], builtins: Iterable[str], used: Iterable[str] = ()
) -> tuple[Body, dict[str, str]]:
    """Resolve a query in the words of a module: its package and its imports.

    Args:
        body: the query.
        module: as parsed.
        siblings: as for `resolve_module`.
        builtins: as for `resolve_module`.
        used: names of declared variables that the query may leave unused.

    Returns:
        its body, and the names of its variables by how they are written.

    Raises:
        RegoError: names that OPA refuses.
    """
    resolver = _Resolver(module, siblings, builtins, strict=False)
    scope = _NameScope(None, _declared(body))
    resolved = resolver.body(body, scope, used)
    if resolver.faults:
        raise RegoError(*resolver.faults)
    return resolved, {name: entry.name for name, entry in scope.names.items() if not name.startswith("$")}


@dataclass(slots=True)
class _Name:
    name: str
    kind: str
    uses: int = 1
    start: int = 0


class _NameScope:
    def __init__(self, parent: _NameScope | None, declares: frozenset[str]) -> None:
        self.parent = parent
        #: What the body of this scope declares anywhere; no rule or import is meant by these names.
        self.declares = declares
        self.names: dict[str, _Name] = {}
        #: The documents that are read here and are no variables.
        self.documents: set[str] = set()

    def find(self, name: str) -> _Name | None:
        scope: _NameScope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    def has(self, name: str) -> bool:
        """Return whether a name is a variable; the name of a builtin is none until it is used as one."""
        found = self.find(name)
        return found is not None and found.kind != "called"

    def is_read_outside(self, name: str) -> bool:
        """Return whether a body around this one has read a document."""
        scope = self.parent
        while scope is not None and name not in scope.documents:
            scope = scope.parent
        return scope is not None

    def hides(self, name: str) -> bool:
        scope: _NameScope | None = self
        while scope is not None:
            if name in scope.declares:
                return True
            scope = scope.parent
        return False


class _Resolver:
    def __init__(self, module: Module, siblings: Iterable[str], builtins: Iterable[str], *, strict: bool) -> None:
        self.module = module
        self.strict = strict
        self.faults: list[Diagnostic] = []
        self.count = 0
        self.computed_arguments: list[tuple[Var, Term]] = []
        self.annotations: Annotations | None = None
        #: The rule that is being resolved, and the one whose `else` it is.
        self.rules: tuple[Rule, Rule] | None = None
        self.builtins = frozenset(builtins)
        self.imports = [imported for imported in module.imports if root_name(imported.path) not in _KEYWORD_ROOTS]
        self.used: set[str] = set()
        self.globals: dict[str, Ref] = {}
        for name in siblings:
            part = Scalar(0, 0, name)
            self.globals[name] = Ref(0, 0, Var(0, 0, "data"), [*module.package.path, part])
        for imported in self.imports:
            self.globals[_import_name(imported)] = imported.path

    def fail(self, at: int, message: str, *hints: str) -> None:
        self.faults.append(Diagnostic(COMPILE_ERROR, message, self.module.source, at, hints))

    def check_imports(self) -> None:
        first: set[str] = set()
        for imported in self.imports:
            name = _import_name(imported)
            if (self.strict or self.module.version == 1) and name in first:
                self.fail(imported.start, f"import must not shadow import {_ref_text(imported.path)}")
            elif self.strict and name not in self.used:
                alias = f" as {imported.alias}" if imported.alias else ""
                self.fail(imported.start, f"import {_ref_text(imported.path)}{alias} unused")
            first.add(name)

    # Rules.

    def definition(self, rule: Rule) -> Definition:
        head = rule.head
        compile_at(self.module.source, rule.start)
        self.check_overrides(rule)
        arguments_scope = _NameScope(None, frozenset(_names_in(head.args or ())))
        self.computed_arguments = []
        arguments = [self.argument(term, arguments_scope) for term in head.args or ()] or None
        path: list[Term] = [*self.module.package.path, Scalar(head.ref.start, head.ref.end, root_name(head.ref))]
        key: Term | None = None
        branches: list[Branch] = []
        current: Rule | None = rule
        unused = {name for name in arguments_scope.names if not name.startswith("$")}
        while current is not None:
            spend(len(current.body) + len(arguments_scope.names))
            self.rules = current, rule
            scope = _NameScope(None, arguments_scope.declares | _declared(current.body))
            scope.names = {name: _Name(entry.name, entry.kind) for name, entry in arguments_scope.names.items()}
            # What a head uses is not unused.
            head_terms = [*current.head.ref.path, *_present(current.head.key, current.head.value)]
            in_head = set(_names_in(head_terms, nested=True))
            body = self.body(current.body, scope, used=in_head)
            support: Body = []
            for variable, term in self.computed_arguments:
                compared = _equality(term.start, term.end, variable, self.term(term, scope, support))
                support.append(Expr(term.start, term.end, compared, generated=True))
            if current is rule:
                path += [self.head_part(term, scope, support) for term in head.ref.path]
                key = self.head_term(head.key, scope, support)
            value = self.head_term(current.head.value, scope, support)
            schemas = self.annotations.schemas(self.module, current, rule) if self.annotations is not None else []
            branches.append(Branch(value, _append(body, support), current.start, current.end, schemas))
            unused -= in_head | {name for name, entry in scope.names.items() if entry.uses > 1}
            current = current.otherwise
        if self.strict and not rule.default:
            for name in sorted(unused):
                self.fail(head.start, f"unused argument {name}. (hint: use _ (wildcard variable) instead)")
        return Definition(self.module.source, path, arguments, key, branches, rule.default, rule.start, rule.end, rule)

    def check_overrides(self, rule: Rule) -> None:
        if root_name(rule.head.ref) in _ROOTS and (self.strict or self.module.version == 1):
            self.fail(rule.head.start, f"rules must not shadow {root_name(rule.head.ref)} (use a different rule name)")
        for name in _names_in(rule.head.args or ()):
            if name in _ROOTS:
                self.fail(rule.head.start, f"args must not shadow {name} (use a different variable name)")

    def head_term(self, term: Term | None, scope: _NameScope, support: Body) -> Term | None:
        resolved = None if term is None else self.term(term, scope, support)
        return self.capture(resolved, support) if resolved is not None and _needs_evaluation(resolved) else resolved

    def head_part(self, term: Term, scope: _NameScope, support: Body) -> Term:
        resolved = self.term(term, scope, support)
        if isinstance(resolved, Scalar | Number | Var):
            return resolved
        return self.capture(resolved, support)

    def argument(self, term: Term, scope: _NameScope) -> Term:
        match term:
            case Var(name=name) | Ref(head=Var(name=name), path=[]):
                if name.startswith("$"):
                    return self.fresh_wildcard(term)
                found = scope.find(name)
                if found is None:
                    found = scope.names[name] = _Name(self.fresh_name(name), "argument")
                else:
                    found.uses += 1
                return Var(term.start, term.end, found.name)
            case Array():
                return Array(term.start, term.end, [self.argument(item, scope) for item in term.items])
            case Object():
                items = [(self.argument_key(key), self.argument(item, scope)) for key, item in term.items]
                return Object(term.start, term.end, items)
            case Call():
                self.fail(term.start, "rule arguments cannot contain calls")
            case Scalar() | Number():
                pass
            case _:
                # What is computed is compared in the body.
                variable = self.fresh(term.start, term.end)
                self.computed_arguments.append((variable, term))
                return variable
        return term

    def argument_key(self, key: Term) -> Term:
        return self.term(key, _NameScope(None, frozenset()), [])

    # Bodies.

    def body(self, body: Body, scope: _NameScope, used: Iterable[str] = ()) -> Body:
        found: Body = []
        for expression in body:
            self.expression(expression, scope, found)
        self.check_unused(body, scope, frozenset(used))
        return found or [Expr(0, 0, Scalar(0, 0, value=True))]

    def check_unused(self, body: Body, scope: _NameScope, used: frozenset[str]) -> None:
        if self.faults:
            return
        for name, entry in scope.names.items():
            if entry.uses > 1 or name in used or name.startswith("$"):
                continue
            if entry.kind == "declared" or (entry.kind == "assigned" and self.strict):
                at = entry.start or (body[0].start if body else 0)
                self.fail(at, f"{entry.kind} var {name} unused")

    def expression(self, expression: Expr, scope: _NameScope, found: Body) -> None:
        withs, support = self.withs(expression, scope)
        found += support
        value = expression.value
        extra: Body = []
        assigned = False
        resolved: Term | Every | Not | Logical
        match value:
            case Some():
                for name in value.names:
                    self.declare(name, scope, "declared")
                return
            case SomeIn():
                resolved = self.membership(value, scope, extra)
            case Every():
                resolved = self.every(value, scope, extra)
            case Not():
                resolved = Not(value.start, value.end, self.closed_body(value, value.body, scope), value.explicit)
            case Logical():
                bodies = [
                    self.operand(body, scope, explicit=explicit, what=f"`{value.operator}` operand")
                    for body, explicit in zip((value.left, value.right), value.explicit, strict=True)
                ]
                resolved = Logical(value.start, value.end, value.operator, bodies[0], bodies[1], value.explicit)
            case Call() if operator_name(value) == "assign" and len(value.arguments) == 2:
                if expression.negated:
                    self.fail(expression.start, "cannot assign vars inside negated expression")
                    return
                assigned = True
                resolved = self.assignment(value, scope, extra)
            case Call() if (constant := self.metadata(value, scope)) is not None:
                resolved = constant
                if value.arguments:
                    output = self.term(value.arguments[0], scope, extra)
                    resolved = _equality(value.start, value.end, output, constant)
            case Call():
                resolved = self.call(value, scope, extra)
            case _:
                resolved = self.term(value, scope, extra)
        for made in extra:
            made.withs = [*made.withs, *withs]
        found += extra
        found.append(Expr(expression.start, expression.end, resolved, expression.negated, withs, assigned=assigned))

    def operand(self, body: Body, scope: _NameScope, *, explicit: bool, what: str) -> Body:
        if explicit:
            return self.body(body, _NameScope(scope, _declared(body)))
        for expression in body:
            if isinstance(expression.value, Call) and operator_name(expression.value) == "assign":
                self.fail(expression.start, f"cannot assign vars inside {what}")
                return []
        return self.implicit_body(body, scope)

    def closed_body(self, value: Not, body: Body, scope: _NameScope) -> Body:
        if value.explicit:
            return self.body(body, _NameScope(scope, _declared(body)))
        return self.operand(body, scope, explicit=False, what="negated expression")

    def implicit_body(self, body: Body, scope: _NameScope) -> Body:
        found: Body = []
        for expression in body:
            self.expression(expression, scope, found)
        return found

    def withs(self, expression: Expr, scope: _NameScope) -> tuple[list[With], Body]:
        support: Body = []
        withs = []
        for modifier in expression.withs:
            value = self.with_value(modifier.value, scope, support)
            target = self.with_target(modifier.target, scope)
            withs.append(With(modifier.start, modifier.end, target, value))
        return withs, support

    def with_target(self, target: Ref, scope: _NameScope) -> Ref:
        name = root_name(target)
        if name in self.globals and not scope.hides(name) and not scope.has(name):
            self.used.add(name)
            found = self.globals[name]
            return Ref(target.start, target.end, found.head, [*found.path, *target.path])
        if name in _ROOTS:
            # A variable of this name, which v0 allows, is never what is replaced.
            return target
        if scope.has(name):
            return Ref(target.start, target.end, self.variable(Var(target.start, target.end, name), scope), target.path)
        if not target.path:
            scope.names[name] = _Name(name, "called")
        return target

    def with_value(self, value: Term, scope: _NameScope, support: Body) -> Term:
        """Resolve the value of a modifier, which is evaluated outside of it; the name of a function is not a value."""
        match value:
            case Var(name=name) | Ref(head=Var(name=name)) if not scope.has(name):
                parts = value.path if isinstance(value, Ref) else []
                dotted = ".".join([name, *(str(part.value) for part in parts if isinstance(part, Scalar))])
                if dotted in self.builtins and name not in self.globals:
                    if not parts:
                        scope.names[name] = _Name(name, "called")
                    operator = Ref(value.start, value.end, Var(value.start, value.end, name), parts)
                    return Call(value.start, value.end, operator, [])
        resolved = self.term(value, scope, support)
        if isinstance(resolved, Ref) and root_name(resolved) == "data":
            # Whether it is a function or a value is known when all rules are.
            return resolved
        return self.capture(resolved, support) if _needs_evaluation(resolved) else resolved

    def assignment(self, value: Call, scope: _NameScope, extra: Body) -> Call:
        target, source = value.arguments
        name = target.name if isinstance(target, Var) else ""
        if isinstance(target, Ref) and not target.path:
            name = root_name(target)
        if name in _ROOTS and (self.strict or self.module.version == 1):
            self.fail(target.start, f"variables must not shadow {name} (use a different variable name)")
        right = self.term(source, scope, extra)
        left = self.target(target, scope)
        return _equality(value.start, value.end, left, right)

    def target(self, term: Term, scope: _NameScope) -> Term:
        match term:
            case Var() | Ref(head=Var(), path=[]):
                name = term if isinstance(term, Var) else Var(term.start, term.end, root_name(term))
                return self.declare(name, scope, "assigned")
            case Array():
                return Array(term.start, term.end, [self.target(item, scope) for item in term.items])
            case Object():
                items = [(self.term(key, scope, []), self.target(item, scope)) for key, item in term.items]
                return Object(term.start, term.end, items)
        self.fail(term.start, f"cannot assign to {_kind_name(term)}", "compare with `==`")
        return term

    def declare(self, variable: Var, scope: _NameScope, kind: str) -> Term:
        if variable.is_wildcard:
            return self.fresh_wildcard(variable)
        found = scope.names.get(variable.name)
        if found is not None:
            message = {
                "called": f"var {variable.name} referenced above",
                "seen": f"var {variable.name} referenced above",
                "assigned": f"var {variable.name} assigned above",
                "declared": f"var {variable.name} declared above",
                "argument": f"arg {variable.name} redeclared",
            }[found.kind]
            hint = f"use another name, or compare with `{variable.name} ==`"
            self.fail(variable.start, message, *([hint] if found.kind in ("assigned", "argument") else []))
            return variable
        entry = scope.names[variable.name] = _Name(self.fresh_name(variable.name), kind, 1, variable.start)
        return Var(variable.start, variable.end, entry.name)

    def membership(self, value: SomeIn, scope: _NameScope, extra: Body) -> Term:
        """Rewrite `some k, x in xs` as `x = xs[k]`, with the variables of both patterns declared."""
        arguments = value.member.arguments
        container = arguments[-1]
        member = arguments[-2]
        key = arguments[0] if len(arguments) == 3 else None
        declared = [variable for pattern in _present(member, key) for variable in pattern_variables(pattern)]
        inside = set(_names_in([container]))
        for name in sorted({variable.name for variable in declared}):
            if name in inside and not name.startswith("$"):
                self.fail(value.start, f"var {name} assigned before")
                return Scalar(value.start, value.end, value=True)
        outside = scope.declares
        scope.declares = outside - {variable.name for variable in declared}
        resolved = self.term(container, scope, extra)
        scope.declares = outside
        seen: set[str] = set()
        for variable in declared:
            if variable.name not in seen:
                seen.add(variable.name)
                self.declare(variable, scope, "declared")
        left = self.term(member, scope, extra)
        place = self.term(key, scope, extra) if key is not None else self.fresh_wildcard(value.member)
        if isinstance(resolved, Ref):
            right = Ref(resolved.start, resolved.end, resolved.head, [*resolved.path, place])
        else:
            head = resolved if isinstance(resolved, Var) else self.capture(resolved, extra)
            right = Ref(container.start, container.end, head, [place])
        return _equality(value.start, value.end, left, right)

    def every(self, value: Every, scope: _NameScope, extra: Body) -> Every:
        domain = self.capture(self.term(value.domain, scope, extra), extra)
        names = frozenset(name.name for name in (value.key, value.value) if name is not None)
        inner = _NameScope(scope, names | _declared(value.body))
        key = self.declare(value.key, inner, "declared") if value.key is not None else None
        item = self.declare(value.value, inner, "declared")
        body = self.body(value.body, inner)
        if not isinstance(item, Var) or not isinstance(key, Var | None):
            raise TypeError("a declaration gives a variable")
        return Every(value.start, value.end, key, item, domain, body)

    # Terms.

    def fresh_name(self, name: str) -> str:
        self.count += 1
        return f"{name}@{self.count}"

    def fresh_wildcard(self, place: Term) -> Var:
        return Var(place.start, place.end, self.fresh_name("$"))

    def fresh(self, start: int, end: int) -> Var:
        return Var(start, end, self.fresh_name(""))

    def capture(self, term: Term, support: Body) -> Term:
        if isinstance(term, Var):
            return term
        variable = self.fresh(term.start, term.end)
        support.append(Expr(term.start, term.end, _equality(term.start, term.end, variable, term), generated=True))
        return variable

    def call(self, call: Call, scope: _NameScope, support: Body) -> Call:
        operator = call.operator
        name = root_name(operator)
        if scope.has(name):
            self.fail(call.start, f"called function {_ref_text(operator)} shadowed")
        elif name in self.globals and not scope.hides(name):
            self.used.add(name)
            found = self.globals[name]
            operator = Ref(operator.start, operator.end, found.head, [*found.path, *operator.path])
        else:
            if self.strict or self.module.version == 1:
                self.check_deprecated(call)
            if not operator.path:
                scope.names[name] = _Name(name, "called")
        arguments = [self.term(argument, scope, support) for argument in call.arguments]
        return Call(call.start, call.end, operator, arguments)

    def metadata(self, call: Call, scope: _NameScope) -> Term | None:
        """Return what a call of `rego.metadata.rule` or `rego.metadata.chain` is, which follows from the text."""
        name = operator_name(call)
        if name not in _METADATA or len(call.arguments) > 1 or scope.has("rego") or "rego" in self.globals:
            return None
        if self.annotations is None or self.rules is None:
            self.fail(call.start, f"{name} is about the rule that calls it: call it in a rule")
            return Object(call.start, call.end, [])
        rule, first = self.rules
        if name == "rego.metadata.rule":
            return constant_term(self.annotations.rule(rule), call.start, call.end)
        return constant_term(self.annotations.chain(self.module, rule, first), call.start, call.end)

    def check_deprecated(self, call: Call) -> None:
        name = operator_name(call)
        if name in self.builtins and signatures()[name].get("deprecated"):
            message = f"deprecated built-in function calls in expression: {name}"
            self.faults.append(Diagnostic(TYPE_ERROR, message, self.module.source, call.start))

    def term(self, term: Term, scope: _NameScope, support: Body) -> Term:
        match term:
            case Scalar() | Number():
                return term
            case Var():
                return self.variable(term, scope)
            case Ref():
                return self.ref(term, scope, support)
            case Call() if not term.arguments and (constant := self.metadata(term, scope)) is not None:
                return self.capture(constant, support)
            case Call():
                resolved = self.call(term, scope, support)
                output = self.fresh(term.start, term.end)
                resolved.arguments.append(output)
                support.append(Expr(term.start, term.end, resolved, generated=True))
                return output
            case Array():
                return Array(term.start, term.end, [self.term(item, scope, support) for item in term.items])
            case Set():
                return Set(term.start, term.end, [self.term(item, scope, support) for item in term.items])
            case Object():
                # As in OPA, the last of two equal keys is the only one that is evaluated.
                last = {repr(key): (key, item) for key, item in term.items}.values()
                items = [(self.term(key, scope, support), self.term(item, scope, support)) for key, item in last]
                return Object(term.start, term.end, items)
            case ObjectComprehension():
                body, (key, value) = self.comprehension(term.body, [term.key, term.value], scope)
                return ObjectComprehension(term.start, term.end, key, value, body)
            case ArrayComprehension() | SetComprehension():
                body, (item,) = self.comprehension(term.body, [term.term], scope)
                return type(term)(term.start, term.end, item, body)
        return self.template(term, scope, support)

    def comprehension(self, body: Body, terms: list[Term], scope: _NameScope) -> tuple[Body, list[Term]]:
        inner = _NameScope(scope, _declared(body))
        resolved = self.body(body, inner, used=_names_in(terms, nested=True))
        support: Body = []
        heads = [self.term(term, inner, support) for term in terms]
        heads = [self.capture(head, support) if _needs_evaluation(head) else head for head in heads]
        return _append(resolved, support), heads

    def template(self, template: Template, scope: _NameScope, support: Body) -> Term:
        """Rewrite a template string as a call of a builtin with a set of the possible values of each part."""
        parts: list[Term] = []
        for part in template.parts:
            if not isinstance(part, Expr):
                parts.append(part)
                continue
            inner = _NameScope(scope, frozenset())
            body: Body = []
            if isinstance(part.value, Call):
                value: Term = self.term(part.value, inner, body)
            elif isinstance(part.value, Some | SomeIn | Every | Not | Logical):
                self.fail(part.start, "a template string takes terms and calls only")
                continue
            else:
                value = self.term(part.value, inner, body)
            if isinstance(value, Var) and not body:
                parts.append(Set(part.start, part.end, [value]))
                continue
            withs, outside = self.withs(part, scope)
            support += outside
            variable = self.capture(value, body)
            for made in body:
                made.withs = [*made.withs, *withs]
            parts.append(SetComprehension(part.start, part.end, variable, body))
        operator = Ref(template.start, template.end, Var(template.start, template.end, "internal"), [])
        operator.path.append(Scalar(template.start, template.end, "template_string"))
        output = self.fresh(template.start, template.end)
        texts = Array(template.start, template.end, parts or [Scalar(template.start, template.end, "")])
        call = Call(template.start, template.end, operator, [texts, output])
        support.append(Expr(template.start, template.end, call, generated=True))
        return output

    def variable(self, term: Var, scope: _NameScope) -> Term:
        if term.is_wildcard:
            return self.fresh_wildcard(term)
        found = scope.find(term.name)
        if found is not None:
            if found.kind == "called":
                self.fail(term.start, f"called function {term.name} shadowed")
            found.uses += 1
            return Var(term.start, term.end, found.name)
        if not scope.hides(term.name):
            if term.name in self.globals:
                self.used.add(term.name)
                reference = self.globals[term.name]
                return Ref(term.start, term.end, reference.head, list(reference.path))
            if term.name in _ROOTS:
                scope.documents.add(term.name)
                return Ref(term.start, term.end, term, [])
        if term.name in _ROOTS and scope.is_read_outside(term.name):
            # As in OPA, a later declaration here does not conflict with it.
            return Ref(term.start, term.end, term, [])
        scope.names[term.name] = _Name(term.name, "seen")
        return term

    def ref(self, term: Ref, scope: _NameScope, support: Body) -> Term:
        head = self.term(term.head, scope, support)
        path = [self.term(part, scope, support) for part in term.path]
        if isinstance(head, Ref):
            return Ref(term.start, term.end, head.head, [*head.path, *path])
        if not path:
            return head
        return Ref(term.start, term.end, self.capture(head, support), path)


def _equality(start: int, end: int, left: Term, right: Term) -> Call:
    return Call(start, end, Ref(start, end, Var(start, end, "eq"), []), [left, right])


def _append(body: Body, support: Body) -> Body:
    if support and len(body) == 1 and isinstance(body[0].value, Scalar) and body[0].value.value is True:
        return support
    return [*body, *support]


def _present(*terms: Term | None) -> list[Term]:
    return [term for term in terms if term is not None]


def _needs_evaluation(term: Term) -> bool:
    match term:
        case Ref() | ArrayComprehension() | SetComprehension() | ObjectComprehension():
            return True
        case Array(items=items) | Set(items=items):
            return any(map(_needs_evaluation, items))
        case Object(items=items):
            return any(_needs_evaluation(key) or _needs_evaluation(item) for key, item in items)
    return False


def _import_name(imported: Import) -> str:
    if imported.alias:
        return imported.alias
    last = imported.path.path[-1] if imported.path.path else imported.path.head
    return str(last.value) if isinstance(last, Scalar) else root_name(imported.path)


def _ref_text(ref: Ref) -> str:
    text = root_name(ref)
    for part in ref.path:
        if isinstance(part, Scalar):
            text += write_part(part.value) if isinstance(part.value, str) else f'["{part.value}"]'
        elif isinstance(part, Var):
            text += f"[{part.name.partition('@')[0]}]"
    return text


def _kind_name(term: Term) -> str:
    if isinstance(term, Scalar):
        return {str: "string", bool: "boolean"}.get(type(term.value), "null")
    return type(term).__name__.lower().replace("comprehension", " comprehension").strip()


def _names_in(terms: Iterable[Term], *, nested: bool = False) -> Iterator[str]:
    """Names of variables, with those inside of comprehensions and templates where `nested`."""
    for term in terms:
        if isinstance(term, Var):
            yield term.name
        yield from _names_in(children_of(term), nested=nested)
        if nested and isinstance(term, COMPREHENSIONS):
            yield from _names_in(results_of(term), nested=True)
            for expression in term.body:
                yield from _names_in_expression(expression)
        if nested and isinstance(term, Template):
            for part in term.parts:
                if isinstance(part, Expr):
                    yield from _names_in_expression(part)


def _names_in_expression(expression: Expr) -> Iterator[str]:
    value = expression.value
    match value:
        case Some() | SomeIn():
            return
        case Every():
            yield from _names_in([value.domain], nested=True)
            bodies = [value.body]
        case Not():
            bodies = [value.body]
        case Logical():
            bodies = [value.left, value.right]
        case _:
            yield from _names_in([value], nested=True)
            bodies = []
    for modifier in expression.withs:
        yield from _names_in([modifier.value], nested=True)
    for body in bodies:
        for inner in body:
            yield from _names_in_expression(inner)


def _declared(body: Body) -> frozenset[str]:
    """Return the names that the expressions of a body declare, except in comprehensions."""
    found: set[str] = set()
    for expression in body:
        value = expression.value
        if isinstance(value, Some):
            found.update(name.name for name in value.names)
        elif isinstance(value, SomeIn):
            found.update(_names_in(value.member.arguments[:-1]))
            found -= _ROOTS
        elif isinstance(value, Call) and operator_name(value) == "assign":
            found.update(_names_in(value.arguments[:1]))
    return frozenset(found)
