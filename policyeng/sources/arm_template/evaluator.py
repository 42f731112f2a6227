"""Evaluation of expressions: a value that is known only at deployment is unresolved, with a cause and a stand-in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from policyeng.parsing.json_text import shortened
from policyeng.sources.arm_template import scope_functions
from policyeng.sources.arm_template.collection_functions import BY_KEY, MAKING, SHALLOW, WHOLE, member
from policyeng.sources.arm_template.expressions import (
    ExpressionError,
    FunctionCall,
    Literal,
    Member,
    Node,
    is_expression,
    parsed,
    plain,
)
from policyeng.sources.arm_template.scalar_functions import FUNCTIONS, Function, a_list, a_number, a_text
from policyeng.sources.arm_template.scope import TemplateScope
from policyeng.sources.arm_template.unresolved import LONGEST_TEXT, find_unresolved, in_braces, stand_in, text_of
from policyeng.sources.template_parameters import Unresolved


def filtered(inputs: list[object], call: Callable[..., object]) -> object:
    """Return the entries for which a lambda of entry and index is true; unresolved if the lambda is."""
    selected: list[object] = []
    for index, entry in enumerate(a_list(inputs[0])):
        keep = call(entry, index)
        if not isinstance(keep, bool):
            return (
                keep if isinstance(keep, Unresolved) else Unresolved("a filter must return true or false", "{filter}")
            )
        if keep:
            selected.append(entry)
    return selected


def mapped(inputs: list[object], call: Callable[..., object]) -> object:
    """Apply a lambda of entry and index to each entry."""
    return [call(entry, index) for index, entry in enumerate(a_list(inputs[0]))]


def reduced(inputs: list[object], call: Callable[..., object]) -> object:
    """Reduce all entries with a lambda of the value so far, the entry and its index."""
    if len(inputs) != 2:
        raise ExpressionError("`reduce` takes a list, a first value and a lambda")
    value = inputs[1]
    for index, entry in enumerate(a_list(inputs[0])):
        value = call(value, entry, index)
    return value


def mapped_values(inputs: list[object], call: Callable[..., object]) -> object:
    """Apply a lambda to each value of an object."""
    if not isinstance(inputs[0], dict):
        raise ExpressionError("`mapValues` takes an object")
    return {key: call(value) for key, value in inputs[0].items()}


_Arguments = Sequence[Node]

#: The stand-in of these functions is computed in the same way as their result.
_OF_TEXTS: Mapping[str, Callable[..., object]] = {
    "concat": lambda *parts: "".join(map(str, parts)),
    "format": FUNCTIONS["format"],
    "uri": lambda base, relative: f"{base[: base.rfind('/') + 1] or f'{base}/'}{relative}",
    **dict.fromkeys(("string", "tolower", "toupper", "trim"), lambda text: text),
}
#: Functions whose results are known only at deployment, by name (or its beginning) in lower case.
_LATER: Mapping[str, str] = {
    "newguid": "has a different value at each deployment",
    "utcnow": "has a different value at each deployment",
    "reference": "is known only after deployment",
    "references": "is known only after deployment",
    "list": "is known only after deployment",
    "guid": "is computed at deployment",
    "uniquestring": "is computed at deployment",
    "deployment": "is known only at deployment",
    "deployer": "is known only at deployment",
    "environment": "depends on the cloud of the deployment",
    "tenant": "depends on the tenant of the deployment",
    "providers": "is known only at deployment",
    "pickzones": "is known only at deployment",
}


def evaluated(text: str, scope: TemplateScope) -> object:
    """Return the value of a text: of its expression if it is one, else the text itself.

    Unknown parts are unresolved, and only TooMuchError is raised.
    """
    if not is_expression(text):
        return plain(text)
    try:
        return evaluate(parsed(text), scope)
    except ExpressionError as error:
        return Unresolved(f"the expression cannot be evaluated: {error}", in_braces(shortened(text[1:-1])))


def evaluate(node: Node, scope: TemplateScope) -> object:
    """Return the value of a parsed expression.

    Raises:
        TooMuchError: the expressions exceed their budget.
    """
    if isinstance(node, Literal):
        return node.value
    scope.work.deeper()
    value = _evaluate_uncounted(node, scope)
    scope.work.weigh(value)
    scope.work.level -= 1
    return value


def _evaluate_uncounted(node: Node, scope: TemplateScope) -> object:
    """Evaluate without counting the result, because a member's large object was counted before."""
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, Member):
        return _evaluate_member(node, scope)
    scope.work.charge(1)
    if node.name in _LAZY:
        return _LAZY[node.name](node.arguments, scope)
    arguments = [evaluate(argument, scope) for argument in node.arguments]
    return _apply(node, arguments, scope)


def _evaluate_member(node: Member, scope: TemplateScope) -> object:
    output = _deployment_output(node, scope)
    if output is not None:
        return output
    key = evaluate(node.key, scope)
    scope.work.deeper()
    holder = _evaluate_uncounted(node.holder, scope)
    scope.work.level -= 1
    for part in (holder, key):
        if isinstance(part, Unresolved):
            sign = f".{key}" if isinstance(key, str) else f"[{text_of(key)}]"
            return Unresolved(part.reason, in_braces(f"{text_of(holder)}{sign}"))
    try:
        return member(holder, key)
    except ExpressionError as error:
        return Unresolved(str(error), in_braces(f"{text_of(holder)}.{text_of(key)}"))


def _deployment_output(node: Member, scope: TemplateScope) -> object:
    """Return the output of a deployment in `reference('...').outputs.<name>.value`; None for any other expression."""
    name, outputs = node.holder, None
    if isinstance(name, Member) and node.key == Literal("value"):
        outputs = name.holder
    if not (isinstance(outputs, Member) and outputs.key == Literal("outputs") and isinstance(name, Member)):
        return None
    call = outputs.holder
    if not (isinstance(call, FunctionCall) and call.name == "reference" and call.arguments):
        return None
    key = evaluate(name.key, scope)
    deployment = text_of(evaluate(call.arguments[0], scope))
    return scope.outputs(deployment, key) if isinstance(key, str) else None


def _apply(node: FunctionCall, arguments: list[object], scope: TemplateScope) -> object:
    """Apply a function of values."""
    name = node.name
    in_scope = scope_functions.FUNCTIONS.get(name)
    apply: Callable[..., object] | None
    if in_scope is not None:
        return _call(node, lambda *inputs: in_scope(scope, *inputs), arguments)
    own = scope.declared.functions.get(name)
    apply = own or MAKING.get(name) or SHALLOW.get(name) or BY_KEY.get(name) or WHOLE.get(name) or FUNCTIONS.get(name)
    if apply is None:
        return _unresolved_call(node, arguments)
    unknown = None if own or name in MAKING else _find_unknown(name, arguments)
    if unknown is not None:
        return Unresolved(unknown.reason, _stand_in(node, arguments))
    return _call(node, apply, arguments)


def _find_unknown(name: str, arguments: list[object]) -> Unresolved | None:
    """Return the first unresolved argument, or part of one, that a function needs to know."""
    by_key = name == "concat" or any(isinstance(argument, dict) for argument in arguments)
    if name in SHALLOW or (name in BY_KEY and by_key):
        return next((argument for argument in arguments if isinstance(argument, Unresolved)), None)
    return find_unresolved(arguments)


def _stand_in(node: FunctionCall, arguments: list[object]) -> str:
    make = _OF_TEXTS.get(node.name)
    if make is not None and all(isinstance(argument, str | int | Unresolved) for argument in arguments):
        try:
            text = make(
                *(text_of(argument) if isinstance(argument, Unresolved) else argument for argument in arguments)
            )
        except (ExpressionError, TypeError):
            text = None
        if isinstance(text, str) and 0 < len(text) <= LONGEST_TEXT:
            return text
    return stand_in(node.name, arguments)


def _call(node: FunctionCall, apply: Function, arguments: Iterable[object]) -> object:
    inputs = list(arguments)
    try:
        return apply(*inputs)
    except ExpressionError as error:
        return Unresolved(f"`{node.written}(...)` fails: {error}", stand_in(node.name, inputs))
    except TypeError:
        reason = f"`{node.written}` does not take {len(inputs)} arguments like these"
        return Unresolved(reason, stand_in(node.name, inputs))


def _unresolved_call(node: FunctionCall, arguments: list[object]) -> Unresolved:
    why = _LATER.get(node.name) or (_LATER["list"] if node.name.startswith("list") else "")
    reason = f"`{node.written}(...)` {why}" if why else f"the function `{node.written}` is not supported"
    return Unresolved(reason, stand_in(node.name, arguments))


# ---------------------------------------------------------------- functions that take more than values


def _if(arguments: _Arguments, scope: TemplateScope) -> object:
    if len(arguments) != 3:
        return Unresolved("`if` takes a condition and two values", "{if}")
    condition = evaluate(arguments[0], scope)
    if isinstance(condition, bool):
        return evaluate(arguments[1 if condition else 2], scope)
    text = stand_in("if", [condition, *(evaluate(argument, scope) for argument in arguments[1:])])
    if isinstance(condition, Unresolved):
        return Unresolved(condition.reason, text)
    return Unresolved("the condition of `if` is neither true nor false", text)


def _combine(arguments: _Arguments, scope: TemplateScope, *, decides: bool, name: str) -> object:
    values = [evaluate(argument, scope) for argument in arguments]
    if any(value is decides for value in values):
        return decides
    unknown = next((value for value in values if isinstance(value, Unresolved)), None)
    if unknown is not None:
        return Unresolved(unknown.reason, stand_in(name, values))
    if not all(isinstance(value, bool) for value in values):
        return Unresolved(f"`{name}` takes true and false", stand_in(name, values))
    return not decides


def _coalesce(arguments: _Arguments, scope: TemplateScope) -> object:
    for argument in arguments:
        value = evaluate(argument, scope)
        if value is not None:
            return value
    return None


def _declared_value(kind: str) -> Callable[[_Arguments, TemplateScope], object]:
    def declared(arguments: _Arguments, scope: TemplateScope) -> object:
        names = [evaluate(argument, scope) for argument in arguments]
        if len(names) != 1 or not isinstance(names[0], str):
            return Unresolved(f"`{kind}` takes one name", stand_in(kind, names))
        return scope.declared.value(kind, names[0])

    return declared


def _copy_index(arguments: _Arguments, scope: TemplateScope) -> object:
    values = [evaluate(argument, scope) for argument in arguments]
    name = values[0].lower() if values and isinstance(values[0], str) else ""
    offset = values[-1] if values and not isinstance(values[-1], str) else 0
    if name not in scope.copies:
        return Unresolved("`copyIndex` is not inside such a copy loop", "{copyIndex}")
    index = scope.copies[name]
    for value in (index, offset):
        if isinstance(value, Unresolved):
            return value
    return _call(FunctionCall("copyindex", "copyIndex", ()), lambda: a_number(index) + a_number(offset), ())


def _lambda_variable(arguments: _Arguments, scope: TemplateScope) -> object:
    name = evaluate(arguments[0], scope) if arguments else None
    if isinstance(name, str) and name.lower() in scope.local:
        return scope.local[name.lower()]
    return Unresolved("`lambdaVariables` does not name a variable of an enclosing lambda", "{lambdaVariables}")


def _apply_lambda(
    apply: Callable[[list[object], Callable[..., object]], object],
) -> Callable[[_Arguments, TemplateScope], object]:
    """Return a function of a list or an object, and a lambda."""

    def over(arguments: _Arguments, scope: TemplateScope) -> object:
        *values, body = arguments or (Literal(""),)
        inputs = [evaluate(value, scope) for value in values]
        if not (isinstance(body, FunctionCall) and body.name == "lambda" and body.arguments and inputs):
            return Unresolved("a function over a list takes the list and a `lambda`", stand_in("lambda", inputs))
        if unknown := next((value for value in inputs if isinstance(value, Unresolved)), None):
            return Unresolved(unknown.reason, stand_in("lambda", inputs))
        names = [evaluate(name, scope) for name in body.arguments[:-1]]

        def call(*entries: object) -> object:
            named = {a_text(name).lower(): entry for name, entry in zip(names, entries, strict=False)}
            return evaluate(body.arguments[-1], scope.locally(named))

        return _call(FunctionCall("lambda", "lambda", ()), lambda: apply(inputs, call), ())

    return over


def _to_object(arguments: _Arguments, scope: TemplateScope) -> object:
    """Apply `toObject(list, key lambda, [value lambda])`."""
    keys = _LAZY["map"](arguments[:2], scope)
    values = _LAZY["map"]((arguments[0], arguments[2]), scope) if len(arguments) == 3 else None
    entries = evaluate(arguments[0], scope) if values is None and arguments else values
    for part in (keys, entries):
        if unknown := part if isinstance(part, Unresolved) else None:
            return unknown
    if not (isinstance(keys, list) and isinstance(entries, list)):
        return Unresolved("`toObject` takes a list and lambdas", "{toObject}")
    pairs = zip(keys, entries, strict=True)
    members = {key if isinstance(key, str) else "": value for key, value in pairs}
    whole = all(isinstance(key, str) for key in keys)
    return (
        members
        if whole
        else find_unresolved(keys) or Unresolved("the keys of `toObject` must be strings", "{toObject}")
    )


_LAZY: Mapping[str, Callable[[_Arguments, TemplateScope], object]] = {
    "and": lambda arguments, scope: _combine(arguments, scope, decides=False, name="and"),
    "coalesce": _coalesce,
    "copyindex": _copy_index,
    "filter": _apply_lambda(filtered),
    "if": _if,
    "lambdavariables": _lambda_variable,
    "map": _apply_lambda(mapped),
    "mapvalues": _apply_lambda(mapped_values),
    "or": lambda arguments, scope: _combine(arguments, scope, decides=True, name="or"),
    "parameters": _declared_value("parameters"),
    "reduce": _apply_lambda(reduced),
    "toobject": _to_object,
    "variables": _declared_value("variables"),
}
