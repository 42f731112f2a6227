"""What Rego reads of its `input`, and the constants that stand beside it: found in the text, for drawing alone.

Variables that stand for a part of `input` are followed (`:=`, `some ... in`, `every ... in`, `object.get`); what a
function is called with is not. A place that is missed here is drawn less often, and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from policyeng.strict.json_pointer import escaped
from policyeng.verify.drawing.edits import Json

_PART = r'(?:\.[A-Za-z_]\w*|\["[^"\n]*"\]|\[\w+\])'
_REFERENCE = re.compile(rf"(?<![\w.\"])([A-Za-z_]\w*)({_PART}*)")
_PARTS = re.compile(r'\.(\w+)|\["([^"\n]*)"\]|\[(\w+)\]')
_GET = re.compile(rf'object\.get\(\s*([A-Za-z_]\w*{_PART}*)\s*,\s*(\[[^\]\n]{{0,400}}\]|"[^"\n]*")')
_BOUND = re.compile(r"\b(\w+)\s*:=\s*(.+)")
#: Constants under a name: `least := 90`, `allowed := {"a", "b"}`.
_NAMED = re.compile(r"^\s*(\w+)\s*:=\s*([\[{]?\s*(?:\"[^\"\n]*\"|-?\d)[^a-z(]*(?:\"[^\"\n]*\"[^a-z(]*)*)$")
_NAME = re.compile(r"[A-Za-z_]\w*")
_MEMBER = re.compile(rf"\b(?:some|every)\s+(?:\w+\s*,\s*)?(\w+)\s+in\s+([A-Za-z_]\w*{_PART}*)")
_WORDS = re.compile(r'"((?:[^"\\\n]|\\.)*+)"|"(?:[^"\\\n]|\\.)*+')  # with what is never closed, read once
_RAW = re.compile(r"`([^`\n]*)`")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
_COUNTED = re.compile(rf"\bcount\(\s*([A-Za-z_]\w*{_PART}*)\s*\)")
_LOGIC = re.compile(r"\b(?:true|false)\b")
#: Where one condition of a line ends and the next begins; a head says what is denied, and no condition.
_CONDITIONS = re.compile(r";|\bif\b")
#: A list that is drawn for its length is no longer than this.
_LONGEST_LIST = 12
#: What stands for a part of `input` through so many variables is found.
_STEPS = 4

_Path = tuple[str, ...]


class Read(NamedTuple):
    """A place in `input`, as the keys that lead there (`*`: any member), and the constants beside it."""

    path: _Path
    near: tuple[Json, ...]


def reads_of(text: str) -> Iterator[Read]:
    """Every place that a module without comments reads, once per condition that does."""
    lines = [part for line in text.splitlines() for part in _CONDITIONS.split(line) if part.strip()]
    variables = _variables(lines)
    named = {name: value for line in lines for name, value in _NAMED.findall(line) if name not in variables}
    for line in lines:
        found = dict.fromkeys(_paths(line, variables))
        said = " ".join([line, *(named[word] for word in _NAME.findall(line) if word in named)])
        near = tuple(_constants(said)) if found else ()
        counted = {path for name in _COUNTED.findall(line) if (path := _path_of(name, variables))}
        for path in found:
            yield Read(path, tuple(_lists(near)) if path in counted else near)


def _variables(lines: Iterable[str]) -> dict[str, _Path]:
    """What variables stand for; one name for several places stands for the first, which drawing can live with."""
    known: dict[str, _Path] = {"input": ()}
    given = [found.groups() for line in lines for found in _MEMBER.finditer(line)]
    bound = [found.groups() for line in lines for found in _BOUND.finditer(line)]
    for _ in range(_STEPS):
        before = len(known)
        for name, holder in given:
            path = _path_of(holder, known)
            if path is not None and name not in known:
                known[name] = (*path, "*")
        for name, value in bound:
            path = next(iter(_paths(value, known)), None)
            if path and name not in known:
                known[name] = path
        if len(known) == before:
            break
    return known


def _paths(line: str, variables: Mapping[str, _Path]) -> Iterator[_Path]:
    """The places that a piece of text names, those of `object.get` first."""
    for holder, key in _GET.findall(line):
        path = _path_of(holder, variables)
        if path is not None:
            yield (*path, *_WORDS.findall(key))
    for found in _REFERENCE.finditer(_GET.sub("", line)):
        path = _path_of(found[0], variables)
        if path:
            yield path


def _path_of(reference: str, variables: Mapping[str, _Path]) -> _Path | None:
    named = _REFERENCE.match(reference)
    if named is None or named[1] not in variables:
        return None
    parts = [name or quoted or "*" for name, quoted, _ in _PARTS.findall(named[2])]
    return (*variables[named[1]], *parts)


def _constants(line: str) -> Iterator[Json]:
    """Texts and numbers of a line; true and false where it says neither and a place alone is the condition."""
    plain = re.sub(rf'\["[^"\n]*"\]|{_GET.pattern}', "", line)
    said: list[Json] = [word for word in (*_WORDS.findall(plain), *_RAW.findall(plain)) if word]
    said += [json.loads(number) for number in _NUMBER.findall(_WORDS.sub("", plain))]
    yield from said
    if not said or _LOGIC.search(plain):
        yield from (True, False)


def _lists(near: Iterable[Json]) -> Iterator[Json]:
    """Lists about as long as the numbers say."""
    for number in near:
        if isinstance(number, int) and not isinstance(number, bool) and number <= _LONGEST_LIST:
            for length in range(max(0, number - 1), number + 2):
                yield [f"x{position}" for position in range(length)]


def pointer_of(path: _Path) -> str:
    """A path as a JSON Pointer."""
    return "".join(f"/{escaped(key)}" for key in path)
