"""Nodes of Rego in the JSON that `opa parse --format json` prints."""

from __future__ import annotations

import json

from policyeng.rego import syntax
from policyeng.rego.syntax import Body, Expr, Head, Module, Node, Rule, Term


def module_json(module: Module) -> object:
    """Convert a module; comments and positions are left out."""
    parts: dict[str, object] = {"package": {"path": _path(module.package)}}
    if module.imports:
        parts["imports"] = [
            {"path": _term(one.path)} | ({"alias": one.alias} if one.alias else {}) for one in module.imports
        ]
    if module.rules:
        parts["rules"] = [_rule(rule) for rule in module.rules]
    return canonical(parts)


def body_json(body: Body) -> object:
    """Convert a query."""
    return canonical(_body(body))


def canonical(value: object) -> object:
    """Give wildcards the same names, and sets and objects the same order, whoever wrote the JSON."""
    return _sorted(_renamed(value, {}))


def _renamed(value: object, names: dict[str, str]) -> object:
    if isinstance(value, dict):
        if value.get("type") == "var" and str(value["value"]).startswith("$"):
            return {"type": "var", "value": "$"}
        return {
            key: _renamed(one, names)
            for key, one in sorted(value.items())
            if key not in ("location", "comments", "annotations", "name", "generated", "multi_line")
        }
    if isinstance(value, list):
        return [_renamed(one, names) for one in value]
    return value


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        value = {key: _sorted(one) for key, one in value.items()}
        if "ref" in value and "value" in value:
            value.pop("key", None)  # OPA keeps the last part of the reference here, too
        if value.get("type") in ("set", "object") and isinstance(value["value"], list):
            keyed = {json.dumps(one, sort_keys=True): one for one in value["value"]}
            value["value"] = [keyed[key] for key in sorted(keyed)]
        return value
    if isinstance(value, list):
        return [_sorted(one) for one in value]
    return value


def _rule(rule: Rule) -> dict[str, object]:
    parts: dict[str, object] = {"head": _head(rule.head), "body": _body(rule.body)}
    if rule.default:
        parts["default"] = True
    if rule.otherwise:
        parts["else"] = _rule(rule.otherwise)
    return parts


def _head(head: Head) -> dict[str, object]:
    parts: dict[str, object] = {"ref": _path(head.ref)}
    if head.args:
        parts["args"] = [_term(one) for one in head.args]
    if head.key is not None:
        parts["key"] = _term(head.key)
    if head.value is not None:
        parts["value"] = _term(head.value)
    if head.assigned:
        parts["assign"] = True
    return parts


def _body(body: Body) -> list[object]:
    return [{"index": index} | _expr(one) for index, one in enumerate(body)]


def _expr(expr: Expr) -> dict[str, object]:
    parts: dict[str, object] = {"terms": _terms(expr.value)}
    if expr.negated:
        parts["negated"] = True
    if expr.withs:
        parts["with"] = [{"target": _target(one.target), "value": _term(one.value)} for one in expr.withs]
    return parts


def _target(target: syntax.Ref) -> dict[str, object]:
    is_name = not target.path and isinstance(target.head, syntax.Var) and target.head.name not in ("data", "input")
    return _term(target.head if is_name else target)


def _terms(value: Node) -> object:
    match value:
        case syntax.Call():
            return [_term(value.operator), *map(_term, value.arguments)]
        case syntax.Some():
            return {"symbols": [_term(one) for one in value.names]}
        case syntax.SomeIn():
            return {"symbols": [_term(value.member)]}
        case syntax.Every():
            key = _term(value.key) if value.key else None
            return {"key": key, "value": _term(value.value), "domain": _term(value.domain), "body": _body(value.body)}
        case syntax.Not():
            return {"type": "not", "body": _body(value.body), "explicit_body": value.explicit}
        case syntax.Logical():
            sides = dict(zip(("explicit_lhs", "explicit_rhs"), value.explicit, strict=True))
            parts = {"type": value.operator, "lhs": _body(value.left), "rhs": _body(value.right)}
            return parts | {side: True for side, explicit in sides.items() if explicit}
    return _term(value)  # type: ignore[arg-type]  # what is left is a term


def _path(ref: syntax.Ref) -> list[object]:
    return [_term(ref.head), *map(_term, ref.path)]


def _term(term: Term) -> dict[str, object]:
    match term:
        case syntax.Scalar(value=None):
            return {"type": "null", "value": {}}
        case syntax.Scalar(value=bool()):
            return {"type": "boolean", "value": term.value}
        case syntax.Scalar():
            return {"type": "string", "value": term.value}
        case syntax.Number():
            return {"type": "number", "value": float(term.text)}
        case syntax.Var():
            return {"type": "var", "value": term.name}
        case syntax.Ref():
            return {"type": "ref", "value": _path(term)}
        case syntax.Array():
            return {"type": "array", "value": [_term(one) for one in term.items]}
        case syntax.Set():
            return {"type": "set", "value": [_term(one) for one in term.items]}
        case syntax.Object():
            return {"type": "object", "value": [[_term(key), _term(value)] for key, value in term.items]}
        case syntax.ArrayComprehension():
            return {"type": "arraycomprehension", "value": {"term": _term(term.term), "body": _body(term.body)}}
        case syntax.SetComprehension():
            return {"type": "setcomprehension", "value": {"term": _term(term.term), "body": _body(term.body)}}
        case syntax.ObjectComprehension():
            parts = {"key": _term(term.key), "value": _term(term.value), "body": _body(term.body)}
            return {"type": "objectcomprehension", "value": parts}
        case syntax.Call():
            return {"type": "call", "value": _terms(term)}
    return {"type": "templatestring", "value": {"parts": [_part(one) for one in term.parts] or None}}


def _part(part: object) -> object:
    return {"index": 0} | _expr(part) if isinstance(part, Expr) else _term(part)  # type: ignore[arg-type]  # scalars and numbers
