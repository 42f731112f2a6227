"""Find the parameters that switch a policy off while they are empty."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from policyeng.bundle.policy_types import Policy
from policyeng.models import JsonObject

if TYPE_CHECKING:
    from policyeng.bundle.loader import Bundle

_APPLIES = "applies"
_PARAMETERS = "input.parameters."


def unset_switches(policy: Policy, bundle: Bundle, values: JsonObject) -> tuple[str, ...]:
    """Return the parameters to set before a policy has findings; none if it is on.

    A policy is off while every parameter that decides whether it applies is empty: a list or an object without members,
    a blank text, zero, false or null. Such a parameter is one that its rule or function `applies` reads.

    Args:
        policy: of the bundle.
        bundle: the bundle, with the text of the policy.
        values: the parameters of the policy, with defaults.
    """
    names = _read_by_applies(policy, bundle) & values.keys()
    return tuple(sorted(names)) if names and not any(values[name] for name in names) else ()


def _read_by_applies(policy: Policy, bundle: Bundle) -> set[str]:
    if policy.header.evidence:
        from policyeng.bundle.evidence_policies import REQUIRED

        return {REQUIRED}
    if policy.rules:
        return set(_in_rego(policy, bundle)) if any(role == _APPLIES for role, _ in policy.rules) else set()
    has_applies = policy.python is not None and policy.python.has_applies
    return set(_in_python(policy.python.text)) if policy.python and has_applies else set()


def _in_rego(policy: Policy, bundle: Bundle) -> Iterator[str]:
    """Yield the parameters that `applies` reads, also through other rules of its module."""
    from policyeng.bundle.rego_trees import tree_of  # only frameworks and lists of policies need it
    from policyeng.rego.syntax import Ref, Rule, Var, dotted_name, walk

    source = dict(bundle.modules).get(policy.file)
    rules: dict[str, list[Rule]] = {}
    for rule in tree_of(source, policy.file in bundle.rego_v0).rules if source is not None else ():
        if isinstance(rule.head.ref.head, Var):
            rules.setdefault(rule.head.ref.head.name, []).append(rule)
    named = {name: {node.name for node in walk(nodes) if isinstance(node, Var)} for name, nodes in rules.items()}
    for name in _reached(_APPLIES, named):
        for node in walk(rules[name]):
            if isinstance(node, Ref) and dotted_name(node).startswith(_PARAMETERS):
                yield dotted_name(node).split(".")[2]


def _in_python(text: bytes) -> Iterator[str]:
    """Yield the texts in the function `applies` of a module and in functions of the module that it names."""
    module = ast.parse(text)
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    named = {
        name: {node.id for node in ast.walk(body) if isinstance(node, ast.Name)} for name, body in functions.items()
    }
    for start in _applies_of(functions.values()):
        nodes: list[ast.AST] = [start] if isinstance(start, ast.Lambda) else []
        if isinstance(start, ast.Name):
            nodes = [functions[name] for name in _reached(start.id, named)]
        for node in nodes:
            yield from (
                one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)
            )


def _applies_of(functions: Iterable[ast.FunctionDef]) -> Iterator[ast.expr]:
    for function in functions:
        for call in function.decorator_list:
            if isinstance(call, ast.Call):
                yield from (keyword.value for keyword in call.keywords if keyword.arg == _APPLIES)


def _reached(start: str, named: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a name and those that it leads to, among the known ones."""
    found = [start] if start in named else []
    for name in found:  # the loop appends to it
        found += [other for other in sorted(named[name]) if other in named and other not in found]
    return found
