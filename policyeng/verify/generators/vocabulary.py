"""The vocabulary of the policies of a bundle: the values that can change outcomes at the places that they read.

Nothing is specific to one policy. The values come from its header (`where`, defaults of parameters), from the text of
its Rego and of the modules it imports (constants, and the tables of `data.facts` that it reads), from the constants of
its Python and of the functions of `policyeng.facts` that it calls (with the tables of the catalog that those read),
and from the values at its pointers in the baselines and in the cases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.analysis import analysis_of
from policyeng.bundle.cases import read_cases
from policyeng.bundle.rego_trees import aliases_of, names_read, trees_of
from policyeng.evaluation.pointers import has_value, value_at
from policyeng.models import Denial, JsonObject
from policyeng.parsing.json_pointer import keys_of
from policyeng.rego.syntax import Module
from policyeng.verify.generators.json_mutations import Json
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
    standing = _KnownValues(known)
    words = {policy.id: _words(policy, bundle, standing) for policy in bundle.policies}
    return Vocabulary(words, tuple(_moments(bundle)))


def _words(policy: Policy, bundle: Bundle, standing: _KnownValues) -> Words:
    packages = list(_packages(policy, bundle))
    trees = packages[0] if packages else []
    tables = bundle.data.get("facts", {})
    code = code_of(policy)
    named = {read for package in packages for tree in package for read in names_read(tree)}
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
    own = [*_stated(policy), *_constants(trees), *_drop_keys(code.own, pointers)]
    return Words(
        pointers=pointers,
        narrowing=narrowing,
        own=_deduplicate(own),
        borrowed=_deduplicate([*(word for package in packages[1:] for word in _constants(package)), *code.borrowed]),
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


def _packages(policy: Policy, bundle: Bundle) -> Iterator[list[Module]]:
    """Yield the modules of a policy's package, then those of the packages that it refers to, directly or not."""
    packages = {analysis_of(source, path in bundle.rego_v0, path).package for path, source in bundle.modules}
    waiting = [rule.removeprefix("data.").rpartition(".")[0] for _, rule in policy.rules]
    seen: set[str] = set()
    while waiting:
        package = waiting.pop()
        if package in seen:
            continue
        seen.add(package)
        if package in packages:
            trees = trees_of(bundle.modules, bundle.rego_v0, package)
            yield trees
            for tree in trees:
                named = [*aliases_of(tree).values(), *names_read(tree)]
                waiting += [name for read in dict.fromkeys(named) for name in packages if _is_of(read, name)]


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
