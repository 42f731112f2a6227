"""Collect the values that policies compare with, and observe what policies read of examples."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from types import CodeType, FunctionType, ModuleType
from typing import NamedTuple, TypeAlias

from msgspec.structs import fields

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.analysis import analysis_of
from policyeng.bundle.cases import DEFAULT_AS_OF, read_cases
from policyeng.bundle.rego_trees import aliases_of, names_read, trees_of
from policyeng.evaluation.pointers import has_value, value_at
from policyeng.facts import Facts
from policyeng.facts.computes import own_size
from policyeng.facts.words import get_inside
from policyeng.models import Denial, JsonObject
from policyeng.parsing.json_pointer import escaped, keys_of
from policyeng.rego.paths import split_package
from policyeng.rego.syntax import (
    Array,
    Call,
    Every,
    Expr,
    Module,
    Node,
    Number,
    Object,
    Ref,
    Rule,
    Scalar,
    Set,
    SomeIn,
    Var,
    dotted_name,
    parts_of,
    walk,
)
from policyeng.verify.generators.json_mutations import Json, copied, draw_boolean

#: Longer constants are messages and explanations.
LONGEST = 64
#: The package that Python policies share, as Rego policies share `lib`.
_LIBRARY = "policyeng.facts"


@dataclass(frozen=True)
class Code:
    """The constants of a Python policy and its functions, of shared functions, and of those of the catalog."""

    own: list[Json]
    borrowed: list[Json]
    lookups: list[str]


def code_of(policy: Policy) -> Code:
    """Return the constants in the code of an active Python policy; empty for other policies."""
    found = Code([], [], [])
    if policy.python is None or policy.rules:
        return found
    evaluate, applies = policy.python.functions
    available = [*evaluate.__globals__.values(), applies]
    waiting = [
        value for value in available if isinstance(value, FunctionType) and value.__module__ == evaluate.__module__
    ]
    for function in waiting:  # the loop appends to it
        parts = list(_parts(function.__code__))
        words = [word for part in parts for constant in part.co_consts for word in _words_in(constant)]
        if function in _CATALOGUE.values():
            found.lookups.extend(word for word in words if isinstance(word, str))
        elif function.__module__ == evaluate.__module__:
            found.own.extend(words)
        else:
            stated = [function.__globals__.get(name) for part in parts for name in part.co_names]
            found.borrowed.extend([*words, *(word for constant in stated for word in _words_in(constant))])
        waiting += [
            called for part in parts for called in _find_called_functions(function, part) if called not in waiting
        ]
    return found


def _parts(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those inside it, such as comprehensions."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)


def _find_called_functions(function: FunctionType, part: CodeType) -> Iterator[FunctionType]:
    """Yield the library functions that a code object refers to, and the methods of the catalog that it calls."""
    known = [function.__globals__.get(name) for name in part.co_names]
    modules = [value for value in known if isinstance(value, ModuleType) and value.__name__.startswith(_LIBRARY)]
    known += [getattr(module, name, None) for module in modules for name in part.co_names]
    if function in _CATALOGUE.values() or "facts" in (*part.co_names, *part.co_varnames, *part.co_freevars):
        known += [_CATALOGUE.get(name) for name in part.co_names]
    for value in map(_unwrap, known):
        if value is not None and value.__module__.startswith(_LIBRARY):
            yield value


def _unwrap(value: object) -> FunctionType | None:
    """Return the function inside a cached function or a method; None for other values."""
    value = getattr(value, "__wrapped__", None) or getattr(value, "func", None) or value
    return value if isinstance(value, FunctionType) else None


#: The methods of the catalog, by name.
_CATALOGUE = {name: function for name, value in vars(Facts).items() if (function := _unwrap(value))}


def _words_in(constant: object) -> Iterator[Json]:
    if isinstance(constant, tuple | frozenset | dict):
        for member in (*constant, *constant.values()) if isinstance(constant, dict) else constant:
            yield from _words_in(member)
    is_word = isinstance(constant, str) and len(constant) <= LONGEST and constant.count(" ") < 3
    if is_word or (isinstance(constant, int | float) and not isinstance(constant, bool)):
        yield constant  # type: ignore[misc]  # a text or a number


#: The longest list that is drawn for its length.
_LONGEST_LIST = 12
#: The longest chain of variables that is followed.
_STEPS = 4

_Path = tuple[str, ...]


class PolicyRead(NamedTuple):
    """A place in `input`, as the keys of its path (`*`: any member), and the constants near it."""

    path: _Path
    near: tuple[Json, ...]


def reads_of(trees: Sequence[Module]) -> Iterator[PolicyRead]:
    """Yield every place that the modules of a package read, once per condition."""
    variables = _variables(trees)
    bound = ((name, value) for name, value in _assignments(trees) if name not in variables and _is_constant(value))
    named = {name: tuple(constants_of([value])) for name, value in bound}
    for parts, decides in _conditions(trees):
        condition = _Condition(variables)
        for part in parts:
            condition.take(part)
        found = dict.fromkeys([*condition.fetched, *condition.paths])
        listed = [*condition.constants, *(word for name in condition.names for word in named.get(name, ()))]
        near = tuple(sorted(listed, key=lambda word: not isinstance(word, str)))
        if condition.has_logic or (decides and not near):
            near += (True, False)
        for path in found:
            yield PolicyRead(path, tuple(_lists(near)) if path in condition.counted else near)


def constants_of(nodes: object) -> Iterator[Json]:
    """Yield the quoted texts and the numbers of nodes, in order."""
    for node in walk(nodes):
        if isinstance(node, Number):
            yield json.loads(node.text)
        elif isinstance(node, Scalar) and isinstance(node.value, str) and node.end - node.start > len(node.value):
            yield node.value


@dataclass
class _Condition:
    """The variables and places in one condition.

    Attributes:
        variables: the variables for parts of `input`.
        fetched: the places that it reads with `object.get`.
        paths: the places that it reads in other ways.
        counted: the places whose members it counts.
    """

    variables: Mapping[str, _Path]
    fetched: list[_Path] = field(default_factory=list)
    paths: list[_Path] = field(default_factory=list)
    counted: set[_Path] = field(default_factory=set)
    constants: list[Json] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    has_logic: bool = False

    def take(self, node: Node) -> None:
        """Add the variables and places of a node, but not those of conditions inside it."""
        if isinstance(node, Scalar | Number):
            self._constant(node)
        elif isinstance(node, Var | Ref):
            self._reference(node)
        elif isinstance(node, Call):
            self._call(node)
        elif isinstance(node, Object):
            self._object(node)
        elif not isinstance(node, Expr):
            self._below(node)

    def _below(self, node: Node) -> None:
        for part in parts_of(node):
            self.take(part)

    def _object(self, node: Object) -> None:
        """Add the values; the keys, and the texts of a denial, are not compared with anything."""
        constants, has_logic = [*self.constants], self.has_logic
        for _, value in node.items:
            self.take(value)
        if any(_key(key) == "msg" for key, _ in node.items):
            self.constants, self.has_logic = constants, has_logic

    def _constant(self, node: Scalar | Number) -> None:
        if isinstance(node, Number):
            self.constants.append(json.loads(node.text))
        elif isinstance(node.value, str) and node.value:
            self.constants.append(node.value)
        elif isinstance(node.value, bool):
            self.has_logic = True

    def _reference(self, node: Var | Ref) -> None:
        root = node.head if isinstance(node, Ref) else node
        if isinstance(root, Var):
            self.names.append(root.name)
        else:
            self.take(root)
        if path := path_of(node, self.variables):
            self.paths.append(path)
        for part in node.path if isinstance(node, Ref) else ():
            if not isinstance(part, Scalar | Var):
                self.take(part)

    def _call(self, node: Call) -> None:
        name, arguments = dotted_name(node.operator), node.arguments
        if name == "count" and arguments and (path := path_of(arguments[0], self.variables)):
            self.counted.add(path)
        if name == "object.get" and len(arguments) == 3:
            path = path_of(node, self.variables)
            if path is not None:
                self.fetched.append(path)
                arguments = arguments[2:]
        for part in arguments:
            self.take(part)


def _conditions(trees: Iterable[Module]) -> Iterator[tuple[list[Node], bool]]:
    """Yield the nodes of each condition and head, and whether it decides an outcome, unlike parts of denials."""
    for node in walk([tree.rules for tree in trees]):
        if isinstance(node, Expr):
            yield list(parts_of(node)), True
        elif isinstance(node, Rule):
            yield [part for part in (node.head.key, node.head.value) if part is not None], node.head.key is None


def _assignments(trees: Iterable[Module]) -> Iterator[tuple[str, Node]]:
    """Yield the names that bodies and rules assign, with their values."""
    for rule in (rule for tree in trees for rule in tree.rules):
        head = rule.head
        if isinstance(head.ref.head, Var) and head.value is not None and head.args is None and not head.ref.path:
            yield head.ref.head.name, head.value
        for node in walk(rule):
            if isinstance(node, Call) and dotted_name(node.operator) in ("assign", "eq"):
                target, value = node.arguments
                if isinstance(target, Var):
                    yield target.name, value


def _list_members(trees: Iterable[Module]) -> Iterator[tuple[str, Node]]:
    """Yield the variables for members, with the collections."""
    for node in walk([tree.rules for tree in trees]):
        if isinstance(node, SomeIn) and isinstance(variable := node.member.arguments[-2], Var):
            yield variable.name, node.member.arguments[-1]
        elif isinstance(node, Every):
            yield node.value.name, node.domain


def _variables(trees: Sequence[Module]) -> dict[str, _Path]:
    """Return the places of variables; a name for several places has the first, which is good enough for generators."""
    known: dict[str, _Path] = {"input": ()}
    for tree in trees:
        roots = {name: path.split(".") for name, path in aliases_of(tree).items()}
        known |= {name: tuple(path) for name, (root, *path) in roots.items() if root == "input"}
    members, bound = list(_list_members(trees)), list(_assignments(trees))
    for _ in range(_STEPS):
        before = len(known)
        for name, holder in members:
            path = path_of(holder, known)
            if path is not None and name not in known:
                known[name] = (*path, "*")
        for name, value in bound:
            condition = _Condition(known)
            condition.take(value)
            path = next(iter([*condition.fetched, *condition.paths]), None)
            if path and name not in known:
                known[name] = path
        if len(known) == before:
            break
    return known


def path_of(node: Node, variables: Mapping[str, _Path]) -> _Path | None:
    """Return the place of a reference or a call of `object.get`; None if it is not in `input`."""
    if isinstance(node, Var):
        return variables.get(node.name)
    if isinstance(node, Call) and dotted_name(node.operator) == "object.get" and len(node.arguments) == 3:
        holder, key, _ = node.arguments
        # A computed key can be one key or a path of several.
        parts = key.items if isinstance(key, Array) else [key] if isinstance(key, Scalar) else []
    elif isinstance(node, Ref):
        holder, parts = node.head, node.path
    else:
        return None
    path = path_of(holder, variables)
    return None if path is None else (*path, *map(_key, parts))


def _key(part: Node) -> str:
    return part.value if isinstance(part, Scalar) and isinstance(part.value, str) else "*"


def _is_constant(value: Node) -> bool:
    return all(isinstance(node, Scalar | Number | Array | Set | Object) for node in walk(value))


def _lists(near: Iterable[Json]) -> Iterator[Json]:
    """Yield lists about as long as some numbers."""
    for number in near:
        if isinstance(number, int) and not isinstance(number, bool) and number <= _LONGEST_LIST:
            for length in range(max(0, number - 1), number + 2):
                yield [f"x{position}" for position in range(length)]


def pointer_of(path: _Path) -> str:
    """Return a path as a JSON Pointer."""
    return "".join(f"/{escaped(key)}" for key in path)


#: The paths of the evaluated document and its workspace, and the prefix of pointers into them, by the form of `input`.
_ROOTS: Mapping[str, Sequence[tuple[tuple[str, ...], str]]] = {
    "policy": ((("resource",), ""), (("workspace",), "workspace:")),
    "document": (((), ""),),
    "review": ((("review", "object"), ""),),
}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Words:
    """The vocabulary of one policy.

    Attributes:
        pointers: `inspects` and what its own Rego reads; for a policy that evaluates documents, pointers into these.
        narrowing: the pointers of its `where`.
        own: the texts and numbers of its own Rego or Python and of its header.
        borrowed: those of the modules that it imports and the functions that it calls.
        tables: the names in the tables of facts that it reads, one tuple per table.
        near: the constants near each pointer in its Rego.
        standing: the values at each pointer in baselines and cases.
    """

    pointers: tuple[str, ...]
    narrowing: tuple[str, ...]
    own: tuple[Json, ...]
    borrowed: tuple[Json, ...]
    tables: tuple[tuple[str, ...], ...]
    near: Mapping[str, tuple[Json, ...]]
    standing: Mapping[str, tuple[Json, ...]]


@dataclass(frozen=True)
class Vocabulary:
    """The vocabulary of a bundle by policy id, and the moments at which its facts change."""

    words: Mapping[str, Words]
    moments: tuple[datetime, ...]


def vocabulary_of(bundle: Bundle, resources: Iterable[JsonObject]) -> Vocabulary:
    """Return the vocabulary of a bundle; `resources` are those of its baselines and cases."""
    known = list(resources)
    standing, packages = _KnownValues(known), _Packages(bundle)
    words = {policy.id: _words(policy, bundle, standing, packages) for policy in bundle.policies}
    return Vocabulary(words, tuple(_moments(bundle)))


def _words(policy: Policy, bundle: Bundle, standing: _KnownValues, known: _Packages) -> Words:
    packages = list(known.of(policy))
    trees = packages[0].trees if packages else []
    tables = bundle.data.get("facts", {})
    code = code_of(policy)
    named = {read for package in packages for read in package.named}
    looked_up = {read.split(".")[2] for read in named if read.startswith("data.facts.")}
    read = sorted(looked_up | set(code.lookups).intersection(tables))
    near = _find_near_constants(policy, trees)
    narrowing = tuple(dict.fromkeys(pointer for declared in policy.header.judges for pointer in declared.where))
    cases = read_cases(policy)
    # A resource without any properties is not useful.
    left_out = {*narrowing, "/properties"}
    pinned = [pointer for pointer in (cases.absent if cases else ()) if pointer not in left_out]
    inspected = (*policy.header.inspects, *pinned)
    pointers = tuple(dict.fromkeys([*inspected, *_find_unstated_pointers(inspected, near)]))
    constants = packages[0].constants if packages else ()
    own = [*_stated(policy), *constants, *_drop_keys(code.own, pointers)]
    return Words(
        pointers=pointers,
        narrowing=narrowing,
        own=_deduplicate(own),
        borrowed=_deduplicate([*(word for package in packages[1:] for word in package.constants), *code.borrowed]),
        tables=tuple(tuple(tables[name]) for name in read if isinstance(tables.get(name), dict) and tables[name]),
        near=near,
        standing={pointer: standing.at(pointer) for pointer in (*pointers, *narrowing)},
    )


def _drop_keys(words: Iterable[Json], pointers: Iterable[str]) -> Iterator[Json]:
    """Yield the words of code, without keys of paths and parts of denials, which nothing is compared with."""
    keys = {key for pointer in pointers for key in keys_of(pointer)} | {entry.name for entry in fields(Denial)}
    return (word for word in words if not isinstance(word, str) or not (word in keys or word.startswith("/")))


def _find_near_constants(policy: Policy, trees: Sequence[Module]) -> dict[str, tuple[Json, ...]]:
    """Return the constants near each pointer that a policy reads."""
    found: dict[str, list[Json]] = {}
    for read in reads_of(trees):
        for root, prefix in _ROOTS[policy.input_form]:
            if read.path[: len(root)] == root and len(read.path) > len(root):
                pointer = prefix + pointer_of(read.path[len(root) :])
                found.setdefault(pointer, []).extend(word for word in read.near if _is_word(word))
    return {pointer: _deduplicate(words) for pointer, words in found.items()}


def _find_unstated_pointers(inspected: Iterable[str], near: Mapping[str, tuple[Json, ...]]) -> Iterator[str]:
    """Yield the pointers that Rego reads and the header does not state, except for those above others."""
    known = {*inspected, *near}
    for pointer in near:
        if not any(other.startswith(f"{pointer}/") for other in known):
            yield pointer


def _deduplicate(words: Iterable[Json]) -> tuple[Json, ...]:
    return tuple({json.dumps(word, sort_keys=True): word for word in words}.values())


class _Package(NamedTuple):
    """A package of a bundle.

    Attributes:
        trees: its modules.
        named: what it reads of `input` and `data`.
        constants: its texts that are not messages, then its numbers.
        refers: the packages that it refers to.
    """

    trees: Sequence[Module]
    named: frozenset[str]
    constants: Sequence[Json]
    refers: Sequence[str]


class _Packages:
    """The packages of a bundle, each analyzed once: many policies refer to the same ones."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._names = {analysis_of(source, path in bundle.rego_v0, path).package for path, source in bundle.modules}
        self._found: dict[str, _Package] = {}

    def of(self, policy: Policy) -> Iterator[_Package]:
        """Yield a policy's package, then those that it refers to, directly or not."""
        waiting = [rule.removeprefix("data.").rpartition(".")[0] for _, rule in policy.rules]
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in self._names and name not in seen:
                seen.add(name)
                package = self._named(name)
                yield package
                waiting += package.refers

    def _named(self, name: str) -> _Package:
        if name not in self._found:
            trees = trees_of(self._bundle.modules, self._bundle.rego_v0, name)
            named = [list(names_read(tree)) for tree in trees]
            reads = [
                read
                for tree, own in zip(trees, named, strict=True)
                for read in dict.fromkeys([*aliases_of(tree).values(), *own])
            ]
            refers = [other for read in reads for other in self._names if _is_of(read, other)]
            everything = frozenset(read for own in named for read in own)
            self._found[name] = _Package(trees, everything, list(_constants(trees)), refers)
        return self._found[name]


def _is_of(read: str, package: str) -> bool:
    return f"{read}.".startswith(f"data.{'.'.join(split_package(package))}.")


def _constants(trees: Iterable[Module]) -> Iterator[Json]:
    """Yield the texts of modules that are not messages, then the numbers."""
    found = filter(_is_word, constants_of([tree.rules for tree in trees]))
    yield from sorted(found, key=lambda word: not isinstance(word, str))


def _is_word(constant: Json) -> bool:
    """Check whether a constant is not a message or explanation."""
    return not isinstance(constant, str) or (len(constant) <= LONGEST and constant.count(" ") < 3)


def _stated(policy: Policy) -> Iterator[Json]:
    for declared in policy.header.judges:
        for allowed in declared.where.values():
            yield from allowed
    for default in policy.header.defaults.values():
        yield from default if isinstance(default, list) else [default]


class _KnownValues:
    """The values at pointers in known resources, cached by pointer."""

    def __init__(self, known: Iterable[JsonObject]) -> None:
        self._known = list(known)
        self._found: dict[str, tuple[Json, ...]] = {}

    def at(self, pointer: str) -> tuple[Json, ...]:
        """Return the distinct values at a pointer, in the order of the resources."""
        own = pointer.removeprefix("workspace:")
        if own not in self._found:
            values = [value_at(resource, own) for resource in self._known if has_value(resource, own)]
            self._found[own] = _deduplicate(values)  # type: ignore[arg-type]  # the documents are JSON
        return self._found[own]


def _moments(bundle: Bundle) -> Iterator[datetime]:
    """Yield every date in a row of the facts, such as the retirement of a size."""
    tables = bundle.data.get("facts", {})
    rows = [row for table in tables.values() if isinstance(table, dict) for row in table.values()]
    texts = {value for row in rows if isinstance(row, dict) for value in row.values() if isinstance(value, str)}
    for text in sorted(texts):
        if _DATE.fullmatch(text):
            try:
                yield datetime.fromisoformat(text).replace(tzinfo=UTC)
            except ValueError:  # for example, February 30
                continue


#: The required members, by kind.
KINDS = {
    "quotas": ("scope", "region", "family", "limitVCpus"),
    "metrics": ("resourceId", "name", "unit"),
    "principals": ("id",),
}
#: The entries of one kind in one case.
Entries: TypeAlias = Sequence[JsonObject]
_TIMES = ("from", "to")
_SECONDS = (0.0, 1.0, -1.0, 0.000001, -0.000001)
_DAYS = (0, 0, 0, 1, -1, 7, -7, 14, -14, 30, -30)


@dataclass(frozen=True, slots=True)
class Sight:
    """The requirements for observations.

    Attributes:
        known: the entries of each case, by kind.
        subjects: the ids of the resources that the observations are about.
        numbers: the numbers that the policies compare with.
        as_of: the evaluation clock; the entries of cases refer to the clock of cases.
    """

    known: dict[str, list[Entries]]
    subjects: Sequence[str]
    numbers: Sequence[float]
    as_of: datetime


def draw_observations(random: Random, document: JsonObject, sight: Sight, facts: Facts) -> JsonObject:
    """Return quotas, metrics and principals for a document, from up to four cases, or in addition to its own."""
    made: JsonObject = {}
    for kind in KINDS:
        sets = [entries for entries in sight.known.get(kind, ()) if entries]
        drawn: list[JsonObject] = [entry for entry in document.get(kind, ()) if draw_boolean(random, 0.7)]
        for _ in range(random.randrange(5) if sets else 0):
            entries = [{**entry} for entry in random.choice(sets)]
            _move(random, entries, _list_references(kind, document, sight, facts))
            drawn += [_change_entry(random, kind, entry, sight) for entry in entries if draw_boolean(random, 0.9)]
        made[kind] = drawn
    return made


def _list_references(kind: str, document: JsonObject, sight: Sight, facts: Facts) -> dict[str, Sequence[str]]:
    """Return the values for members that refer to resources of the snapshot, by member."""
    resources: list[JsonObject] = document["resources"]
    if kind == "metrics":
        return {"resourceId": sight.subjects or [str(one["id"]) for one in resources]}
    if kind == "principals":
        holders = [get_inside(one, "properties", "principalId") for one in resources]
        return {"id": [holder for holder in holders if isinstance(holder, str) and holder]}
    sizes = [own.size for one in resources if (own := own_size(one)) is not None and isinstance(own.size, str)]
    return {"family": [known.family for size in sizes if (known := facts.size(size)) is not None]}


def _move(random: Random, entries: list[JsonObject], homes: dict[str, Sequence[str]]) -> None:
    """Move entries to resources of the snapshot; those about one resource stay together."""
    for member, values in homes.items():
        news = {entry[member]: random.choice(values) for entry in entries} if values else {}
        if draw_boolean(random, 0.2):
            news = {}
        for entry in entries:
            entry[member] = news.get(entry[member], entry[member])


def _change_entry(random: Random, kind: str, entry: JsonObject, sight: Sight) -> JsonObject:
    """Return an entry at the requested clock, with up to two of its members changed."""
    moved = sight.as_of - DEFAULT_AS_OF
    for name in _TIMES:
        if isinstance(entry.get(name), str):
            entry[name] = _shift(entry[name], moved)
    while draw_boolean(random, 0.4):
        name = random.choice(sorted(entry))
        if name not in KINDS[kind] and draw_boolean(random, 0.2):
            del entry[name]
            continue
        entry[name] = _draw_near(random, name, entry[name], sight)
    return entry


def _draw_near(random: Random, name: str, value: Json, sight: Sight) -> Json:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        near = random.choice((value + 1, max(0, value - 1), 0, value, *sight.numbers))
        return max(0, int(near)) if name == "limitVCpus" else near
    if not isinstance(value, str):
        return copied(value)
    if name in _TIMES:
        return _shift(value, timedelta(days=random.choice(_DAYS), seconds=random.choice(_SECONDS)))
    return random.choice((value, value.upper(), value.lower(), value.title(), f"{value} ", f"{value}2"))


def _shift(text: str, by: timedelta) -> str:
    """Return a moment later or earlier, unchanged at the end of the calendar."""
    try:
        return (datetime.fromisoformat(text) + by).isoformat()
    except OverflowError:
        return text
