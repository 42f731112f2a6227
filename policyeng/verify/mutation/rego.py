"""Edits of a source text at exact places, and the lines that they change."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import NamedTuple

import orjson

from policyeng.bundle.rego_trees import aliases_of, brace_before, tree_of
from policyeng.models import lowered
from policyeng.rego.syntax import (
    Array,
    ArrayComprehension,
    Body,
    Call,
    Every,
    Expr,
    Head,
    Logical,
    Module,
    Node,
    Not,
    Number,
    Object,
    ObjectComprehension,
    Ref,
    Rule,
    Scalar,
    SetComprehension,
    Some,
    SomeIn,
    Term,
    Var,
    dotted_name,
    parts_of,
    walk,
)
from policyeng.rego.syntax import Set as SetNode

_COMMENT = re.compile(r"^[ \t]*#\s?", re.MULTILINE)
_SPACE = re.compile(r"\s+")


class TextEdit(NamedTuple):
    """A replacement of the characters from `start` to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Mutation:
    """One fault: its kind, and the edits that make it, in the order of their places."""

    kind: str
    edits: tuple[TextEdit, ...]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A policy with one fault.

    Attributes:
        policy: the id of the policy.
        file: the file of the policy, as in the bundle.
        kind: the kind of fault, one of those in `docs/mutation.md`.
        line: the line of the fault, from 1.
        before: the text of the changed lines, on one line.
        after: the same with the fault.
        source: the complete text with the fault.
    """

    policy: str
    file: str
    kind: str
    line: int
    before: str
    after: str
    source: str


@dataclass(frozen=True)
class Spoken:
    """The texts in baselines and cases, in one list per place."""

    standing: Sequence[Sequence[str]]

    def another(self, words: Iterable[str]) -> str | None:
        """Return a text that is not in a set but at the same place as one of its members; None if there is none.

        It has no blanks around it, because policies compare text without them. For a set in lower case it is in lower
        case, because such sets are compared with lower-case text.
        """
        members = sorted(words)
        own = set(map(_trimmed, members))
        others = {
            text
            for texts in self.standing
            if not own.isdisjoint(map(_trimmed, texts))
            for text in map(str.strip, texts)
            if text and lowered(text) not in own and (text == lowered(text) or own != set(members))
        }
        return min(sorted(others), key=lambda text: rank(*members, text), default=None)


def _trimmed(text: str) -> str:
    return lowered(text.strip())


def mutation(kind: str, start: int, end: int, text: str) -> Mutation:
    """Return a fault of a single edit."""
    return Mutation(kind, (TextEdit(start, end, text),))


def mutants(policy: str, file: str, source: str, mutations: Iterable[Mutation]) -> list[Mutant]:
    """Return the source with each of the faults, in the order of their places, without duplicates."""
    made: dict[str, Mutant] = {}
    for entry in sorted(mutations, key=lambda entry: (entry.edits, entry.kind)):
        text = _apply_edits(source, entry.edits)
        if text != source and text not in made:
            line = source.count("\n", 0, entry.edits[0].start) + 1
            before, after = _show_lines(source, entry.edits)
            made[text] = Mutant(policy, file, entry.kind, line, before, after, text)
    return list(made.values())


def rank(*parts: object) -> str:
    """Return a pseudorandom rank that depends only on the parts, so that every run makes the same choice."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


def without_member(spans: Sequence[tuple[int, int]], index: int) -> TextEdit:
    """Remove one of the members of a list, at these places, with the comma next to it."""
    start, end = spans[index]
    if index + 1 < len(spans):
        return TextEdit(start, spans[index + 1][0], "")
    return TextEdit(spans[index - 1][1] if index else start, end, "")


def _apply_edits(source: str, edits: Iterable[TextEdit]) -> str:
    for edit in sorted(edits, reverse=True):
        source = source[: edit.start] + edit.text + source[edit.end :]
    return source


def _show_lines(source: str, edits: Iterable[TextEdit]) -> tuple[str, str]:
    """Return the lines that the edits change, before and after; edits of the same lines together."""
    before, after = [], []
    for (start, end), group in groupby(edits, key=lambda edit: _lines(source, edit)):
        moved = [TextEdit(edit.start - start, edit.end - start, edit.text) for edit in group]
        before.append(_plain(source[start:end]))
        after.append(_plain(_apply_edits(source[start:end], moved)) or "(nothing)")
    return " ... ".join(before), " ... ".join(after)


def _lines(source: str, edit: TextEdit) -> tuple[int, int]:
    """Return the begin and the end of the lines of an edit."""
    start = source.rfind("\n", 0, edit.start) + 1
    if start == edit.start < edit.end and source[edit.end - 1] == "\n":
        return start, edit.end  # whole lines
    end = source.find("\n", edit.end)
    return start, len(source) if end < 0 else end


def _plain(lines: str) -> str:
    return _SPACE.sub(" ", _COMMENT.sub("", lines)).strip()


#: By the builtin of a comparison: its operator, and the replacements.
_COMPARISONS = {
    "equal": ("==", ("!=",)),
    "neq": ("!=", ("==",)),
    "lt": ("<", ("<=", ">=")),
    "lte": ("<=", ("<", ">")),
    "gt": (">", (">=", "<=")),
    "gte": (">=", (">", "<")),
}
#: The parts of a denial for people; cases check only outcomes and paths.
REPORTED = frozenset({"msg", "actual", "expected"})
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class MutationTargets:
    """The replacements for references and sets.

    Attributes:
        pointers: the pointers that the policy inspects.
        parameters: the names of its parameters.
        spoken: texts that its sets could contain.
    """

    pointers: Sequence[str]
    parameters: Sequence[str]
    spoken: Spoken


def rego_mutations(source: str, rego_v0: bool, places: MutationTargets) -> Iterator[Mutation]:
    """Yield every fault of a module below its header.

    Raises:
        RegoError: the module does not parse.
    """
    yield from _RegoModule(source, places, tree_of(source, rego_v0)).mutations()


class _RegoModule:
    def __init__(self, source: str, places: MutationTargets, tree: Module) -> None:
        self._source = source
        self._places = places
        self._tree = tree
        self._imported = set(aliases_of(tree))
        self._reported: Set[str] = REPORTED
        self._fields = sorted(set(self._last_fields()))

    def mutations(self) -> Iterator[Mutation]:
        for rule in self._tree.rules:
            if rule.default:
                if rule.head.value is not None:
                    yield from self._fallback(rule.head.value)
                continue
            # Cases check the path of a denial, but not that of an unknown.
            self._reported = REPORTED | ({"path"} if dotted_name(rule.head.ref) == "unknown" else set())
            yield from self._rule(rule)

    def _rule(self, rule: Rule) -> Iterator[Mutation]:
        yield from self._head(rule.head)
        if rule.body[0].start != rule.start:  # without a body, the parser adds one at the start of the rule
            yield self._never(rule.body)
            yield from self._body(rule.body)
        if rule.otherwise is not None:
            yield from self._rule(rule.otherwise)

    def _head(self, head: Head) -> Iterator[Mutation]:
        if head.key is not None:
            yield from self._term(head.key)
        if head.value is not None and not head.implied_value:
            yield from self._term(head.value)

    def _never(self, body: Body) -> Mutation:
        """Return a fault that makes a body false, as if the rule, this body or this `else` did not exist."""
        start, end = body[0].start, body[-1].end
        if self._is_braced(body):
            return mutation("drop a rule", start, start, "false; ")
        return Mutation("drop a rule", (TextEdit(start, start, "{ false; "), TextEdit(end, end, " }")))

    def _is_braced(self, body: Body) -> bool:
        return brace_before(self._tree, body[0].start) is not None

    def _body(self, body: Body) -> Iterator[Mutation]:
        for statement in body:
            yield from self._statement(statement, braced=self._is_braced(body))

    def _statement(self, statement: Expr, *, braced: bool) -> Iterator[Mutation]:
        value, start = statement.value, statement.start
        # Without an assignment the rest does not compile.
        if not isinstance(value, Some) and _operator(value) != "assign":
            yield mutation("drop a condition", start, statement.end, "true")
        if isinstance(value, SomeIn):
            yield from self._term(value.member.arguments[-1])
        elif isinstance(value, Every):
            yield self._some(value, statement, braced=braced)
            yield from self._term(value.domain)
            yield from self._body(value.body)
        elif isinstance(value, Not | Logical):
            for part in parts_of(value):
                if isinstance(part, Expr):
                    yield from self._statement(part, braced=False)
        elif not isinstance(value, Some):
            if statement.negated:
                yield mutation("negate a condition", start, start + len("not"), "")
            elif _operator(value) not in {*_COMPARISONS, "assign", "eq"}:
                yield mutation("negate a condition", start, start, "not ")
            yield from self._term(value)

    def _some(self, every: Every, statement: Expr, *, braced: bool) -> Mutation:
        names = [self._text(name) for name in (every.key, every.value) if name]
        body = self._source[every.body[0].start : every.body[-1].end]
        text = f"some {', '.join(names)} in {self._text(every.domain)}\n{body}"
        return mutation("every to some", statement.start, statement.end, text if braced else f"{{ {text} }}")

    def _term(self, node: Term) -> Iterator[Mutation]:
        """Yield the faults of an expression and all terms inside it."""
        match node:
            case Scalar():
                yield from self._scalar(node)
            case Number():
                yield from self._number(node)
            case Ref():
                yield from self._reference(node)
            case Call():
                yield from self._call(node)
            case Array():
                yield from self._collection(node, "[]")
            case SetNode():
                yield from self._collection(node, "set()")
            case Object():
                yield from self._object(node)
            case ArrayComprehension() | SetComprehension():
                yield from self._term(node.term)
                yield from self._body(node.body)
            case ObjectComprehension():
                yield from self._term(node.key)
                yield from self._term(node.value)
                yield from self._body(node.body)

    def _scalar(self, node: Scalar) -> Iterator[Mutation]:
        if isinstance(node.value, bool):
            yield mutation("flip a boolean", node.start, node.end, "false" if node.value else "true")
        elif isinstance(node.value, str) and " " not in node.value:  # texts with spaces are messages
            yield mutation("change a text", node.end - 1, node.end - 1, "_")

    def _number(self, node: Number) -> Iterator[Mutation]:
        if self._text(node) == node.text:  # the parser adds the 0 of `-x`
            value = json.loads(node.text)
            for other in (value + 1, value - 1):
                yield mutation("shift a number", node.start, node.end, str(other))

    def _call(self, node: Call) -> Iterator[Mutation]:
        name, arguments = dotted_name(node.operator), node.arguments
        if name in _COMPARISONS and self._text(node.operator) == _COMPARISONS[name][0]:
            for other in _COMPARISONS[name][1]:
                yield mutation("flip a comparison", node.operator.start, node.operator.end, other)
        if name == "object.get" and len(arguments) == 3:
            holder, path, fallback = arguments
            yield from self._fallback(fallback)
            arguments = [holder, *(path.items if isinstance(path, Array) else [path])]
        for argument in arguments:
            yield from self._term(argument)

    def _collection(self, node: Array | SetNode, empty: str) -> Iterator[Mutation]:
        items = node.items
        if not any(isinstance(item, Object) for item in items):  # not a table
            for index in range(len(items)):
                edit = without_member(_spans(items), index) if len(items) > 1 else TextEdit(node.start, node.end, empty)
                yield Mutation("narrow a set", (edit,))
        texts = [text for item in items if (text := _text_of(item)) is not None]
        if items and len(texts) == len(items) and (word := self._places.spoken.another(texts)):
            place = node.start + 1
            yield mutation("widen a set", place, place, f"{orjson.dumps(word).decode()}, ")
        for item in items:
            if _text_of(item) is None:
                yield from self._term(item)

    def _object(self, node: Object) -> Iterator[Mutation]:
        names = [_text_of(key) for key, _ in node.items]
        denial = "msg" in names
        if not denial and len(names) > 1:
            spans = [(key.start, value.end) for key, value in node.items]
            for index in range(len(spans)):
                yield Mutation("narrow a set", (without_member(spans, index),))
        for name, (_, value) in zip(names, node.items, strict=True):
            if not (denial and name in self._reported):
                yield from self._term(value)

    def _fallback(self, node: Term) -> Iterator[Mutation]:
        match node:
            case Scalar(value=None):
                yield mutation("change a fallback", node.start, node.end, '"_"')
            case Array(items=[]) | Object(items=[]) | Scalar(value=""):
                yield mutation("change a fallback", node.start, node.end, "null")
            case _:
                yield from self._term(node)

    def _reference(self, node: Ref) -> Iterator[Mutation]:
        """Yield references to something else, and the faults of the terms in its brackets."""
        for part in node.path:
            if not isinstance(part, Var) and not self._is_field(part):
                yield from self._term(part)
        if not isinstance(node.head, Var):
            yield from self._term(node.head)
        elif node.head.name != "data" and node.head.name not in self._imported:
            yield from self._swapped(node.head.name, node.path)

    def _swapped(self, root: str, path: Sequence[Term]) -> Iterator[Mutation]:
        fields = list(takewhile(self._is_field, path))
        names = list(map(self._text, fields))
        if root == "input" and names[:1] in (["resource"], ["workspace"]) and len(names) == len(path) > 1:
            yield from self._other_pointer(names, fields[0].start, fields[-1].end)
        elif root == "input" and names[:1] == ["parameters"] and len(names) == 2:
            yield from self._other_name(fields[1], self._places.parameters)
        elif path and self._is_field(path[-1]) and not (root == "input" and len(path) < 3):
            yield from self._other_name(path[-1], self._fields)

    def _other_pointer(self, names: list[str], start: int, end: int) -> Iterator[Mutation]:
        inspected = [_dotted(pointer) for pointer in self._places.pointers]
        others = [path for path in inspected if path and path != names]
        if others:
            nearest = max(others, key=lambda path: (_shared(path, names), rank(start, path)))
            yield mutation("swap a path", start, end, ".".join(nearest))
        else:
            yield mutation("swap a path", end, end, "_")

    def _other_name(self, field: Term, names: Sequence[str]) -> Iterator[Mutation]:
        others = [other for other in names if other != self._text(field)]
        if others:
            least = min(others, key=lambda other: rank(field.start, other))
            yield mutation("swap a path", field.start, field.end, least)

    def _last_fields(self) -> Iterator[str]:
        """Yield the last names of references to anything but functions and other packages."""
        nodes = list(walk(self._tree.rules))
        called = {id(node.operator) for node in nodes if isinstance(node, Call)}
        for node in nodes:
            if isinstance(node, Ref) and isinstance(node.head, Var) and id(node) not in called:
                root = node.head.name
                if root != "data" and root not in self._imported:
                    fields = node.path[2:] if root == "input" else node.path
                    yield from map(self._text, filter(self._is_field, fields))

    def _is_field(self, part: Node) -> bool:
        """Check whether a part of a reference is written with a dot."""
        return isinstance(part, Scalar) and self._text(part) == part.value

    def _text(self, node: Node) -> str:
        return self._source[node.start : node.end]


def _operator(value: object) -> str:
    return dotted_name(value.operator) if isinstance(value, Call) else ""


def _text_of(node: Term) -> str | None:
    return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else None


def _spans(nodes: Sequence[Node]) -> list[tuple[int, int]]:
    return [(node.start, node.end) for node in nodes]


def _dotted(pointer: str) -> list[str]:
    """Return an inspected pointer as the names of a reference below `input`; empty if that is not possible."""
    base, own = ("workspace", pointer.removeprefix("workspace:"))
    if own == pointer:
        base = "resource"
    names = [base, *own.split("/")[1:]]
    return names if all(map(_NAME.fullmatch, names)) else []


def _shared(left: Sequence[str], right: Sequence[str]) -> int:
    """Count the first names that two references share."""
    pairs = list(zip(left, right, strict=False))
    return next((number for number, (one, other) in enumerate(pairs) if one != other), len(pairs))
