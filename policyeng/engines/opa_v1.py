"""Rego v0 written as v1, so that a server that reads v1 takes every module. No line changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from policyeng.bundle import Bundle
from policyeng.bundle.rego_trees import aliases_of, brace_before
from policyeng.engines.opa_rego import TextEdit, edited, syntax_of
from policyeng.errors import EngineError
from policyeng.rego.syntax import Call, Head, Module, Rule, Var, dotted_name, walk

#: The module that answers for the builtins that v1 dropped, and its path.
_DROPPED = (
    "policyeng_v0.rego",
    """\
package policyeng_v0

any(values) if true in values

else := false

all(values) if {
	every value in values {
		value == true
	}
}

else := false

set_diff(left, right) := left - right

cast_array(value) := [member | some member in value] if type_name(value) in {"array", "set"}

cast_set(value) := {member | some member in value} if type_name(value) in {"array", "set"}

cast_string(value) := value if is_string(value)

cast_boolean(value) := value if is_boolean(value)

cast_null(value) := value if is_null(value)

cast_object(value) := value if is_object(value)
""",
)
#: Builtins of v0, and what is called instead.
_RENAMED = {
    "re_match": "regex.match",
    "net.cidr_overlap": "net.cidr_contains",
}
_RENAMED |= {name: f"data.policyeng_v0.{name}" for name in re.findall(r"^(\w+)\(", _DROPPED[1], re.MULTILINE)}


def modules_in_v1(bundle: Bundle) -> list[tuple[str, str]]:
    """Return the modules (path, text) of a bundle, those in Rego v0 as v1.

    Raises:
        EngineError: a module cannot be written as v1.
    """
    if not bundle.rego_v0:
        return list(bundle.modules)
    modules = [
        (path, module_in_v1(path, source) if path in bundle.rego_v0 else source) for path, source in bundle.modules
    ]
    return [*modules, _DROPPED]


def module_in_v1(path: str, source: str) -> str:
    """Return a module in Rego v0 as v1.

    Raises:
        EngineError: it is not Rego v0, or what it contains is not Rego v1, such as a variable called `if`.
    """
    tree = syntax_of(path, source, rego_v0=True)
    text = edited(source, _edits(tree))
    try:
        syntax_of(path, text)
    except EngineError as error:
        raise EngineError(f"the module cannot be written as Rego v1: {error.message}", place=error.place) from None
    return text


def _edits(tree: Module) -> Iterator[TextEdit]:
    for rule in tree.rules:
        if not rule.default:
            yield from _of_rule(rule, tree)
    own = {rule.head.ref.head.name for rule in tree.rules if isinstance(rule.head.ref.head, Var)} | {*aliases_of(tree)}
    for node in walk(tree.rules):
        if isinstance(node, Call) and (name := dotted_name(node.operator)) in _RENAMED and name not in own:
            yield node.operator.start, node.operator.end, _RENAMED[name]


def _of_rule(rule: Rule, tree: Module) -> Iterator[TextEdit]:
    head = rule.head
    if head.key is not None and "contains" not in head.keywords:
        yield _set_head(head, tree.source.text)
    if rule.implied_body and head.implied_value:
        yield head.end, head.end, " := true"
    branch: Rule | None = rule
    while branch is not None:
        brace = brace_before(tree, branch.body[0].start)
        # A body behind another one shares the `if` of the first.
        if brace is not None and "if" not in branch.head.keywords and rule.start <= head.start:
            yield brace, brace, "if "
        branch = branch.otherwise


def _set_head(head: Head, text: str) -> TextEdit:
    """`p[x]` and `p.x`, which are one in v0."""
    start = head.ref.head.end
    key = text[start : head.end].strip()
    named = json.dumps(key[1:].strip()) if key.startswith(".") else key[1:-1].lstrip(" \t")
    return start, head.end, f" contains {named}"
