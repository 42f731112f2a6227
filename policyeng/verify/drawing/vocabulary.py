"""What the policies of a bundle speak of: the values that make a difference at the places they look at.

Nothing is written for one policy. The values come from its header (`where`, defaults of parameters), from the text of
its Rego and of the modules it imports (constants, and the tables of `data.facts` that it reads), from the constants of
its Python and of the functions of `policyeng.facts` that it calls (with the tables that those ask the catalogue for),
and from what stands at its pointers in the baselines and in the cases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import CodeType, FunctionType, ModuleType

from policyeng.bundle import Bundle, Policy
from policyeng.evaluation.pointers import has_value, value_at
from policyeng.facts import Facts
from policyeng.models import JsonObject
from policyeng.verify.drawing.edits import Json

_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_RAW = re.compile(r"`([^`\n]*)`")
_READ = re.compile(r"\binput\.(resource|workspace)((?:\.[A-Za-z_]\w*)+)")
_NUMBER = re.compile(r"(?<![\w.\"])-?\d+(?:\.\d+)?(?![\w.\"])")
_IMPORT = re.compile(r"\bdata\.((?:\w+\.)*\w+)")
_TABLE = re.compile(r"\bdata\.facts\.(\w+)")
_PACKAGE = re.compile(r"^package[ \t]+([\w.]+)", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
#: Longer constants are messages and explanations.
_LONGEST = 64
#: The package that Python policies share, as Rego policies share `lib`.
_LIBRARY = "policyeng.facts"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Words:
    """What one policy speaks of.

    Attributes:
        pointers: what it looks at: `inspects`, what its own Rego reads, and what narrows it.
        own: texts and numbers of its own Rego or Python and of its header.
        borrowed: those of the modules that it imports and of the functions that it calls.
        tables: the names that the tables of facts have which it reads, one tuple per table.
        standing: per pointer, what stands there in baselines and cases.
    """

    pointers: tuple[str, ...]
    own: tuple[Json, ...]
    borrowed: tuple[Json, ...]
    tables: tuple[tuple[str, ...], ...]
    standing: Mapping[str, tuple[Json, ...]]


@dataclass(frozen=True)
class Vocabulary:
    """What a bundle speaks of: by policy id, and the moments at which its facts change."""

    words: Mapping[str, Words]
    moments: tuple[datetime, ...]


def vocabulary_of(bundle: Bundle, resources: Iterable[JsonObject]) -> Vocabulary:
    """The vocabulary of a bundle; `resources` are those of its baselines and cases."""
    sources = {package: source for _, source in bundle.modules for package in _PACKAGE.findall(source)}
    known = list(resources)
    words = {policy.id: _words(policy, bundle, sources, known) for policy in bundle.policies}
    return Vocabulary(words, tuple(_moments(bundle)))


def _words(policy: Policy, bundle: Bundle, sources: Mapping[str, str], known: list[JsonObject]) -> Words:
    texts = list(_texts(policy, sources))
    tables = bundle.data.get("facts", {})
    code = _code(policy)
    read = sorted({name for text in texts for name in _TABLE.findall(text)} | set(code.asked).intersection(tables))
    pointers = tuple(dict.fromkeys(_pointers(policy, texts[:1])))
    standing = {pointer: tuple(_standing(pointer, known)) for pointer in pointers}
    return Words(
        pointers=pointers,
        own=_distinct(
            [
                *_stated(policy),
                *(word for text in texts[:1] for word in _constants(text)),
                *code.own,
            ]
        ),
        borrowed=_distinct([*(word for text in texts[1:] for word in _constants(text)), *code.borrowed]),
        tables=tuple(tuple(tables[name]) for name in read if isinstance(tables.get(name), dict) and tables[name]),
        standing=standing,
    )


def _pointers(policy: Policy, texts: Iterable[str]) -> Iterator[str]:
    yield from policy.header.inspects
    for text in texts:
        for root, path in _READ.findall(text):
            pointer = path.replace(".", "/")
            if not any(f"{known}/".startswith(f"{pointer}/") for known in policy.header.inspects):
                yield pointer if root == "resource" else f"workspace:{pointer}"
    yield from (pointer for judged in policy.header.judges for pointer in judged.where)


def _distinct(words: Iterable[Json]) -> tuple[Json, ...]:
    return tuple({json.dumps(word): word for word in words}.values())


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
            text = _COMMENT.sub("", sources[package])
            yield text
            waiting += [name for name in _IMPORT.findall(text) if name in sources]


def _constants(text: str) -> Iterator[Json]:
    for found in _TEXT.findall(text):
        try:
            constant = json.loads(f'"{found}"')
        except ValueError:
            continue
        if len(constant) <= _LONGEST and constant.count(" ") < 3:
            yield constant
    yield from (found for found in _RAW.findall(text) if len(found) <= _LONGEST)
    yield from (json.loads(found) for found in _NUMBER.findall(_TEXT.sub("", text)))


@dataclass(frozen=True)
class _Code:
    """The constants of a Python policy and of the functions beside it, of shared functions, and of the catalogue's."""

    own: list[Json]
    borrowed: list[Json]
    asked: list[str]


def _code(policy: Policy) -> _Code:
    """What stands in the code of a Python policy that is in force; nothing of another one."""
    found = _Code([], [], [])
    if policy.python is None or policy.rules:
        return found
    judge = policy.python.judge
    beside = [*judge.__globals__.values(), policy.python.applies]
    waiting = [value for value in beside if isinstance(value, FunctionType) and value.__module__ == judge.__module__]
    for function in waiting:  # which grows while it is walked
        parts = list(_parts(function.__code__))
        words = [word for part in parts for constant in part.co_consts for word in _words_in(constant)]
        if function in _CATALOGUE.values():
            found.asked.extend(word for word in words if isinstance(word, str))
        elif function.__module__ == judge.__module__:
            found.own.extend(words)
        else:
            stated = [function.__globals__.get(name) for part in parts for name in part.co_names]
            found.borrowed.extend([*words, *(word for constant in stated for word in _words_in(constant))])
        waiting += [called for part in parts for called in _called(function, part) if called not in waiting]
    return found


def _parts(code: CodeType) -> Iterator[CodeType]:
    """A piece of code and those inside of it, such as comprehensions."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)


def _called(function: FunctionType, part: CodeType) -> Iterator[FunctionType]:
    """The functions of the library that a part of a function names, and what it asks `facts`, the catalogue."""
    known = [function.__globals__.get(name) for name in part.co_names]
    modules = [value for value in known if isinstance(value, ModuleType) and value.__name__.startswith(_LIBRARY)]
    known += [getattr(module, name, None) for module in modules for name in part.co_names]
    if function in _CATALOGUE.values() or "facts" in (*part.co_names, *part.co_varnames, *part.co_freevars):
        known += [_CATALOGUE.get(name) for name in part.co_names]
    for value in map(_unwrapped, known):
        if value is not None and value.__module__.startswith(_LIBRARY):
            yield value


def _unwrapped(value: object) -> FunctionType | None:
    """The function in a cached one or in a method; None for what is none."""
    value = getattr(value, "__wrapped__", None) or getattr(value, "func", None) or value
    return value if isinstance(value, FunctionType) else None


#: What the catalogue can be asked, by name.
_CATALOGUE = {name: function for name, value in vars(Facts).items() if (function := _unwrapped(value))}


def _words_in(constant: object) -> Iterator[Json]:
    if isinstance(constant, tuple | frozenset | dict):
        for member in (*constant, *constant.values()) if isinstance(constant, dict) else constant:
            yield from _words_in(member)
    is_word = isinstance(constant, str) and len(constant) <= _LONGEST and constant.count(" ") < 3
    if is_word or (isinstance(constant, int | float) and not isinstance(constant, bool)):
        yield constant  # type: ignore[misc]  # a text or a number


def _stated(policy: Policy) -> Iterator[Json]:
    for judged in policy.header.judges:
        for allowed in judged.where.values():
            yield from allowed
    for default in policy.header.defaults.values():
        yield from default if isinstance(default, list) else [default]


def _standing(pointer: str, known: Iterable[JsonObject]) -> Iterator[Json]:
    own = pointer.removeprefix("workspace:")
    seen: set[str] = set()
    for resource in known:
        if has_value(resource, own):
            value: Json = value_at(resource, own)  # type: ignore[assignment]  # the document is JSON
            text = json.dumps(value, sort_keys=True)
            if text not in seen:
                seen.add(text)
                yield value


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
