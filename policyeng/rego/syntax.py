"""The nodes of Rego: the meaning of a module, without its formatting.

Two nodes are equal when they have the same meaning, wherever they are. Each node knows its offsets in the text of its
module. Operators are calls of the builtins that OPA names for them: `x == y` is `equal(x, y)`, `x := y` is
`assign(x, y)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from policyeng.rego.budget import spend
from policyeng.rego.errors import ModuleText
from policyeng.rego.lexer import Comment
from policyeng.rego.values import Value, is_number, number_text


@dataclass(slots=True)
class Node:
    """What all nodes have: the offsets of their text."""

    start: int = field(compare=False, repr=False)
    end: int = field(compare=False, repr=False)


@dataclass(slots=True)
class Scalar(Node):
    """Null, a boolean or a string."""

    value: str | bool | None


@dataclass(slots=True)
class Number(Node):
    """A number, as it is written; `-1` is one, too."""

    text: str


@dataclass(slots=True)
class Var(Node):
    """A variable; each `_` has a name of its own that begins with `$`."""

    name: str

    @property
    def is_wildcard(self) -> bool:
        """Whether it is written `_`."""
        return self.name.startswith("$")


@dataclass(slots=True)
class Ref(Node):
    """A reference: `head.a[b]`."""

    head: Term
    path: list[Term]


@dataclass(slots=True)
class Array(Node):
    """`[a, b]`."""

    items: list[Term]


@dataclass(slots=True)
class Set(Node):
    """`{a, b}` or `set()`."""

    items: list[Term]


@dataclass(slots=True)
class Object(Node):
    """`{a: b}`."""

    items: list[tuple[Term, Term]]


@dataclass(slots=True)
class ArrayComprehension(Node):
    """`[term | body]`."""

    term: Term
    body: Body


@dataclass(slots=True)
class SetComprehension(Node):
    """`{term | body}`."""

    term: Term
    body: Body


@dataclass(slots=True)
class ObjectComprehension(Node):
    """`{key: value | body}`."""

    key: Term
    value: Term
    body: Body


@dataclass(slots=True)
class Call(Node):
    """A call: of a builtin, of a function, or of the builtin behind an operator."""

    operator: Ref
    arguments: list[Term]


@dataclass(slots=True)
class Template(Node):
    """`$"text {term}"`: texts, scalars, and expressions that may be undefined."""

    parts: list[Scalar | Number | Expr]


@dataclass(slots=True)
class Some(Node):
    """`some x, y`: a declaration of variables."""

    names: list[Var]


@dataclass(slots=True)
class SomeIn(Node):
    """`some x in xs` or `some k, x in xs`: a call of `internal.member_2` or `internal.member_3`."""

    member: Call


@dataclass(slots=True)
class Every(Node):
    """`every k, x in xs { body }`."""

    key: Var | None
    value: Var
    domain: Term
    body: Body


@dataclass(slots=True)
class Not(Node):
    """`not { body }` or `not x` under `future.keywords.not`."""

    body: Body
    explicit: bool


@dataclass(slots=True)
class Logical(Node):
    """`a and b` or `a or b`.

    Attributes:
        operator: `and` or `or`.
        explicit: whether the left and the right operand are written in braces.
    """

    operator: str
    left: Body
    right: Body
    explicit: tuple[bool, bool]


@dataclass(slots=True)
class With(Node):
    """`with target as value`."""

    target: Ref
    value: Term


@dataclass(slots=True)
class Expr(Node):
    """One expression of a body.

    Attributes:
        generated: the resolver made it; the last argument of its call is the result.
        assigned: it was written with `:=`.
    """

    value: Term | Some | SomeIn | Every | Not | Logical
    negated: bool = False
    withs: list[With] = field(default_factory=list)
    generated: bool = field(default=False, compare=False)
    assigned: bool = field(default=False, compare=False)


@dataclass(slots=True)
class Head(Node):
    """The head of a rule.

    Attributes:
        ref: its name; what follows the first part may be any term.
        args: of a function; None for other rules.
        key: the element of a set that a multi-value rule contributes, or None.
        value: what the rule is, None for a multi-value rule.
        assigned: it is written `:=`.
        keywords: `if` and `contains`, where they are written.
    """

    ref: Ref
    args: list[Term] | None = None
    key: Term | None = None
    value: Term | None = None
    assigned: bool = False
    keywords: frozenset[str] = frozenset()
    implied_value: bool = False


@dataclass(slots=True)
class Rule(Node):
    """A rule: one head and one body, with the rules of its `else` in a chain."""

    head: Head
    body: Body
    default: bool = False
    otherwise: Rule | None = None
    implied_body: bool = False


@dataclass(slots=True)
class Import(Node):
    """An import; the path begins with `input`, `data`, `future` or `rego`."""

    path: Ref
    alias: str | None


@dataclass(slots=True)
class Module:
    """A parsed module.

    Attributes:
        version: 0 or 1; `import rego.v1` makes a module of version 0 one of version 1.
        package: as a reference below `data`.
    """

    source: ModuleText
    version: int
    package: Ref
    imports: list[Import]
    rules: list[Rule]
    comments: list[Comment]


Term = (
    Scalar
    | Number
    | Var
    | Ref
    | Array
    | Set
    | Object
    | ArrayComprehension
    | SetComprehension
    | ObjectComprehension
    | Call
    | Template
)
Body = list[Expr]
COMPREHENSIONS = (ArrayComprehension, SetComprehension, ObjectComprehension)
_LEAVES = frozenset((Scalar, Number, Var))

_FIELDS: dict[type[Node], tuple[str, ...]] = {}


def walk(node: object) -> Iterator[Node]:
    """Yield a node, or those of a list, and all below, each before its parts.

    Rules that share a head share its nodes, which come once for each.
    """
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Node):
            yield found
            waiting += [getattr(found, name) for name in _fields_of(type(found))]
        elif isinstance(found, list | tuple):
            waiting += reversed(found)


def parts_of(node: Node) -> Iterator[Node]:
    """Yield the nodes directly below a node."""
    for name in reversed(_fields_of(type(node))):
        yield from _nodes_in(getattr(node, name))


def _nodes_in(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _nodes_in(part)


def _fields_of(kind: type[Node]) -> tuple[str, ...]:
    """Return the names of the fields that can contain nodes, in reverse order."""
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(entry.name for entry in reversed(fields(kind)) if entry.name not in ("start", "end"))
    return _FIELDS[kind]


def root_name(ref: Ref) -> str:
    """Return the name of the variable that a reference begins with, an empty text where it begins with another term."""
    return ref.head.name if isinstance(ref.head, Var) else ""


def constant_names(path: Sequence[Term]) -> tuple[str, ...]:
    """Return the constant strings that a path begins with."""
    names = []
    for part in path:
        if not (isinstance(part, Scalar) and isinstance(part.value, str)):
            break
        names.append(part.value)
    return tuple(names)


def dotted_name(ref: Ref) -> str:
    """Return a reference as a name with dots, as far as its parts are constant texts; nothing where it has no name."""
    name = root_name(ref)
    return ".".join((name, *constant_names(ref.path))) if name else ""


def constant_term(value: Value, start: int, end: int) -> Term:
    """Return a JSON value as a term."""
    if isinstance(value, dict):
        pairs = [(constant_term(key, start, end), constant_term(item, start, end)) for key, item in value.items()]
        return Object(start, end, pairs)
    if isinstance(value, list):
        return Array(start, end, [constant_term(item, start, end) for item in value])
    return Number(start, end, number_text(value)) if is_number(value) else Scalar(start, end, value)


def children_of(term: Term) -> Sequence[Term]:
    """Return the terms directly inside of a term; none for a comprehension."""
    match term:
        case Ref():
            return (term.head, *term.path)
        case Call():
            return term.arguments
        case Array() | Set():
            return term.items
        case Object():
            return [part for item in term.items for part in item]
    return ()


def results_of(term: ArrayComprehension | SetComprehension | ObjectComprehension) -> list[Term]:
    """Return the terms of a comprehension that get their values from its body."""
    return [term.key, term.value] if isinstance(term, ObjectComprehension) else [term.term]


def walk_terms(term: Term, *, in_comprehensions: bool = True) -> Iterator[Term]:
    """Yield a term and those inside of it, but for bodies of comprehensions.

    Args:
        term: of a resolved body.
        in_comprehensions: yield the results of comprehensions, too.
    """
    waiting = [term]
    while waiting:
        found = waiting.pop()
        yield found
        if type(found) in _LEAVES:
            continue
        if not isinstance(found, COMPREHENSIONS):
            children = children_of(found)[::-1]
            spend(len(children))
            waiting += children
        elif in_comprehensions:
            waiting += results_of(found)[::-1]


def variables_of(term: Term) -> Iterator[Var]:
    """Yield the variables of a term, but for those of comprehensions."""
    return (found for found in walk_terms(term, in_comprehensions=False) if isinstance(found, Var))


def pattern_variables(term: Term) -> Iterator[Var]:
    """Yield the variables that a pattern may bind: not those of sets, of keys of objects and of heads of references."""
    match term:
        case Var():
            yield term
        case Array(items=parts) | Ref(path=parts):
            for part in parts:
                yield from pattern_variables(part)
        case Object():
            for _, part in term.items:
                yield from pattern_variables(part)


class CoveredPlace(NamedTuple):
    """A head or an expression, for coverage.

    Attributes:
        offset: where it begins in its module; the compiler reports it under this number.
        lines: those that its text is on.
        is_required: whether it counts as missed where nothing evaluates it; a declaration does not.
    """

    offset: int
    lines: range
    is_required: bool = True


def covered_places(module: Module) -> Iterator[CoveredPlace]:
    """Yield what coverage counts, as OPA does: heads and expressions, but not the body of a rule that has none."""
    line_of = module.source.position
    rules = [node for node in walk(module.rules) if isinstance(node, Rule)]
    implied = {id(expression) for rule in rules if rule.implied_body for expression in rule.body}
    for rule in rules:
        # A further body of a rule begins behind the head, which counts with the first one.
        end = max(node.end - 1 for node in (rule.head, rule.head.key, rule.head.value) if node is not None)
        last = max(end, rule.start) if rule.start <= rule.head.start else rule.start
        yield CoveredPlace(rule.start, range(line_of(rule.start)[0], line_of(last)[0] + 1))
    for node in walk(module.rules):
        if isinstance(node, Expr) and not (node.generated or id(node) in implied or isinstance(node.value, Some)):
            lines = range(line_of(node.start)[0], line_of(max(node.start, node.end - 1))[0] + 1)
            yield CoveredPlace(node.start, lines, not isinstance(node.value, SomeIn))


def lines_of(module: Module) -> set[int]:
    """Return the lines on which an expression or a head begins, for tools that count whole lines."""
    return {place.lines[0] for place in covered_places(module) if place.is_required}
