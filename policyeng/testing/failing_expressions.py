"""Find the expression at which a Rego unit test fails, with the values of what it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from policyeng.rego import EvaluationError, RegoError, parse_query
from policyeng.rego.syntax import (
    COMPREHENSIONS,
    ArrayComprehension,
    Body,
    Call,
    Every,
    Expr,
    Module,
    Node,
    Not,
    Ref,
    Rule,
    Scalar,
    Some,
    SomeIn,
    Template,
    Term,
    Var,
    parts_of,
    root_name,
)
from policyeng.rego.values import Value, to_text

#: The variables of one solution of a body.
Bindings = dict[str, Value]
#: Returns the solutions of a body of the module of the test.
Evaluate = Callable[[Body], list[Bindings]]

_LONGEST_VALUE = 200
#: Names that no policy is likely to have, for the value of a term and for the list of it.
_VALUE, _VALUES = "__policyeng_value", "__policyeng_values"


@dataclass(frozen=True, slots=True)
class FailingExpression:
    """The first expression of a body, in the order of evaluation, that has no solution with those before it.

    Attributes:
        values: what it names, such as `tc.v`, with the value in Rego, or `undefined`; if the expressions before it have
            several solutions, those of the last one.
    """

    file: str
    line: int
    text: str
    values: dict[str, str]


def find_failing_expression(
    evaluate: Evaluate, module: Module, rule: Rule, case: Sequence[Value] = ()
) -> FailingExpression | None:
    """Return where a test fails; None if that cannot be found out, such as where a limit ends the evaluation.

    Args:
        evaluate: returns the solutions of a body.
        module: of the test, as parsed.
        rule: the test.
        case: the keys of the failing case, for a test with several.
    """
    keys = [_equality(part, _term_of(value)) for part, value in zip(rule.head.ref.path, case, strict=False)]
    try:
        return _find_in_body(evaluate, module, [*keys, *rule.body], []) or _explain_value(evaluate, module, rule, keys)
    except (EvaluationError, RegoError):
        return None


def _find_in_body(evaluate: Evaluate, module: Module, body: Body, before: Body) -> FailingExpression | None:
    """Return the failing expression of a body; `before` is what holds before it."""
    evaluated, waiting = list(before), list(body)
    while waiting:
        expression, solutions = _first_safe(evaluate, evaluated, waiting)
        if not solutions:
            every = _find_in_every(evaluate, module, expression, evaluated)
            return every or _explained(evaluate, module, expression, evaluated)
        waiting.remove(expression)
        evaluated.append(expression)
    return None


def _first_safe(evaluate: Evaluate, evaluated: Body, waiting: Body) -> tuple[Expr, list[Bindings]]:
    """Return the first expression whose variables are bound before it, and the solutions up to it.

    Raises:
        RegoError: none is safe.
    """
    for expression in waiting[:-1]:
        with suppress(RegoError):
            return expression, evaluate([*evaluated, expression])
    return waiting[-1], evaluate([*evaluated, waiting[-1]])


def _find_in_every(evaluate: Evaluate, module: Module, expression: Expr, before: Body) -> FailingExpression | None:
    """Return the failing expression inside of `every`, for the first member that fails."""
    every = expression.value
    if not isinstance(every, Every) or expression.negated:
        return None
    start, end = every.start, every.end
    names = [every.value] if every.key is None else [every.key, every.value]
    operator = Ref(start, end, Var(start, end, "internal"), [Scalar(start, end, f"member_{len(names) + 1}")])
    member = Expr(start, end, SomeIn(start, end, Call(start, end, operator, [*names, every.domain])))
    member.withs = expression.withs
    fails = Expr(start, end, Not(start, end, every.body, explicit=True), withs=expression.withs)
    failing = evaluate([*before, member, fails])
    if not failing:
        return None
    first = failing[0]
    fixed = [_equality(name, _term_of(first[name.name])) for name in names if name.name in first]
    body = [
        Expr(inner.start, inner.end, inner.value, inner.negated, [*inner.withs, *expression.withs])
        for inner in every.body
    ]
    return _find_in_body(evaluate, module, body, [*before, member, *fixed])


def _explain_value(evaluate: Evaluate, module: Module, rule: Rule, keys: Body) -> FailingExpression | None:
    """Explain the value of a test whose body has solutions, but which is not true."""
    value = rule.head.value
    if value is None or rule.head.implied_value:
        return None
    body = [] if rule.implied_body else rule.body
    return _explained(evaluate, module, Expr(value.start, value.end, value), [*body, *keys])


def _explained(evaluate: Evaluate, module: Module, expression: Expr, before: Body) -> FailingExpression:
    source = module.source
    last = (evaluate(before) or [{}])[-1] if before else {}
    values = {}
    for term in _terms_in(expression, last):
        text = _text_of(module, term)
        if text not in values and (shown := _value_of(evaluate, term, expression, before)) is not None:
            values[text] = shown
    return FailingExpression(source.file, source.position(expression.start)[0], _text_of(module, expression), values)


def _text_of(module: Module, node: Node) -> str:
    """Return the text of a node on one line."""
    return " ".join(module.source.text[node.start : node.end].split())


def _value_of(evaluate: Evaluate, term: Term, expression: Expr, before: Body) -> str | None:
    """Return the value of a term where an expression is; None if the expression would bind it."""
    start, end = term.start, term.end
    value = Var(start, end, _VALUE)
    values = ArrayComprehension(start, end, value, [_assignment(value, term)])
    query = _assignment(Var(start, end, _VALUES), values)
    query.withs = expression.withs
    try:
        solutions = evaluate([*before, query])
    except RegoError:
        return None
    except EvaluationError as error:
        return f"error: {error.message}"
    listed = solutions[-1][_VALUES] if solutions else []
    text = to_text(listed[0]) if listed else "undefined"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _terms_in(node: Node, bindings: Bindings) -> Iterator[Term]:
    """Yield the calls, references and variables of an expression, in the order of the text; no parts of closures."""
    match node:
        case Var():
            if not node.is_wildcard:
                yield node
        case Ref():
            yield node
            name = root_name(node)
            if name in bindings and isinstance(node.head, Var):
                yield node.head
            for part in (*(() if name else (node.head,)), *node.path):
                yield from _terms_in(part, bindings)
        case Call():
            if node.operator.start == node.start:  # and not an operator, which is between its operands
                yield node
            for argument in node.arguments:
                yield from _terms_in(argument, bindings)
        case Every():
            yield from _terms_in(node.domain, bindings)
        case Some() | Template():
            return
        case Expr():
            yield from _terms_in(node.value, bindings)
        case _ if not isinstance(node, COMPREHENSIONS):
            for inner in parts_of(node):
                yield from _terms_in(inner, bindings)


def _operation(name: str, left: Term, right: Term) -> Expr:
    start, end = left.start, left.end
    return Expr(start, end, Call(start, end, Ref(start, end, Var(start, end, name), []), [left, right]))


def _equality(left: Term, right: Term) -> Expr:
    return _operation("equal", left, right)


def _assignment(left: Term, right: Term) -> Expr:
    return _operation("assign", left, right)


def _term_of(value: Value) -> Term:
    """Return the term that is written as a value."""
    term: Term = parse_query(to_text(value))[0].value  # type: ignore[assignment]  # a value is one term
    return term
