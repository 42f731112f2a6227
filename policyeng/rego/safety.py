"""Order the expressions of bodies so that each variable is bound before it is used, as OPA does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from heapq import heappop, heappush

from policyeng.rego.budget import spend
from policyeng.rego.errors import Diagnostic, ModuleText
from policyeng.rego.resolver import operator_name
from policyeng.rego.syntax import (
    COMPREHENSIONS,
    Array,
    ArrayComprehension,
    Body,
    Call,
    Every,
    Expr,
    Logical,
    Not,
    Object,
    ObjectComprehension,
    Ref,
    Set,
    SetComprehension,
    Term,
    Var,
    children_of,
    pattern_variables,
    results_of,
    variables_of,
    walk_terms,
)

UNSAFE_ERROR = "rego_unsafe_var_error"
#: Variables of the documents, which are always bound.
ROOTS = frozenset(("input", "data"))
_KEYWORDS = frozenset(("in", "every", "contains", "if", "not", "and", "or"))

_CONSTANTS = {"none": "null", "nil": "null", "null": "null", "undefined": "null", "true": "true", "false": "false"}

Names = AbstractSet[str]
#: The number of arguments of what a call names, None where nothing has the name.
Arity = Callable[[Call], "int | None"]


class Orderer:
    """Orders the bodies of one module.

    Attributes:
        faults: what is unsafe so far.
    """

    def __init__(self, source: ModuleText, arity: Arity) -> None:
        """Take the text that offsets refer to, and what knows the functions."""
        self.source = source
        self.arity = arity
        self.faults: list[Diagnostic] = []

    def order(self, body: Body, bound: Names) -> Body:
        """Return a body in an order in which it can be evaluated; add what cannot to `faults`.

        Args:
            body: resolved.
            bound: variables with a value before it.
        """
        ordered, unsafe = self._reorder(body, bound | ROOTS)
        if unsafe:
            self._report(body, unsafe)
        return ordered

    def check_head(self, terms: Iterable[Term], body: Body, bound: Names) -> None:
        """Add variables of the head of a rule that its body does not have to `faults`."""
        found = {name for expression in body for name in self._variables(expression)} | bound | ROOTS
        unsafe = [variable for term in terms for variable in variables_of(term) if variable.name not in found]
        for variable in {variable.name: variable for variable in reversed(unsafe)}.values():
            shown = "_" if variable.is_wildcard else variable.name.partition("@")[0]
            self.faults.append(Diagnostic(UNSAFE_ERROR, f"var {shown} is unsafe", self.source, variable.start))

    def _reorder(self, body: Body, bound: Names) -> tuple[Body, dict[int, set[str]]]:
        variables = [set(self._variables(expression)) for expression in body]
        closures = [set(_closure_variables(expression)) for expression in body]
        names = [outside | inside for outside, inside in zip(variables, closures, strict=True)]
        anywhere = set[str]().union(*variables)
        # A body costs what it contains: sets of all that is bound around it are never copied.
        bound = set[str]().union(*names) & bound
        needs = [outside - bound for outside in variables]
        readers: dict[str, list[int]] = {}
        for index, read in enumerate(names):
            for name in read - bound:
                readers.setdefault(name, []).append(index)
        safe = set(bound)
        order: list[int] = []
        # The body is passed through from its begin again and again, as OPA does, but only what is read by an expression
        # that became safe in the meantime is looked at again.
        following = list(range(len(body)))
        waiting, done = set(following), set[int]()
        while following:
            current, following = following, []
            while current:
                index = heappop(current)
                waiting.discard(index)
                spend(1 + len(names[index]))
                outputs = self.outputs(body[index], safe & names[index])
                inside = (closures[index] & anywhere) - bound
                missing = inside - safe
                if missing:
                    if missing == outputs:
                        continue
                    needs[index] = missing | needs[index]
                needs[index] = needs[index] - outputs - safe
                if needs[index]:
                    continue
                order.append(index)
                done.add(index)
                fresh = outputs - safe
                safe |= fresh
                for reader in {reader for name in fresh for reader in readers.get(name, ())} - done - waiting:
                    waiting.add(reader)
                    heappush(current if reader > index else following, reader)
        unsafe = {index: needs[index] or variables[index] - safe for index in range(len(body)) if index not in done}
        ordered: Body = []
        before = set(bound)
        for index in order:
            missing = set()
            ordered.append(self._with_ordered_closures(body[index], before & closures[index], missing))
            if missing:
                unsafe[index] = missing
            before |= variables[index]
        return ordered, unsafe

    def _with_ordered_closures(self, expression: Expr, safe: Names, unsafe: set[str]) -> Expr:
        """Order the bodies inside of an expression; add what is unsafe in them to `unsafe`."""
        value = expression.value
        replaced: Term | Every | Not | Logical
        match value:
            case Every():
                names = {name.name for name in (value.key, value.value) if name is not None}
                body = self._inner(value.body, safe | names, (), unsafe)
                replaced = Every(value.start, value.end, value.key, value.value, value.domain, body)
            case Not():
                replaced = Not(value.start, value.end, self._inner(value.body, safe, (), unsafe), value.explicit)
            case Logical():
                left, right = (self._inner(body, safe, (), unsafe) for body in (value.left, value.right))
                replaced = Logical(value.start, value.end, value.operator, left, right, value.explicit)
            case _:
                replaced = self._ordered_term(value, safe, unsafe)  # type: ignore[arg-type]  # only terms are left
        return Expr(
            expression.start,
            expression.end,
            replaced,
            expression.negated,
            expression.withs,
            expression.generated,
            expression.assigned,
        )

    def _inner(self, body: Body, safe: Names, heads: Iterable[Term], unsafe: set[str]) -> Body:
        within = {name for expression in body for name in self._variables(expression)}
        unsafe |= {name for head in heads for name in _names(head)} - within - safe
        ordered, missing = self._reorder(body, safe)
        for names in missing.values():
            unsafe |= names
        return ordered

    def _ordered_term(self, term: Term, safe: Names, unsafe: set[str]) -> Term:
        match term:
            case ArrayComprehension() | SetComprehension():
                body = self._inner(term.body, safe, [term.term], unsafe)
                return type(term)(term.start, term.end, term.term, body)
            case ObjectComprehension():
                body = self._inner(term.body, safe, [term.key, term.value], unsafe)
                return ObjectComprehension(term.start, term.end, term.key, term.value, body)
            case Call():
                arguments = [self._ordered_term(argument, safe, unsafe) for argument in term.arguments]
                return Call(term.start, term.end, term.operator, arguments)
            case Array() | Set():
                return type(term)(term.start, term.end, [self._ordered_term(item, safe, unsafe) for item in term.items])
            case Object():
                items = [
                    (self._ordered_term(key, safe, unsafe), self._ordered_term(item, safe, unsafe))
                    for key, item in term.items
                ]
                return Object(term.start, term.end, items)
            case Ref():
                path = [self._ordered_term(part, safe, unsafe) for part in term.path]
                return Ref(term.start, term.end, term.head, path)
        return term

    # What an expression needs and binds.

    def _variables(self, expression: Expr) -> Iterator[str]:
        """Variables outside of closures, with those that an operand in no braces shares with its surroundings."""
        value = expression.value
        for modifier in expression.withs:
            yield from _names(modifier.value)
        match value:
            case Every():
                yield from _names(value.domain)
            case Not():
                if not value.explicit:
                    yield from self._unbound_inside(value.body)
            case Logical():
                for body, explicit in zip((value.left, value.right), value.explicit, strict=True):
                    if not explicit:
                        yield from self._unbound_inside(body)
            case _:
                yield from _names(value)  # type: ignore[arg-type]  # only terms are left

    def _unbound_inside(self, body: Body) -> set[str]:
        """Return the variables of a body in no braces that its generated expressions do not bind."""
        places: dict[str, int] = {}
        for expression in body:
            for name in set(self._variables(expression)):
                places[name] = places.get(name, 0) + 1
        if len(body) == 1:
            return set(places)
        bound: set[str] = set()
        for expression in body:
            if expression.generated and isinstance(expression.value, Call):
                bound.update(_names(expression.value.arguments[-1]))
                if operator_name(expression.value) == "eq":
                    bound.update(_names(expression.value.arguments[0]))
        return {name for name, count in places.items() if name not in bound or count == 1}

    def outputs(self, expression: Expr, safe: set[str]) -> set[str]:
        """Return the variables that an expression binds, given those that are bound."""
        if expression.negated or isinstance(expression.value, Not | Logical):
            return set()
        for modifier in expression.withs:
            if not set(_names(modifier.value)) <= safe:
                return set()
        value = expression.value
        if isinstance(value, Every):
            return set(_ref_outputs(value.domain, safe))
        if not isinstance(value, Call):
            return set(_ref_outputs(value, safe))  # type: ignore[arg-type]  # only terms are left
        if operator_name(value) == "eq":
            return self._equality_outputs(expression, value, safe)
        arity = self.arity(value)
        if arity is None:
            return set()
        found = {name for argument in value.arguments for name in _ref_outputs(argument, safe)}
        inputs, rest = value.arguments[:arity], value.arguments[arity:]
        if not rest:
            return found
        if {name for argument in inputs for name in _pattern_names(argument)} - found - safe:
            return set()
        return found | {name for argument in rest for name in _pattern_names(argument)}

    def _equality_outputs(self, expression: Expr, value: Call, safe: set[str]) -> set[str]:
        if len(value.arguments) != 2:
            return set()
        left, right = value.arguments
        found = {name for argument in value.arguments for name in _ref_outputs(argument, safe)}
        if expression.assigned:
            found -= set(_names(left))
        known = safe | found
        return (known | unify_outputs(known, left, right)) - safe

    def _report(self, body: Body, unsafe: dict[int, set[str]]) -> None:
        written: list[Diagnostic] = []
        seen: set[str] = set()
        for index in sorted(unsafe):
            places = {variable.name: variable for variable in _variables_in(body[index])}
            for name in sorted(unsafe[index], key=lambda name: (places[name].start if name in places else 0, name)):
                shown, _, _ = name.partition("@")
                if name.startswith("$"):
                    shown = "_"
                if not shown or shown in seen or (shown == "_" and len(unsafe[index]) > 1):
                    continue
                if body[index].assigned and any(other.startswith("@") for other in unsafe[index]):
                    continue  # it is unsafe because what it is computed from is
                seen.add(shown)
                at = places[name].start if name in places else body[index].start
                hint = _hint_of(shown, body)
                written.append(Diagnostic(UNSAFE_ERROR, f"var {shown} is unsafe", self.source, at, (hint,)))
        if not written:
            at = body[min(unsafe)].start
            written.append(Diagnostic(UNSAFE_ERROR, "expression is unsafe", self.source, at))
        self.faults += written


def _hint_of(name: str, body: Body) -> str:
    """Return what may make a variable safe, or what it is taken for."""
    from difflib import get_close_matches  # for messages only

    if name in _KEYWORDS:
        return f"`import future.keywords.{name}` to import a future keyword"
    if (constant := _CONSTANTS.get(name.lower())) is not None and constant != name:
        return f"did you mean {constant}?"
    others = {variable.name.partition("@")[0] for expression in body for variable in _variables_in(expression)}
    similar = get_close_matches(name, sorted({*ROOTS, *others} - {name, ""}), 1, 0.75)
    if similar:
        return f"did you mean {similar[0]}?"
    return f"nothing gives it a value: write `{name} := ...`, or `some {name} in ...`"


def unify_outputs(safe: set[str], left: Term, right: Term) -> set[str]:
    """Return the variables that get a value when two terms are unified."""
    found: set[str] = set()
    unknown: dict[str, set[str]] = {}

    def is_safe(name: str) -> bool:
        return name in safe or name in found

    def mark(name: str) -> None:
        if name not in found:
            found.add(name)
            for other in unknown.pop(name, set()):
                mark(other)

    def mark_all(term: Term) -> None:
        for name in _pattern_names(term):
            mark(name)

    def mark_with(variable: Var, pattern: Term) -> None:
        names = _pattern_names(pattern)
        if is_safe(variable.name):
            for name in names:
                mark(name)
        elif all(map(is_safe, names)):
            mark(variable.name)
        else:
            unknown.setdefault(variable.name, set()).update(names)

    def unify(first: Term, second: Term) -> None:
        if isinstance(second, Var) and not isinstance(first, Var):
            first, second = second, first
        match first, second:
            case Var(), Var():
                if is_safe(second.name):
                    mark(first.name)
                elif is_safe(first.name):
                    mark(second.name)
                else:
                    unknown.setdefault(first.name, set()).add(second.name)
                    unknown.setdefault(second.name, set()).add(first.name)
            case Var(), Array() | Object():
                mark_with(first, second)
            case Var(), Ref():
                if _is_ref_safe(second, safe):
                    mark(first.name)
            case Var(), _:
                mark(first.name)
            case Array(), Array():
                if len(first.items) == len(second.items):
                    for one, other in zip(first.items, second.items, strict=True):
                        unify(one, other)
            case Object(), Object():
                if len(first.items) == len(second.items):
                    for key, item in first.items:
                        for other, value in second.items:
                            if key == other:
                                unify(item, value)
            case ((Array() | Object()), Ref()):
                if _is_ref_safe(second, safe):
                    mark_all(first)
            case Ref(), (Array() | Object()):
                if _is_ref_safe(first, safe):
                    mark_all(second)
            case Array(), (ArrayComprehension() | SetComprehension() | ObjectComprehension()):
                mark_all(first)
            case (ArrayComprehension(), Array()) | (ObjectComprehension(), Object()):
                mark_all(second)

    unify(left, right)
    return found


def _is_ref_safe(ref: Ref, safe: set[str]) -> bool:
    return not isinstance(ref.head, Var) or ref.head.name in safe or ref.head.name in ROOTS


def _names(term: Term) -> Iterator[str]:
    return (variable.name for variable in variables_of(term))


def _pattern_names(term: Term) -> set[str]:
    return {variable.name for variable in pattern_variables(term)}


def _ref_outputs(term: Term, safe: set[str]) -> Iterator[str]:
    """Variables of the paths of references whose head is bound."""
    if not isinstance(term, Ref):
        for part in children_of(term):
            yield from _ref_outputs(part, safe)
    elif _is_ref_safe(term, safe):
        for part in term.path:
            yield from _names(part)


def _closures(expression: Expr) -> Iterator[tuple[Body, list[Term]]]:
    value = expression.value
    match value:
        case Every():
            yield value.body, []
            yield from _term_closures(value.domain)
        case Not():
            yield value.body, []
        case Logical():
            yield value.left, []
            yield value.right, []
        case _:
            yield from _term_closures(value)  # type: ignore[arg-type]  # only terms are left


def _term_closures(term: Term) -> Iterator[tuple[Body, list[Term]]]:
    for found in walk_terms(term, in_comprehensions=False):
        if isinstance(found, COMPREHENSIONS):
            yield found.body, results_of(found)


def _closure_variables(expression: Expr) -> Iterator[str]:
    for body, heads in _closures(expression):
        for head in heads:
            yield from _names(head)
        for inner in body:
            yield from (variable.name for variable in _variables_in(inner))


def _variables_in(expression: Expr) -> Iterator[Var]:
    """Yield every variable of an expression, including those of its closures."""
    value = expression.value
    for modifier in expression.withs:
        yield from variables_of(modifier.value)
    if isinstance(value, Every):
        yield from variables_of(value.domain)
    elif not isinstance(value, Not | Logical):
        yield from variables_of(value)  # type: ignore[arg-type]  # only terms are left
    for body, heads in _closures(expression):
        for head in heads:
            yield from variables_of(head)
        for inner in body:
            yield from _variables_in(inner)
