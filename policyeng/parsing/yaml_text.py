"""Strict YAML parsing to JSON values: ambiguous documents are refused, with the place and the remedy.

Plain words resolve as YAML 1.2's core schema does (`true`, `false`, `null` and numbers, nothing else), so `no`, times
and versions stay strings; keys are always strings. Source: https://yaml.org/spec/1.2.2/#103-core-schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import yaml

from policyeng.errors import InputError
from policyeng.parsing.json_pointer import escaped, list_index, unescaped
from policyeng.parsing.json_text import (
    DEFAULT_MAX_BYTES,
    MAX_DEPTH,
    build_refusal,
    refuse_encoding,
    refuse_size,
    shortened,
)
from policyeng.parsing.template_markers import refuse_placeholders

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_KUBERNETES_WORDS: dict[str, bool | None] = {
    **_WORDS,
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}|0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_DECIMAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASED = re.compile(r"([-+]?)(?:0b([01]{1,300})|0o?([0-7]{1,300})|0x([0-9a-fA-F]{1,300}))")


def core(text: str) -> bool | int | float | str | None:
    """Return the value of a plain word in YAML 1.2."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text, 8) if text.startswith("0o") else int(text, 16) if text.startswith("0x") else int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


def kubernetes(text: str) -> bool | int | float | str | None:
    """Return the value of a plain word as Kubernetes and Conftest read it."""
    if text in _KUBERNETES_WORDS:
        return _KUBERNETES_WORDS[text]
    digits = text.replace("_", "") if text[:1] in "+-.0123456789" else text
    based = _BASED.fullmatch(digits)
    if based is None:
        number = core(digits) if _DECIMAL.fullmatch(digits) else text
        return int(number) if isinstance(number, float) and number.is_integer() else number
    value = int(based[2] or based[3] or based[4], 2 if based[2] else 8 if based[3] else 16)
    return -value if based[1] == "-" else value


def kubernetes_key(text: str) -> str | None:
    """Return the key that a plain word is as Kubernetes and Conftest read it; None for one that means null."""
    value = kubernetes(text)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None or isinstance(value, str) else str(value)


Inner = dict[str, "YamlPart"] | list["YamlPart"] | None


@dataclass(slots=True)
class YamlPart:
    """One value: the line and column, from 1, at which it begins (an entry: at its key), and the values inside it."""

    line: int
    column: int
    inner: Inner = None


class YamlPositions(Mapping[str, tuple[int, int]]):
    """Line and column by JSON Pointer; below an alias, and for merged keys, that of the text which they repeat."""

    def __init__(self, root: YamlPart) -> None:
        self._root = root

    def __getitem__(self, pointer: str) -> tuple[int, int]:
        part = self._root
        for token in pointer.split("/")[1:]:
            found = _step(part.inner, token)
            if found is None:
                raise KeyError(pointer)
            part = found
        return part.line, part.column

    def __iter__(self) -> Iterator[str]:
        return _pointers(self._root, "")

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _step(inner: Inner, token: str) -> YamlPart | None:
    if isinstance(inner, dict):
        return inner.get(unescaped(token))
    index = list_index(token)
    return inner[index] if inner is not None and index is not None and index < len(inner) else None


def _pointers(part: YamlPart, pointer: str) -> Iterator[str]:
    yield pointer
    entries = part.inner.items() if isinstance(part.inner, dict) else enumerate(part.inner or ())
    for key, inner in entries:
        yield from _pointers(inner, f"{pointer}/{escaped(key)}")


#: How many values a document may contain, those that aliases repeat counted each time.
MAX_VALUES = 1_000_000
#: How many documents a stream may contain, empty ones too.
MAX_DOCUMENTS = 10_000
#: How many tag directives a file may contain: the parser compares each with all before it.
MAX_DIRECTIVES = 1000
#: How many characters aliases may repeat, because an expanded copy of the document contains them all.
MAX_REPEATED = 16 * 1024 * 1024


class Anchored(NamedTuple):
    """What an alias repeats: a value, the positions of its parts, and how many values, characters and levels it has."""

    value: object
    inner: Inner
    values: int
    characters: int
    levels: int


@dataclass
class Composing:
    """The state of one pass over the events of a document; `path` leads to the value that is being read."""

    events: Iterator[yaml.Event]
    file: str
    text: str = ""
    kubernetes: bool = False
    values: int = 0
    characters: int = 0
    repeated: int = 0
    depth: int = 0
    deepest: int = 0
    path: list[object] = field(default_factory=list)
    anchors: dict[str, Anchored] = field(default_factory=dict)

    def refuse(self, event: yaml.Event, message: str, remedy: str) -> InputError:
        """Return the error at an event, for the value that `path` leads to."""
        pointer = shortened("".join(f"/{escaped(token)}" for token in self.path), 120)
        place = part_of(event)
        return InputError(message, place=(f"{self.file}:{place.line}:{place.column}", pointer), remedy=remedy)

    def count(self, event: yaml.Event, values: int) -> None:
        """Take more values in, or refuse them."""
        self.values += values
        if self.values > MAX_VALUES:
            message = f"more than {MAX_VALUES} values once aliases are followed"
            raise self.refuse(event, message, "write less, or without aliases")

    def reach(self, event: yaml.Event, levels: int) -> None:
        """Take in what has so many levels more, or refuse it."""
        self.deepest = max(self.deepest, self.depth + levels)
        if self.deepest > MAX_DEPTH:
            raise self.refuse(event, f"nested deeper than {MAX_DEPTH} levels", "flatten the document")


def part_of(event: yaml.Event) -> YamlPart:
    """Return a part that begins where an event does."""
    mark = event.start_mark
    return YamlPart(mark.line + 1, mark.column + 1) if mark else YamlPart(1, 1)


_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NODES = (yaml.ScalarEvent, yaml.CollectionStartEvent)
_NOT_A_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
#: What YAML 1.1 takes for no text: https://yaml.org/spec/1.1/#c-printable.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class YamlDocument(NamedTuple):
    """A value, and by JSON Pointer the line and column, from 1, at which each part begins (an entry: at its key)."""

    value: object
    places: Mapping[str, tuple[int, int]]


def parse_yaml(content: bytes, file: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> YamlDocument:
    """Parse bytes as one YAML document.

    Args:
        content: the document.
        file: how messages name the document.
        max_bytes: the largest size that is read.

    Raises:
        InputError: too large, not UTF-8, a byte order mark, not YAML, several documents, a duplicate key, a tag, a
            merge key, NaN or infinity, nested too deeply, aliases that repeat too much or into themselves, or empty.
    """
    documents = _parsed(content, file, max_bytes, Composing(iter(()), file))
    return documents[0]


def parse_kubernetes_yaml(content: bytes, file: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> list[YamlDocument]:
    """Parse bytes as one or several YAML documents whose words mean what they mean to Kubernetes and Conftest.

    A tag of an application's own, such as CloudFormation's `!Ref`, changes nothing: its value is the text under it.
    Merge keys (`<<`) follow https://yaml.org/type/merge.html: keys of the mapping itself take precedence.

    Raises:
        InputError: as `parse_yaml`, several documents and merge keys aside.
    """
    return _parsed(content, file, max_bytes, Composing(iter(()), file, kubernetes=True))


def _parsed(content: bytes, file: str, max_bytes: int, composing: Composing) -> list[YamlDocument]:
    refuse_size(len(content), file, max_bytes)
    composing.text = text = _decoded(content, file)
    if text.count("\n%TAG") > MAX_DIRECTIVES:
        message = f"more than {MAX_DIRECTIVES} `%TAG` directives"
        raise InputError(message, place=(file,), remedy="write the values without tags")
    composing.events = yaml.parse(text, Loader=_LOADER)
    try:
        return _compose(composing)
    except yaml.MarkedYAMLError as error:
        refuse_placeholders(text, file, "YAML")
        mark = error.problem_mark or error.context_mark
        place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
        raise InputError(f"not valid YAML ({error.problem})", place=(place,), remedy="correct it there") from None
    except yaml.YAMLError as error:
        reason, place = shortened(str(error).splitlines()[0]), file
        if unfit := _UNPRINTABLE.search(text):
            start = text.rfind("\n", 0, unfit.start()) + 1
            place = f"{file}:{text.count(chr(10), 0, start) + 1}:{unfit.start() - start + 1}"
            reason = f"the character `{shortened(unfit[0])}` is not allowed"
        raise InputError(f"not valid YAML ({reason})", place=(place,), remedy="correct it there") from None


def _decoded(content: bytes, file: str) -> str:
    refuse_encoding(content, file)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        start = content.rfind(b"\n", 0, error.start) + 1
        line, column = content.count(b"\n", 0, start) + 1, len(content[start : error.start].decode()) + 1
        raise build_refusal(file, "utf8", line=line, column=column) from None


def _compose(composing: Composing) -> list[YamlDocument]:
    documents: list[YamlDocument] = []
    for event in composing.events:
        if isinstance(event, yaml.DocumentStartEvent):
            if documents and not composing.kubernetes:
                raise composing.refuse(event, "a second YAML document", "keep one document per file")
            if len(documents) == MAX_DOCUMENTS:
                raise composing.refuse(event, f"more than {MAX_DOCUMENTS} documents", "split the file")
            composing.anchors = {}
            first = next(composing.events)
            root = part_of(first)
            documents.append(YamlDocument(_value(first, composing, root), YamlPositions(root)))
    if not documents:
        raise InputError("the file is empty", place=(composing.file,), remedy="give a YAML document")
    return documents


def _value(event: yaml.Event, composing: Composing, part: YamlPart) -> object:
    """Return the value that begins with an event, and store the positions of its parts in `part`."""
    composing.count(event, 1)
    if isinstance(event, yaml.AliasEvent):
        anchored = _aliased(event, composing)
        part.inner = anchored.inner
        return anchored.value
    if not isinstance(event, _NODES):
        raise composing.refuse(event, "no value where one should be", "write a value")
    tag = event.tag
    if tag is not None and not (composing.kubernetes and tag.startswith("!")):
        raise composing.refuse(event, f"the tag `{shortened(tag)}` is not read", "write the value without a tag")
    values, characters, deepest = composing.values, composing.characters, composing.deepest
    composing.deepest = composing.depth
    value = _untagged(event, composing, part)
    if event.anchor is not None:
        repeats = (composing.values - values, composing.characters - characters, composing.deepest - composing.depth)
        composing.anchors[event.anchor] = Anchored(value, part.inner, *repeats)
    composing.deepest = max(deepest, composing.deepest)
    return value


def _untagged(event: yaml.ScalarEvent | yaml.CollectionStartEvent, composing: Composing, part: YamlPart) -> object:
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event, composing)
    composing.reach(event, 1)
    composing.depth += 1
    is_list = isinstance(event, yaml.SequenceStartEvent)
    value = _sequence(composing, part) if is_list else _mapping(composing, part)
    composing.depth -= 1
    return value


def _aliased(event: yaml.AliasEvent, composing: Composing) -> Anchored:
    name = event.anchor or ""
    if name not in composing.anchors:
        message = f"the alias `*{shortened(name)}` refers to nothing before it, or to itself"
        raise composing.refuse(event, message, "write the value out")
    anchored = composing.anchors[name]
    composing.count(event, anchored.values)
    composing.reach(event, anchored.levels)
    composing.characters += anchored.characters
    composing.repeated += anchored.characters
    if composing.repeated > MAX_REPEATED:
        message = f"aliases repeat more than {MAX_REPEATED} characters"
        raise composing.refuse(event, message, "write less, or without aliases")
    return anchored


def _sequence(composing: Composing, part: YamlPart) -> list[object]:
    values: list[object] = []
    parts: list[YamlPart] = []
    part.inner = parts
    for event in composing.events:
        if isinstance(event, yaml.SequenceEndEvent):
            break
        composing.path.append(len(values))
        parts.append(part_of(event))
        values.append(_value(event, composing, parts[-1]))
        composing.path.pop()
    return values


def _mapping(composing: Composing, part: YamlPart) -> dict[str, object]:
    values: dict[str, object] = {}
    parts: dict[str, YamlPart] = {}
    part.inner = parts
    merges: yaml.Event | None = None
    for event in composing.events:
        if isinstance(event, yaml.MappingEndEvent):
            break
        key = _key(event, composing)
        composing.path.append(key)
        if key in values:
            message = f"duplicate key `{shortened(key)}`, first in line {parts[key].line}"
            raise composing.refuse(event, message, "remove one of the two")
        merges = event if _is_merge(event) else merges
        parts[key] = part_of(event)
        values[key] = _value(next(composing.events), composing, parts[key])
        composing.path.pop()
    if merges is not None:
        _merge(values, parts, merges, composing)
    return values


def _is_merge(event: yaml.Event) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]


def _merge(values: dict[str, object], parts: dict[str, YamlPart], event: yaml.Event, composing: Composing) -> None:
    """Put the entries of the mappings under `<<` in its place; of several mappings the earlier ones go before."""
    value, part = values.pop("<<"), parts.pop("<<")
    sources: list[tuple[object, YamlPart]] = [(value, part)]
    if isinstance(value, list) and isinstance(part.inner, list):
        sources = list(zip(value, part.inner, strict=True))
    for source, below in sources:
        if not isinstance(source, dict) or not isinstance(below.inner, dict):
            message = "a merge key (`<<`) over something else than a mapping or a list of mappings"
            raise composing.refuse(event, message, "write the keys out")
        for key, inner in source.items():
            if key not in values:
                values[key], parts[key] = inner, below.inner[key]


def _key(event: yaml.Event, composing: Composing) -> str:
    if isinstance(event, yaml.AliasEvent) and isinstance(repeated := _aliased(event, composing).value, str):
        return repeated
    if not isinstance(event, yaml.ScalarEvent) or event.tag is not None:
        refuse_placeholders(composing.text, composing.file, "YAML")
        raise composing.refuse(event, "a key that is not plain text", "write the key as text")
    if _is_merge(event) and not composing.kubernetes:
        raise composing.refuse(event, "merge keys (`<<`) are not read", "write the keys out")
    composing.characters += len(event.value)
    plain = composing.kubernetes and event.implicit[0]
    key = kubernetes_key(str(event.value)) if plain else str(event.value)
    if key is None:
        raise composing.refuse(event, "a key that is null", "write the key in quotes")
    if event.anchor is not None:
        composing.anchors[event.anchor] = Anchored(key, None, 0, len(key), 0)
    return key


def _scalar(event: yaml.ScalarEvent, composing: Composing) -> object:
    text = str(event.value)
    composing.characters += len(text)
    if not event.implicit[0]:
        return text
    if _NOT_A_NUMBER.fullmatch(text):
        raise composing.refuse(event, "NaN and infinity are not read", "write a number or null")
    value = kubernetes(text) if composing.kubernetes else core(text)
    if isinstance(value, int | float) and abs(value) >= (2**64 if isinstance(value, int) else float("inf")):
        raise composing.refuse(event, f"the number `{shortened(text)}` is too large", "write it in quotes")
    return value
