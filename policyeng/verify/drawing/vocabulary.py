"""What the policies of a bundle speak of: the values that make a difference at the places they look at.

Nothing is written for one policy. The values come from its header (`where`, defaults of parameters), from the text of
its Rego and of the modules it imports (constants, and the tables of `data.facts` that it reads), from the constants of
its Python and of the functions of `policyeng.facts` that it calls (with the tables that those ask the catalogue for),
and from what stands at its pointers in the baselines and in the cases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from policyeng.bundle import Bundle, Policy
from policyeng.evaluation.pointers import has_value, value_at
from policyeng.models import Denial, JsonObject, Unknown
from policyeng.strict.json_pointer import keys_of
from policyeng.verify.drawing.edits import Json
from policyeng.verify.drawing.python_words import LONGEST, code_of
from policyeng.verify.drawing.reads import pointer_of, reads_of

_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*+)"|"(?:[^"\\\n]|\\.)*+')  # with what is never closed, read once
_RAW = re.compile(r"`([^`\n]*)`")
_NUMBER = re.compile(r"(?<![\w.\"])-?\d+(?:\.\d+)?(?![\w.\"])")
_IMPORT = re.compile(r"\bdata\.((?:\w+\.)*\w+)")
_TABLE = re.compile(r"\bdata\.facts\.(\w+)")
_PACKAGE = re.compile(r"^package[ \t]+([\w.]+)", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
#: By what `input` is, where the judged document and its workspace stand in it, and how pointers into them begin.
_ROOTS: Mapping[str, Sequence[tuple[tuple[str, ...], str]]] = {
    "policy": ((("resource",), ""), (("workspace",), "workspace:")),
    "document": (((), ""),),
    "review": ((("review", "object"), ""),),
}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Words:
    """What one policy speaks of.

    Attributes:
        pointers: what it looks at: `inspects` and what its own Rego reads; of a policy that judges documents, in them.
        narrowing: the pointers of what narrows it.
        own: texts and numbers of its own Rego or Python and of its header.
        borrowed: those of the modules that it imports and of the functions that it calls.
        tables: the names that the tables of facts have which it reads, one tuple per table.
        near: per pointer, the constants that its Rego has beside it.
        standing: per pointer, what stands there in baselines and cases.
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
    """What a bundle speaks of: by policy id, and the moments at which its facts change."""

    words: Mapping[str, Words]
    moments: tuple[datetime, ...]


def vocabulary_of(bundle: Bundle, resources: Iterable[JsonObject]) -> Vocabulary:
    """The vocabulary of a bundle; `resources` are those of its baselines and cases."""
    sources: dict[str, str] = {}
    for _, source in bundle.modules:
        for package in _PACKAGE.findall(source):
            sources[package] = f"{sources.get(package, '')}\n{_COMMENT.sub('', source)}"
    known = list(resources)
    standing = _Standing(known)
    words = {policy.id: _words(policy, bundle, sources, standing) for policy in bundle.policies}
    return Vocabulary(words, tuple(_moments(bundle)))


def _words(policy: Policy, bundle: Bundle, sources: Mapping[str, str], standing: _Standing) -> Words:
    texts = list(_texts(policy, sources))
    tables = bundle.data.get("facts", {})
    code = code_of(policy)
    read = sorted({name for text in texts for name in _TABLE.findall(text)} | set(code.asked).intersection(tables))
    near = _near(policy, texts[:1])
    pointers = tuple(dict.fromkeys([*policy.header.inspects, *_further(policy, near)]))
    narrowing = tuple(dict.fromkeys(pointer for judged in policy.header.judges for pointer in judged.where))
    own = [*_stated(policy), *(word for text in texts[:1] for word in _constants(text)), *_less(code.own, pointers)]
    return Words(
        pointers=pointers,
        narrowing=narrowing,
        own=_distinct(own),
        borrowed=_distinct([*(word for text in texts[1:] for word in _constants(text)), *code.borrowed]),
        tables=tuple(tuple(tables[name]) for name in read if isinstance(tables.get(name), dict) and tables[name]),
        near=near,
        standing={pointer: standing.at(pointer) for pointer in (*pointers, *narrowing)},
    )


def _less(words: Iterable[Json], pointers: Iterable[str]) -> Iterator[Json]:
    """The words of code without those that lead to places or name parts of a denial: nothing is compared with them."""
    keys = {key for pointer in pointers for key in keys_of(pointer)} | {*Denial.model_fields, *Unknown.model_fields}
    return (word for word in words if not isinstance(word, str) or not (word in keys or word.startswith("/")))


def _near(policy: Policy, texts: Iterable[str]) -> dict[str, tuple[Json, ...]]:
    """By pointer, the constants that a policy has beside what it reads there."""
    found: dict[str, list[Json]] = {}
    for text in texts:
        for read in reads_of(text):
            for root, prefix in _ROOTS[policy.input_form]:
                if read.path[: len(root)] == root and len(read.path) > len(root):
                    pointer = prefix + pointer_of(read.path[len(root) :])
                    found.setdefault(pointer, []).extend(word for word in read.near if _is_word(word))
    return {pointer: _distinct(words) for pointer, words in found.items()}


def _further(policy: Policy, near: Mapping[str, tuple[Json, ...]]) -> Iterator[str]:
    """What Rego reads and `inspects` does not say; what lies above something else that is read is none of it."""
    known = {*policy.header.inspects, *near}
    for pointer in near:
        if not any(other.startswith(f"{pointer}/") for other in known):
            yield pointer


def _distinct(words: Iterable[Json]) -> tuple[Json, ...]:
    return tuple({json.dumps(word, sort_keys=True): word for word in words}.values())


def _texts(policy: Policy, sources: Mapping[str, str]) -> Iterator[str]:
    """The module of a policy and those that it imports, without comments; `input` and `data` paths name packages."""
    waiting = [rule.removeprefix("data.").rpartition(".")[0] for _, rule in policy.rules]
    seen: set[str] = set()
    while waiting:
        package = waiting.pop()
        if package in seen:
            continue
        seen.add(package)
        if package in sources:
            text = sources[package]
            yield text
            waiting += [name for name in _IMPORT.findall(text) if name in sources]


def _constants(text: str) -> Iterator[Json]:
    for found in _TEXT.findall(text):
        try:
            constant = json.loads(f'"{found}"')
        except ValueError:
            continue
        if _is_word(constant):
            yield constant
    yield from filter(_is_word, _RAW.findall(text))
    yield from (json.loads(found) for found in _NUMBER.findall(_TEXT.sub("", text)))


def _is_word(constant: Json) -> bool:
    """Whether a constant is no message or explanation."""
    return not isinstance(constant, str) or (len(constant) <= LONGEST and constant.count(" ") < 3)


def _stated(policy: Policy) -> Iterator[Json]:
    for judged in policy.header.judges:
        for allowed in judged.where.values():
            yield from allowed
    for default in policy.header.defaults.values():
        yield from default if isinstance(default, list) else [default]


class _Standing:
    """What stands at pointers in known resources; asked for once per pointer."""

    def __init__(self, known: Iterable[JsonObject]) -> None:
        self._known = list(known)
        self._found: dict[str, tuple[Json, ...]] = {}

    def at(self, pointer: str) -> tuple[Json, ...]:
        """Every distinct value at a pointer, in the order of the resources."""
        own = pointer.removeprefix("workspace:")
        if own not in self._found:
            values = [value_at(resource, own) for resource in self._known if has_value(resource, own)]
            self._found[own] = _distinct(values)  # type: ignore[arg-type]  # the documents are JSON
        return self._found[own]


def _moments(bundle: Bundle) -> Iterator[datetime]:
    """Every date that stands in a row of the facts, such as the retirement of a size."""
    tables = bundle.data.get("facts", {})
    rows = [row for table in tables.values() if isinstance(table, dict) for row in table.values()]
    texts = {value for row in rows if isinstance(row, dict) for value in row.values() if isinstance(value, str)}
    for text in sorted(texts):
        if _DATE.fullmatch(text):
            try:
                yield datetime.fromisoformat(text).replace(tzinfo=UTC)
            except ValueError:  # a 30th of February is no moment
                continue
