"""Evaluation of expressions: a value that is known only at deployment is unresolved, with a cause and a stand-in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from policyeng.facts.ids import types_of
from policyeng.models import JsonObject, lowered
from policyeng.parsing.arm_expressions import (
    ExpressionError,
    FunctionCall,
    Literal,
    Member,
    Node,
    is_expression,
    parsed,
    plain,
)
from policyeng.parsing.arm_functions import SCALAR_FUNCTIONS, Function, a_list, a_number, a_text
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import kind_of, shortened
from policyeng.sources.arm_template import functions
from policyeng.sources.arm_template.expressions import (
    LONGEST_TEXT,
    MAX_VALUE_DEPTH,
    TemplateScope,
    TooMuchError,
    find_unresolved,
    in_braces,
    stand_in,
    text_of,
)
from policyeng.sources.arm_template.functions import BY_KEY, MAKING, SHALLOW, WHOLE, member
from policyeng.sources.templates import Unresolved


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
    "format": SCALAR_FUNCTIONS["format"],
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
    apply: Callable[..., object] | None
    if name in functions.SCOPE_FUNCTIONS:
        return _call(node, lambda *inputs: functions.call_in_scope(name, scope, inputs), arguments)
    own = scope.declared.functions.get(name)
    apply = (
        own
        or MAKING.get(name)
        or SHALLOW.get(name)
        or BY_KEY.get(name)
        or WHOLE.get(name)
        or SCALAR_FUNCTIONS.get(name)
    )
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


#: The maximum number of copies in one loop in ARM.
MAX_COPIES = 800


@dataclass(eq=False, slots=True)
class Resolver:
    """An evaluator of the values of one resource, variable or parameter.

    Attributes:
        scope: the scope of its expressions.
        base: the JSON Pointer of its resource in the document.
        fields: by pointer into the resource, the pointer in the document of a value that a copy loop created.
    """

    scope: TemplateScope
    base: str = ""
    fields: dict[str, str] = field(default_factory=dict)

    def value(self, written: object, there: str = "", here: str = "") -> object:
        """Evaluate the expressions in a JSON value; unknown parts are unresolved, with their expressions.

        Args:
            written: the value in the document.
            there: its JSON Pointer in the document.
            here: its JSON Pointer in the result.
        """
        work = self.scope.work
        level = work.level
        try:
            return self._value(written, there or self.base, here, 0)
        except TooMuchError as error:
            work.level = level
            return Unresolved(str(error), "{too much}")

    def _value(self, written: object, there: str, here: str, depth: int) -> object:
        self.scope.work.charge(1)
        if depth > MAX_VALUE_DEPTH:
            raise TooMuchError(f"a value is deeper than {MAX_VALUE_DEPTH} levels")
        if isinstance(written, str):
            return self._text(written)
        if isinstance(written, list):
            return [
                self._value(entry, f"{there}/{index}", f"{here}/{index}", depth + 1)
                for index, entry in enumerate(written)
            ]
        if isinstance(written, dict):
            return self._object(written, there, here, depth)
        return written

    def _text(self, written: str) -> object:
        value = evaluated(written, self.scope)
        return _add_expression(value, written) if is_expression(written) else value

    def _object(self, written: JsonObject, there: str, here: str, depth: int) -> object:
        result: JsonObject = {}
        for key, inner in written.items():
            place = f"{there}/{escaped(key)}"
            if key == "copy" and is_copies(inner):
                for index, loop in enumerate(inner):
                    if not isinstance(loop["name"], str):
                        return Unresolved(f"the `name` of a copy loop is {kind_of(loop['name'])}", "{copy}")
                    name = str(loop["name"])
                    result[name] = self._copied(loop, f"{place}/{index}", f"{here}/{escaped(name)}", depth)
                continue
            value = evaluated(key, self.scope)
            if isinstance(value, Unresolved) and not value.text.startswith("/"):
                return _add_expression(value, key)
            if isinstance(value, list | dict | None):
                return _add_expression(Unresolved(f"{kind_of(value)} where a name should be", in_braces(key)), key)
            name = text_of(value)
            result[name] = self._value(inner, place, f"{here}/{escaped(name)}", depth + 1)
            if name != key:
                self.fields[f"{here}/{escaped(name)}"] = place
        return result

    def _copied(self, loop: JsonObject, there: str, here: str, depth: int) -> object:
        """Expand a copy loop of a property or variable: `{"name", "count", "input"}`."""
        self.fields[here] = there
        count = self._text(loop["count"]) if isinstance(loop["count"], str) else loop["count"]
        unfit = unfit_count(count)
        if unfit:
            return Unresolved(unfit, "{copy}")
        entries: list[object] = []
        outer = self.scope
        for index in range(int(str(count))):
            self.scope = outer.within(str(loop["name"]), index)
            self.fields[f"{here}/{index}"] = f"{there}/input"
            try:
                entries.append(self._value(loop["input"], f"{there}/input", f"{here}/{index}", depth + 1))
            finally:
                self.scope = outer
        return entries


def is_copies(value: object) -> bool:
    """Check whether the value of `copy` in an object is a list of loops for its properties.

    Loops with an escaped count belong to a template that is a value here.
    """
    if not isinstance(value, list) or not value:
        return False
    return all(
        isinstance(loop, dict) and {"name", "count", "input"} <= loop.keys() and not str(loop["count"]).startswith("[[")
        for loop in value
    )


def unfit_count(count: object) -> str:
    """Return why a number of copies is not valid, or an empty string."""
    if isinstance(count, Unresolved):
        return f"the number of copies is not known: {count.reason}"
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MAX_COPIES:
        shown = f"`{count}`" if isinstance(count, int | str) else kind_of(count)
        return f"the `count` of a copy loop is {shown}; it should be 0 to {MAX_COPIES}"
    return ""


def _add_expression(value: object, expression: str) -> object:
    """Add the expression to the reason of each unknown part of a value."""
    if isinstance(value, Unresolved):
        shown = f"`{shortened(expression)}`"
        return value if value.reason.startswith("`[") else Unresolved(f"{shown}: {value.reason}", value.text)
    if isinstance(value, dict):
        return {key: _add_expression(inner, expression) for key, inner in value.items()}
    return [_add_expression(inner, expression) for inner in value] if isinstance(value, list) else value


class SettledValue(NamedTuple):
    """A value without its unknown parts.

    Attributes:
        value: without nulls in objects, which ARM treats as absent; null in place of an unknown entry of a list.
        unreadable: by JSON Pointer into it, why a part is not known.
    """

    value: object
    unreadable: Mapping[str, str]


def remove_unknown(value: object, is_known: frozenset[str], scope: str) -> SettledValue:
    """Remove unknown parts.

    Args:
        value: the result of a `Resolver`.
        is_known: the ids of the document's resources in lower case, including those with stand-ins. Such an id
            identifies a resource.
        scope: what everything is deployed to; an id may be unknown in this part only.
    """
    unreadable: dict[str, str] = {}
    return SettledValue(_remove_unresolved(value, "", unreadable, _Ids(is_known, scope)), unreadable)


class _Ids(NamedTuple):
    known: frozenset[str]
    scope: str

    def identifies(self, text: str) -> bool:
        """Check whether an id with stand-ins identifies a resource."""
        folded = lowered(text)
        if folded in self.known:
            return True
        return any(
            folded.startswith(f"{start}/") and "{" not in folded[len(start) :]
            for start in _scope_prefixes(lowered(self.scope))
        )


def _scope_prefixes(scope: str) -> Iterator[str]:
    """Yield the resource group and the subscription that a document is deployed to."""
    yield scope
    if scope.startswith("/subscriptions/"):
        yield "/".join(scope.split("/")[:3])


def _remove_unresolved(value: object, pointer: str, unreadable: dict[str, str], ids: _Ids) -> object:
    if isinstance(value, Unresolved):
        if value.text.startswith("/subscriptions/"):
            if ids.identifies(value.text):
                return value.text
            if (types := types_of(value.text)) and not any("{" in arm_type for arm_type in types):
                # Some resource of a known type: policies compare the names that are known.
                return "/".join(in_braces(part) if "{" in part else part for part in value.text.split("/"))
        unreadable[pointer] = value.reason
        return None
    if isinstance(value, dict):
        result = {
            key: _remove_unresolved(inner, f"{pointer}/{escaped(key)}", unreadable, ids) for key, inner in value.items()
        }
        return {key: inner for key, inner in result.items() if inner is not None}
    if isinstance(value, list):
        return [_remove_unresolved(inner, f"{pointer}/{index}", unreadable, ids) for index, inner in enumerate(value)]
    return value
