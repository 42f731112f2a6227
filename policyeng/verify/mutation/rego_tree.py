"""Questions to the syntax tree of a Rego module, as regorus writes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

#: A node: JSON whose shape is that of the `Expr`, `Literal` and `Rule` of regorus.
Node: TypeAlias = Any

#: The kinds of constants that are text.
TEXTS = ("String", "RawString")
_NAME = re.compile(r"[A-Za-z_]\w*")


def named(node: Node) -> str | None:
    """The name, of a node that is one."""
    name: str | None = node.get("Var", {}).get("value")
    return name


def binds(literal: Node) -> bool:
    """Whether a statement only gives a name to something: without it nothing would compile."""
    expression = literal.get("expr", {})
    return bool(expression.get("AssignExpr", {}).get("op") == "ColEq")


def span(inner: Node) -> tuple[int, int]:
    """Where what a node is made of stands, in bytes."""
    return bounds(inner["span"])


def bounds(place: Node) -> tuple[int, int]:
    """Where something begins and ends, in bytes."""
    return place["start"], place["end"]


def expression_span(node: Node) -> tuple[int, int]:
    """Where an expression stands, with the quotes of a text, which regorus leaves out."""
    kind, inner = next(iter(node.items()))
    start, end = span(inner)
    return (start - 1, end + 1) if kind in TEXTS else (start, end)


def chain(node: Node) -> Iterator[Node]:
    """What a reference begins with, then its parts with their `field` or `index`."""
    part = node.get("RefDot") or node.get("RefBrack")
    if part is None:
        yield node
        return
    yield from chain(part["refr"])
    yield part


def walked(node: Node, said: Callable[[Node], str | None]) -> Iterator[str]:
    """What is said of the nodes of a tree, without the names of the functions that are called."""
    if isinstance(node, dict):
        if name := said(node):
            yield name
        for kind, part in node.items():
            if kind == "Call":
                yield from walked(part["params"], said)
            else:
                yield from walked(part, said)
    elif isinstance(node, list):
        for part in node:
            yield from walked(part, said)


def dotted(pointer: str) -> list[str]:
    """An inspected pointer as the names of a reference below `input`; empty when it cannot be written so."""
    base, own = ("workspace", pointer.removeprefix("workspace:"))
    if own == pointer:
        base = "resource"
    names = [base, *own.split("/")[1:]]
    return names if all(map(_NAME.fullmatch, names)) else []


def shared(left: Sequence[str], right: Sequence[str]) -> int:
    """How many names two references begin with alike."""
    pairs = list(zip(left, right, strict=False))
    return next((number for number, (one, other) in enumerate(pairs) if one != other), len(pairs))
