"""Collect the values that policies compare with, and observe what policies read of examples."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from random import Random
from typing import NamedTuple, TypeAlias

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.analysis import analysis_of
from policyeng.bundle.cases import DEFAULT_AS_OF, read_cases
from policyeng.bundle.rego_trees import aliases_of, names_read, trees_of
from policyeng.evaluation.pointers import has_value, value_at
from policyeng.facts import Facts
from policyeng.facts.computes import own_size
from policyeng.facts.words import get_inside
from policyeng.models import Denial, JsonObject
from policyeng.parsing.json_pointer import keys_of
from policyeng.rego.syntax import Module
from policyeng.verify.generators.json_mutations import Json, copied, draw_boolean
from policyeng.verify.generators.policy_paths import LONGEST, code_of, constants_of, pointer_of, reads_of

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
    asked = {read.split(".")[2] for read in named if read.startswith("data.facts.")}
    read = sorted(asked | set(code.asked).intersection(tables))
    near = _find_near_constants(policy, trees)
    narrowing = tuple(dict.fromkeys(pointer for judged in policy.header.judges for pointer in judged.where))
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
            asked = [
                read
                for tree, own in zip(trees, named, strict=True)
                for read in dict.fromkeys([*aliases_of(tree).values(), *own])
            ]
            refers = [other for read in asked for other in self._names if _is_of(read, other)]
            everything = frozenset(read for own in named for read in own)
            self._found[name] = _Package(trees, everything, list(_constants(trees)), refers)
        return self._found[name]


def _is_of(read: str, package: str) -> bool:
    return f"{read}.".startswith(f"data.{package}.")


def _constants(trees: Iterable[Module]) -> Iterator[Json]:
    """Yield the texts of modules that are not messages, then the numbers."""
    found = filter(_is_word, constants_of([tree.rules for tree in trees]))
    yield from sorted(found, key=lambda word: not isinstance(word, str))


def _is_word(constant: Json) -> bool:
    """Check whether a constant is not a message or explanation."""
    return not isinstance(constant, str) or (len(constant) <= LONGEST and constant.count(" ") < 3)


def _stated(policy: Policy) -> Iterator[Json]:
    for judged in policy.header.judges:
        for allowed in judged.where.values():
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
