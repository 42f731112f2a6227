"""A plain interpreter of Azure Policy conditions, slow and obvious; it shares only the parser of expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from policyeng.parsing.arm_expressions import FunctionCall, Literal, Member, is_expression, parsed

GONE = object()
Bound = tuple[tuple[str, Any, Any], ...]


def get(value: Any, path: list[str]) -> list[Any] | None:
    """Return all values at a path, in which `*` opens a list; None if a list on the way is missing."""
    if not path:
        return [value]
    step, rest = path[0], path[1:]
    if step == "*":
        if not isinstance(value, list):
            return None
        found: list[Any] = []
        for item in value:
            inner = get(item, rest)
            if inner is None:
                return None
            found += inner
        return found
    if isinstance(value, dict):
        for key in value:
            if key.lower() == step.lower():
                return get(value[key], rest)
    return None if "*" in rest else [GONE]


def members(value: Any, path: list[str]) -> list[Any]:
    """Return the members that a count counts; missing lists have none."""
    if not path:
        return [value]
    if path[0] == "*":
        return [found for item in (value if isinstance(value, list) else []) for found in members(item, path[1:])]
    if isinstance(value, dict):
        for key in value:
            if key.lower() == path[0].lower():
                return members(value[key], path[1:])
    return [] if "*" in path else [GONE]


def steps(alias: str) -> list[str]:
    """Return the path of an alias of the tests."""
    alias = alias.lower()
    if alias.startswith("tags["):
        return ["tags", alias[5:-1].strip("'")]
    name = alias.rsplit("/", maxsplit=1)[-1]
    path = ["properties"] if "/" in alias else []
    for part in name.split("."):
        path.append(part.replace("[*]", ""))
        path += ["*"] * part.count("[*]")
    return path


def scalar(value: Any) -> str | None:
    """Return a scalar as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(int(value)) if value == int(value) else str(value)
    return value if isinstance(value, str) else None


def number(text: str) -> float | None:
    """Return the number that a text is."""
    try:
        return float(text)
    except ValueError:
        return None


def same(left: Any, right: Any) -> bool:
    """Compare for `equals`."""
    left, right = (None if value is GONE else value for value in (left, right))
    if left is None or right is None:
        return {repr(left), repr(right)} <= {"None", "''"} and None in (left, right)
    if isinstance(left, str) and isinstance(right, str):
        return left.lower() == right.lower()
    if isinstance(right, str):
        left, right = right, left
    if isinstance(left, str):
        if isinstance(right, bool):
            return left.lower() == scalar(right)
        return isinstance(right, int | float) and number(left) == right
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def ordered(left: Any, right: Any) -> int | None:
    """Return the order of two values; None without one."""
    if isinstance(left, bool) or isinstance(right, bool):
        both = isinstance(left, bool) and isinstance(right, bool)
        return (left > right) - (left < right) if both else None
    if isinstance(left, str) and isinstance(right, str):
        left, right = left.lower(), right.lower()
    else:
        left = number(left) if isinstance(left, str) else left
        right = number(right) if isinstance(right, str) else right
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            return None
    return int(left > right) - int(left < right)


def wild(text: str, pattern: str) -> bool:
    """Match a pattern of `like`."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(wild(text[index:], pattern[1:]) for index in range(len(text) + 1))
    return bool(text) and text[0] == pattern[0] and wild(text[1:], pattern[1:])


def shape(text: str, pattern: str) -> bool:
    """Match a pattern of `match`."""
    tests: dict[str, Callable[[str], bool]] = {
        "#": lambda sign: sign in "0123456789",
        "?": lambda sign: sign.isascii() and sign.isalpha(),
    }
    tests["."] = lambda _: True
    return len(text) == len(pattern) and all(
        tests[sign](letter) if sign in tests else letter == sign for letter, sign in zip(text, pattern, strict=True)
    )


def test(operator: str, left: Any, right: Any) -> bool:
    """Apply an operator."""
    operator = operator.lower()
    if operator.startswith("not"):
        return not test(operator[3:], left, right)
    if operator == "equals":
        return same(left, right)
    if operator == "in":
        return any(same(left, entry) for entry in right)
    if operator == "exists":
        return (left is not GONE and left is not None) == (str(right).lower() == "true")
    if operator == "contains":
        if isinstance(left, list):
            return any(same(entry, right) for entry in left)
        if isinstance(left, dict):
            return isinstance(right, str) and right.lower() in [key.lower() for key in left]
        text, part = scalar(left), scalar(right)
        return text is not None and part is not None and part.lower() in text.lower()
    if operator == "containskey":
        return isinstance(left, dict) and right.lower() in [key.lower() for key in left]
    if operator in ("like", "match", "matchinsensitively"):
        text, pattern = scalar(left), scalar(right)
        if text is None or pattern is None:
            return False
        if operator == "like":
            return wild(text.lower(), pattern.lower())
        return shape(text, pattern) if operator == "match" else shape(text.lower(), pattern.lower())
    order = ordered(left, right)
    if order is None:
        return False
    return {"less": order < 0, "lessorequals": order <= 0, "greater": order > 0, "greaterorequals": order >= 0}[
        operator
    ]


def holds(condition: Any, resource: Any, parameters: Any, bound: Bound = ()) -> bool:
    """Return whether a resource meets a condition."""
    condition = {key.lower(): value for key, value in condition.items()}
    # Every part is evaluated, so that a fault in any of them shows.
    if "allof" in condition:
        return all([holds(part, resource, parameters, bound) for part in condition["allof"]])  # noqa: C419  # see above
    if "anyof" in condition:
        return any([holds(part, resource, parameters, bound) for part in condition["anyof"]])  # noqa: C419  # see above
    if "not" in condition:
        return not holds(condition["not"], resource, parameters, bound)
    operator = next(key for key in condition if key not in ("field", "value", "count"))
    right = value_of(condition[operator], resource, parameters, bound)
    if "count" in condition:
        return test(operator, tally(condition["count"], resource, parameters, bound), right)
    if "value" in condition:
        return test(operator, value_of(condition["value"], resource, parameters, bound), right)
    values = look(value_of(condition["field"], resource, parameters, bound), resource, bound)
    return values is not None and all(test(operator, value, right) for value in values)


def nearest(path: list[str], bound: Bound) -> tuple[str, Any, Any] | None:
    """Return the enclosing count that a field is about."""
    fitting = [entry for entry in bound if entry[0] == "field" and path[: len(entry[1])] == entry[1]]
    return max(reversed(fitting), key=lambda entry: len(entry[1]), default=None)


def look(name: str, resource: Any, bound: Bound) -> list[Any] | None:
    """Return the values of a field."""
    path = steps(name)
    count = nearest(path, bound)
    return get(count[2], path[len(count[1]) :]) if count else get(resource, path)


def tally(count: Any, resource: Any, parameters: Any, bound: Bound) -> int:
    """Return a count."""
    count = {key.lower(): value for key, value in count.items()}
    if "field" in count:
        kind, path = "field", steps(count["field"])
        outer = nearest(path, bound)
        items = members(outer[2], path[len(outer[1]) :]) if outer else members(resource, path)
    else:
        kind, path = "value", count.get("name")
        items = value_of(count["value"], resource, parameters, bound)
        items = [] if items is None or items is GONE else items if isinstance(items, list) else [items]
    if "where" not in count:
        return len(items)
    return sum(holds(count["where"], resource, parameters, (*bound, (kind, path, item))) for item in items)


def value_of(value: Any, resource: Any, parameters: Any, bound: Bound) -> Any:
    """Return a value in which texts may be expressions."""
    if isinstance(value, str) and is_expression(value):
        return evaluate(parsed(value), resource, parameters, bound)
    if isinstance(value, list):
        return [value_of(entry, resource, parameters, bound) for entry in value]
    return value


def evaluate(node: Literal | FunctionCall | Member, resource: Any, parameters: Any, bound: Bound) -> Any:
    """Return the value of an expression."""
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, Member):
        holder = evaluate(node.holder, resource, parameters, bound)
        return holder[evaluate(node.key, resource, parameters, bound)]
    arguments = [evaluate(argument, resource, parameters, bound) for argument in node.arguments]
    if node.name == "parameters":
        return parameters[arguments[0]]
    if node.name == "field":
        values = look(arguments[0], resource, bound)
        if "[*]" in arguments[0]:
            return [value for value in values or [] if value is not GONE]
        return (values or [GONE])[0]
    if node.name == "current":
        if not arguments:
            return bound[-1][2]
        for kind, name, item in reversed(bound):
            if kind == "value" and name == arguments[0]:
                return item
            if kind == "field" and steps(arguments[0])[: len(name)] == name:
                return (get(item, steps(arguments[0])[len(name) :]) or [GONE])[0]
    arguments = [None if argument is GONE else argument for argument in arguments]
    first = arguments[0]
    functions: dict[str, Callable[[], Any]] = {
        "concat": lambda: "".join(
            "" if part is None else part if isinstance(part, str) else str(part) for part in arguments
        ),
        "empty": lambda: first is None or first in ("", [], {}),
        "equals": lambda: same(first, arguments[1]),
        "first": lambda: None if first is None else first[0] if first else "" if isinstance(first, str) else None,
        "if": lambda: arguments[1] if first is True else arguments[2],
        "length": lambda: 0 if first is None else len(first),
        "tolower": lambda: first.lower(),
    }
    return functions[node.name]()
