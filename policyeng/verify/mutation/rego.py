"""The faults that a Rego module can have, found in its syntax tree; its header is read by `rego_headers`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

import orjson

from policyeng import _native
from policyeng.verify.mutation.edits import Edit, Mutation, Spoken, mutation, rank, without_member
from policyeng.verify.mutation.rego_tree import (
    TEXTS,
    Node,
    binds,
    bounds,
    chain,
    dotted,
    expression_span,
    named,
    shared,
    span,
    walked,
)

#: By how regorus names a comparison: how it is written, and what it becomes.
_COMPARISONS = {
    "Eq": ("==", ("!=",)),
    "Ne": ("!=", ("==",)),
    "Lt": ("<", ("<=", ">=")),
    "Le": ("<=", ("<", ">")),
    "Gt": (">", (">=", "<=")),
    "Ge": (">=", (">", "<")),
}
#: What a denial says to people; cases look at outcomes and paths alone.
REPORTED = frozenset({"msg", "actual", "expected"})
_IMPORT = re.compile(r"^[ \t]*import[ \t]+[\w.]*?(\w+)(?:[ \t]+as[ \t]+(\w+))?[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Places:
    """What references and sets can be changed to.

    Attributes:
        pointers: what the policy inspects.
        parameters: the names of its parameters.
        spoken: texts that it could have in its sets.
    """

    pointers: Sequence[str]
    parameters: Sequence[str]
    spoken: Spoken


def rego_mutations(path: str, source: str, rego_v0: bool, places: Places) -> Iterator[Mutation]:
    """Every fault of a module below its header.

    Raises:
        ValueError: the module does not parse.
    """
    tree = orjson.loads(_native.syntax(path, source, rego_v0))
    yield from _Module(source, places, tree).mutations()


class _Module:
    def __init__(self, source: str, places: Places, tree: list[Node]) -> None:
        self._source = source.encode()
        self._places = places
        self._tree = tree
        self._imported = {given or last for last, given in _IMPORT.findall(source)}
        self._reported: Set[str] = REPORTED
        self._fields = sorted(set(walked(tree, self._last_field)))

    def mutations(self) -> Iterator[Mutation]:
        for rule in self._tree:
            if default := rule.get("Default"):
                yield from self._fallback(default["value"])
                continue
            head, bodies = next(iter(rule["Spec"]["head"].values())), rule["Spec"]["bodies"]
            # Cases look at the path of a denial, not at that of an unknown.
            self._reported = REPORTED | ({"path"} if named(head["refr"]) == "unknown" else set())
            yield from self._head(head)
            for body in bodies:
                yield from self._body(body)

    def _head(self, head: Node) -> Iterator[Mutation]:
        yield from self._term(head.get("key"))
        if head.get("assign"):
            yield from self._term(head["assign"]["value"])

    def _body(self, body: Node) -> Iterator[Mutation]:
        if body.get("assign"):
            yield from self._term(body["assign"]["value"])
        if body["query"]["stmts"]:
            yield self._never(body["query"])
            yield from self._query(body["query"])

    def _never(self, query: Node) -> Mutation:
        """The rule with a body that never holds: as if the rule, this body or this `else` were not there."""
        start, end = span(query["stmts"][0])[0], span(query["stmts"][-1])[1]
        if self._is_braced(query):
            return mutation("drop a rule", start, start, "false; ")
        return Mutation("drop a rule", (Edit(start, start, "{ false; "), Edit(end, end, " }")))

    def _is_braced(self, query: Node) -> bool:
        return span(query)[0] != span(query["stmts"][0])[0]

    def _query(self, query: Node) -> Iterator[Mutation]:
        for statement in query["stmts"]:
            yield from self._statement(statement, braced=self._is_braced(query))

    def _statement(self, statement: Node, *, braced: bool) -> Iterator[Mutation]:
        (kind, literal) = next(iter(statement["literal"].items()))
        start, end = span(statement)
        if kind != "SomeVars" and not binds(literal):
            yield mutation("drop a condition", start, end, "true")
        if kind in ("Expr", "NotExpr"):
            yield from self._negated(kind, literal, start)
            yield from self._term(literal["expr"])
        elif kind == "SomeIn":
            yield from self._term(literal["collection"])
        elif kind == "Every":
            yield self._some(literal, (start, end), braced=braced)
            yield from self._term(literal["domain"])
            yield from self._query(literal["query"])

    def _negated(self, kind: str, literal: Node, start: int) -> Iterator[Mutation]:
        if kind == "NotExpr":
            inner = self._source.index(b"not", start) + 3
            yield mutation("negate a condition", start, inner, "")
        elif next(iter(literal["expr"])) not in ("BoolExpr", "AssignExpr"):
            yield mutation("negate a condition", start, start, "not ")

    def _some(self, every: Node, place: tuple[int, int], *, braced: bool) -> Mutation:
        names = [self._text(bounds(name)) for name in (every["key"], every["value"]) if name]
        statements = every["query"]["stmts"]
        domain = self._text(expression_span(every["domain"]))
        body = self._text((span(statements[0])[0], span(statements[-1])[1]))
        text = f"some {', '.join(names)} in {domain}\n{body}"
        return mutation("every to some", *place, text if braced else f"{{ {text} }}")

    def _term(self, node: Node) -> Iterator[Mutation]:
        """The faults of an expression and all that stands in it."""
        if not node:
            return
        kind, inner = next(iter(node.items()))
        own: Callable[[Node], Iterator[Mutation]] | None = getattr(self, f"_of_{kind.lower()}", None)
        if own is not None:
            yield from own(inner)
        elif kind in ("RefDot", "RefBrack"):
            yield from self._reference(node)
        else:
            yield from self._parts(inner)

    def _parts(self, inner: Node) -> Iterator[Mutation]:
        for name in ("key", "value", "term", "collection", "lhs", "rhs", "expr"):
            if isinstance(inner.get(name), dict):
                yield from self._term(inner[name])
        for part in inner.get("params", ()):
            yield from self._term(part)
        if "query" in inner:
            yield from self._query(inner["query"])

    def _of_boolexpr(self, inner: Node) -> Iterator[Mutation]:
        written, others = _COMPARISONS[inner["op"]]
        start = self._source.index(written.encode(), expression_span(inner["lhs"])[1])
        for other in others:
            yield mutation("flip a comparison", start, start + len(written), other)
        yield from self._parts(inner)

    def _of_number(self, inner: Node) -> Iterator[Mutation]:
        start, end = span(inner)
        value = inner["value"]
        for other in (value + 1, value - 1):
            yield mutation("shift a number", start, end, str(other))

    def _of_bool(self, inner: Node) -> Iterator[Mutation]:
        yield mutation("flip a boolean", *span(inner), "false" if inner["value"] else "true")

    def _of_string(self, inner: Node) -> Iterator[Mutation]:
        end = span(inner)[1]
        if " " not in inner["value"]:  # which is a message
            yield mutation("change a text", end, end, "_")

    _of_rawstring = _of_string

    def _of_array(self, inner: Node) -> Iterator[Mutation]:
        yield from self._collection(inner["items"], span(inner), "[]")

    def _of_set(self, inner: Node) -> Iterator[Mutation]:
        yield from self._collection(inner["items"], span(inner), "set()")

    def _collection(self, items: list[Node], place: tuple[int, int], empty: str) -> Iterator[Mutation]:
        kinds = {next(iter(item)) for item in items}
        if "Object" not in kinds:  # whose places are not exact
            spans = [expression_span(item) for item in items]
            for index in range(len(items)):
                edit = without_member(spans, index) if len(items) > 1 else Edit(*place, empty)
                yield Mutation("narrow a set", (edit,))
        if kinds and kinds <= {*TEXTS}:
            word = self._places.spoken.another([inner["value"] for item in items for inner in item.values()])
            if word:
                yield mutation("widen a set", place[0] + 1, place[0] + 1, f"{orjson.dumps(word).decode()}, ")
        for item in items:
            if next(iter(item)) not in TEXTS:
                yield from self._term(item)

    def _of_object(self, inner: Node) -> Iterator[Mutation]:
        fields = inner["fields"]
        names = [next(iter(key.values())).get("value") for _, key, _ in fields]
        denial = "msg" in names
        if not denial and len(fields) > 1:
            spans = [(expression_span(key)[0], expression_span(value)[1]) for _, key, value in fields]
            for index in range(len(fields)):
                yield Mutation("narrow a set", (without_member(spans, index),))
        for name, (_, _, value) in zip(names, fields, strict=True):
            if not (denial and name in self._reported):
                yield from self._term(value)

    def _of_call(self, inner: Node) -> Iterator[Mutation]:
        parts = inner["params"]
        if self._text(expression_span(inner["fcn"])) != "object.get" or len(parts) != 3:
            yield from self._parts(inner)
            return
        yield from self._term(parts[0])
        kind, path = next(iter(parts[1].items()))
        for key in path["items"] if kind == "Array" else [parts[1]]:
            yield from self._term(key)
        yield from self._fallback(parts[2])

    def _fallback(self, node: Node) -> Iterator[Mutation]:
        kind, inner = next(iter(node.items()))
        empty = {"Null": '"_"', "Array": "null", "Object": "null", "String": "null"}
        if kind in empty and not (inner.get("items") or inner.get("fields") or inner.get("value")):
            start, end = expression_span(node)
            if kind == "Object":  # its place begins at its last member
                start = self._source.rindex(b"{", 0, end)
            yield mutation("change a fallback", start, end, empty[kind])
        else:
            yield from self._term(node)

    def _reference(self, node: Node) -> Iterator[Mutation]:
        """A reference to something else, and what stands between its brackets."""
        root, *keys = chain(node)
        for key in keys:
            if key.get("index") and next(iter(key["index"])) != "Var":
                yield from self._term(key["index"])
        name = named(root)
        if name is None:
            yield from self._term(root)
        elif name != "data" and name not in self._imported:
            yield from self._swapped(name, keys)

    def _swapped(self, root: str, keys: list[Node]) -> Iterator[Mutation]:
        names = []
        for key in keys:
            if "field" not in key:
                break
            names.append(key["field"][1])
        if root == "input" and names[:1] in (["resource"], ["workspace"]) and len(names) == len(keys) > 1:
            yield from self._other_pointer(names, bounds(keys[0]["field"][0])[0], bounds(keys[-1]["field"][0])[1])
        elif root == "input" and names[:1] == ["parameters"] and len(names) == 2:
            yield from self._other_name(names[1], self._places.parameters, bounds(keys[1]["field"][0]))
        elif keys and "field" in keys[-1] and not (root == "input" and len(keys) < 3):
            yield from self._other_name(keys[-1]["field"][1], self._fields, bounds(keys[-1]["field"][0]))

    def _other_pointer(self, names: list[str], start: int, end: int) -> Iterator[Mutation]:
        inspected = [dotted(pointer) for pointer in self._places.pointers]
        others = [path for path in inspected if path and path != names]
        if others:
            nearest = max(others, key=lambda path: (shared(path, names), rank(start, path)))
            yield mutation("swap a path", start, end, ".".join(nearest))
        else:
            yield mutation("swap a path", end, end, "_")

    def _other_name(self, name: str, names: Sequence[str], place: tuple[int, int]) -> Iterator[Mutation]:
        others = [other for other in names if other != name]
        if others:
            yield mutation("swap a path", *place, min(others, key=lambda other: rank(place[0], other)))

    def _last_field(self, node: Node) -> str | None:
        """The last name of a reference to something that is not a function or another package."""
        if "RefDot" not in node:
            return None
        first, *keys = chain(node)
        root = named(first)
        if root is None or root == "data" or root in self._imported or (root == "input" and len(keys) < 3):
            return None
        name: str = node["RefDot"]["field"][1]
        return name

    def _text(self, place: tuple[int, int]) -> str:
        return self._source[slice(*place)].decode()
