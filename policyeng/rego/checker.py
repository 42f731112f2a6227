"""What OPA refuses about modules that parse and resolve: unknown functions, wrong arity, recursion, modifiers."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from policyeng.rego.budget import compile_at
from policyeng.rego.builtins import NOW, REFUSED, explain_refusal, signatures
from policyeng.rego.errors import Diagnostic, ModuleText
from policyeng.rego.resolver import COMPILE_ERROR, TYPE_ERROR, Definition, operator_name
from policyeng.rego.syntax import (
    COMPREHENSIONS,
    Body,
    Call,
    Every,
    Expr,
    Logical,
    Not,
    Number,
    Ref,
    Scalar,
    Term,
    Var,
    With,
    constant_names,
    root_name,
    walk_terms,
)
from policyeng.rego.tree import DataNode, path_text
from policyeng.rego.types import Tree, from_json, text

RECURSION_ERROR = "rego_recursion_error"


def walk_expressions(body: Body) -> Iterator[Expr]:
    """Yield every expression of a body and of the bodies inside of it."""
    for expression in body:
        yield expression
        value = expression.value
        match value:
            case Every() | Not():
                yield from walk_expressions(value.body)
                if isinstance(value, Every):
                    yield from _in_term(value.domain)
            case Logical():
                yield from walk_expressions(value.left)
                yield from walk_expressions(value.right)
            case _:
                yield from _in_term(value)  # type: ignore[arg-type]  # only terms are left
        for modifier in expression.withs:
            yield from _in_term(modifier.value)


def _in_term(term: Term) -> Iterator[Expr]:
    for found in walk_terms(term):
        if isinstance(found, COMPREHENSIONS):
            yield from walk_expressions(found.body)


def terms_of(expression: Expr) -> Iterator[Term]:
    """Yield the terms of one expression, without those of bodies inside of it."""
    value = expression.value
    if isinstance(value, Every):
        yield from walk_terms(value.domain)
    elif not isinstance(value, Not | Logical):
        yield from walk_terms(value)  # type: ignore[arg-type]  # only terms are left
    for modifier in expression.withs:
        yield from walk_terms(modifier.value)


class Checker:
    """Checks the rules of a program.

    Attributes:
        faults: what was found.
        replaced: paths of data and names of functions that `with` replaces anywhere.
        reads: by path of a rule, the paths of the rules that it needs.
        reads_input: paths of rules that read the input themselves.
        types: of the rules, once they are inferred.
    """

    def __init__(self, root: DataNode, *, allow_print: bool, refused: Container[str] | None = None) -> None:
        """Take the rules."""
        self.root = root
        self.allow_print = allow_print
        self.refused = REFUSED if refused is None else refused
        #: Calls of builtins that are refused, unless a modifier replaces them.
        self.refused_calls: list[tuple[str, Diagnostic]] = []
        self.faults: list[Diagnostic] = []
        self.replaced: set[tuple[str, ...] | str] = set()
        self.reads: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        self.reads_input: set[tuple[str, ...]] = set()
        self.types = Tree()

    def arity(self, call: Call) -> int | None:
        """Return the number of arguments of what a call names, None where nothing has the name."""
        name = operator_name(call)
        if name is not None:
            if name == "print":
                return len(call.arguments)
            signature = signatures().get(name)
            return None if signature is None else len(signature["arguments"])
        node = self.root.find(constant_names(call.operator.path))
        if node is None or not node.is_rule or len(constant_names(call.operator.path)) < len(call.operator.path):
            return None
        return len(node.definitions[0].arguments or ())

    def check(self) -> None:
        """Check every rule, and then for recursion."""
        for node in self.root.below():
            for definition in [*node.definitions, *node.dynamic]:
                self.check_definition(node, definition)
        self.faults += [fault for name, fault in self.refused_calls if name not in self.replaced]
        self._check_recursion()

    def check_definition(self, node: DataNode, definition: Definition) -> None:
        """Check the calls and modifiers of one rule and note what it reads."""
        compile_at(definition.source, definition.start)
        reads = self.reads.setdefault(node.path, set())
        terms = [*definition.path, *(definition.arguments or ())]
        terms += [] if definition.key is None else [definition.key]
        for branch in definition.branches:
            for term in [*terms, *([] if branch.value is None else [branch.value])]:
                for found in walk_terms(term):
                    self._note(found, node.path, reads)
                for expression in _in_term(term):
                    self._check_expression(definition.source, expression, node.path, reads)
            for expression in walk_expressions(branch.body):
                self._check_expression(definition.source, expression, node.path, reads)
            terms = []

    def check_body(self, source: ModuleText, body: Body) -> None:
        """Check the calls and modifiers of a query."""
        reads = self.reads.setdefault((), set())
        self.refused_calls = []
        for expression in walk_expressions(body):
            self._check_expression(source, expression, (), reads)
        self.faults += [fault for name, fault in self.refused_calls if name not in self.replaced]

    def _check_expression(
        self, source: ModuleText, expression: Expr, path: tuple[str, ...], reads: set[tuple[str, ...]]
    ) -> None:
        for term in terms_of(expression):
            self._note(term, path, reads)
        if isinstance(expression.value, Call):
            self._check_call(source, expression, expression.value)
            if operator_name(expression.value) == NOW:
                self.reads_input.add(path)
            elif operator_name(expression.value) is None:
                reads.add(constant_names(expression.value.operator.path))
        for modifier in expression.withs:
            self._check_modifier(source, modifier, reads)

    def _note(self, term: Term, path: tuple[str, ...], reads: set[tuple[str, ...]]) -> None:
        if not isinstance(term, Ref):
            return
        if root_name(term) == "input":
            self.reads_input.add(path)
        elif root_name(term) == "data":
            reads.update(node.path for node in self.targets(term))

    def targets(self, ref: Ref) -> list[DataNode]:
        """Return the rules that a reference below `data` may read."""
        reached = [self.root]
        found: list[DataNode] = []
        for part in ref.path:
            found += [node for node in reached if node.is_rule or node.dynamic]
            inner = [node for node in reached if not node.is_rule]
            if isinstance(part, Scalar | Number):
                name = part.value if isinstance(part, Scalar) else None
                reached = [node.children[name] for node in inner if isinstance(name, str) and name in node.children]
            else:
                reached = [child for node in inner for child in node.children.values()]
        if len(constant_names(ref.path)) == len(ref.path):
            # A function that is not called counts, too.
            found += [node for node in reached if node.is_function]
        for node in reached:
            found += [below for below in node.below() if (below.is_rule and not below.is_function) or below.dynamic]
        return found

    def _check_call(self, source: ModuleText, expression: Expr, call: Call) -> None:
        name = operator_name(call)
        shown = name if name is not None else path_text(call.operator.path)
        if name is not None and name in self.refused:
            self.refused_calls.append((name, Diagnostic(TYPE_ERROR, explain_refusal(name), source, call.start)))
        if name in {"print", "internal.print"}:
            if not self.allow_print:
                message = "print is for tests: remove the call, or run it with `policyeng test`"
                self.faults.append(Diagnostic(COMPILE_ERROR, message, source, call.start))
            return
        arity = self.arity(call)
        if arity is None:
            hints = _similar(shown, signatures()) if name is not None else ()
            if not hints and name is not None and "." in name:
                hints = (f"import the package that defines it, such as `import data.{name.rpartition('.')[0]}`",)
            self.faults.append(Diagnostic(TYPE_ERROR, f"undefined function {shown}", source, call.start, hints))
            return
        count = len(call.arguments)
        expected = (arity + 1,) if expression.generated and name != "eq" else (arity, arity + 1)
        if count not in expected:
            given = count - 1 if expression.generated else count
            plural = "" if given == 1 else "s"
            message = f"function {shown} has arity {arity}, got {given} argument{plural}"
            self.faults.append(Diagnostic(TYPE_ERROR, message, source, call.start, (self._signature(call, shown),)))

    def _signature(self, call: Call, shown: str) -> str:
        """Return how a function is called."""
        name = operator_name(call)
        if name is not None:
            return f"write {shown}({', '.join(text(from_json(each)) for each in signatures()[name]['arguments'])})"
        node = self.root.find(constant_names(call.operator.path))
        rules = node.definitions[0].rule.head.args if node is not None else None
        names = [part.name if isinstance(part, Var) else "..." for part in rules or ()]
        return f"write {shown}({', '.join(names)})"

    def _check_modifier(self, source: ModuleText, modifier: With, reads: set[tuple[str, ...]]) -> None:
        target = modifier.target
        head = root_name(target)
        if isinstance(modifier.value, Call) and (name := operator_name(modifier.value) or "") in self.refused:
            self.faults.append(Diagnostic(TYPE_ERROR, explain_refusal(name), source, modifier.value.start))
        if isinstance(modifier.value, Ref) and root_name(modifier.value) == "data":
            node = self.root.find(constant_names(modifier.value.path))
            if node is not None and node.is_function:
                reads.add(node.path)
        if head == "input":
            return
        path = constant_names(target.path)
        if head == "data":
            node = self.root
            for name in path[:-1]:
                child = node.children.get(name)
                if child is None:
                    break
                if child.is_rule or not all(definition.is_ground for definition in child.dynamic):
                    message = "with keyword cannot partially replace virtual document(s)"
                    self.faults.append(Diagnostic(COMPILE_ERROR, message, source, target.start))
                    return
                node = child
            self.replaced.add(path)
            return
        dotted = ".".join([head, *path])
        if dotted in signatures():
            if dotted == "eq" or dotted.startswith(("internal.", "rego.metadata.")) or dotted in {"walk", "print"}:
                message = f"with keyword replacing built-in function: replacement of {dotted!r} invalid"
                self.faults.append(Diagnostic(COMPILE_ERROR, message, source, target.start))
            self.replaced.add(dotted)
            return
        message = "with keyword target must reference existing input, data, or a function"
        self.faults.append(Diagnostic(TYPE_ERROR, message, source, target.start))

    def _check_recursion(self) -> None:
        state: dict[tuple[str, ...], int] = {}
        for start in self.reads:
            if start in state:
                continue
            stack = [(start, iter(sorted(self.reads[start])))]
            state[start] = 1
            while stack:
                path, following = stack[-1]
                for reached in following:
                    if state.get(reached) == 1:
                        cycle = [entry[0] for entry in stack]
                        self._report_cycle([*cycle[cycle.index(reached) :], reached])
                    elif reached not in state:
                        state[reached] = 1
                        stack.append((reached, iter(sorted(self.reads.get(reached, ())))))
                        break
                else:
                    state[path] = 2
                    stack.pop()

    def _report_cycle(self, cycle: list[tuple[str, ...]]) -> None:
        node = self.root.find(cycle[0])
        definitions = [*node.definitions, *node.dynamic] if node is not None else []
        if definitions:
            first = definitions[0]
            way = " -> ".join(path_text(path) for path in cycle)
            message = f"rule {path_text(cycle[0])} is recursive: {way}"
            hint = "no rule may read itself, also not through others: read the parts that it needs by other rules"
            self.faults.append(Diagnostic(RECURSION_ERROR, message, first.source, first.start, (hint,)))


def _similar(name: str, known: Iterable[str]) -> tuple[str, ...]:
    from difflib import get_close_matches  # for messages only

    return tuple(f"did you mean {found}?" for found in get_close_matches(name, list(known), 1, 0.7))
