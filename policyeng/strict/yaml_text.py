"""YAML, strictly: the values that JSON has, one meaning per document, or a refusal with the place and the remedy.

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
from policyeng.strict import yaml_words
from policyeng.strict.json_text import DEFAULT_MAX_BYTES, MAX_DEPTH, escaped, refusal, refuse_size, shortened

#: How many values a document may hold, those that aliases repeat counted each time.
MAX_VALUES = 1_000_000

_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOT_A_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class YamlDocument(NamedTuple):
    """A value, and by JSON Pointer the line and column, from 1, at which each part begins (an entry: at its key)."""

    value: object
    places: Mapping[str, tuple[int, int]]


@dataclass
class _Composing:
    """The state of one pass over the events of a document."""

    events: Iterator[yaml.Event]
    file: str
    kubernetes: bool = False
    values: int = 0
    depth: int = 0
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    anchors: dict[str, tuple[object, int]] = field(default_factory=dict)

    def refuse(self, event: yaml.Event, message: str, remedy: str, pointer: str = "") -> InputError:
        return InputError(message, place=(f"{self.file}:{_line(event)}:{_column(event)}", pointer), remedy=remedy)

    def count(self, event: yaml.Event, values: int, pointer: str) -> None:
        self.values += values
        if self.values > MAX_VALUES:
            message = f"more than {MAX_VALUES} values once aliases are followed"
            raise self.refuse(event, message, "write less, or without aliases", pointer)


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
    documents = _parsed(content, file, max_bytes, _Composing(iter(()), file))
    return documents[0]


def parse_kubernetes_yaml(content: bytes, file: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> list[YamlDocument]:
    """Parse bytes as one or several YAML documents whose words mean what they mean to Kubernetes and Conftest.

    A tag of an application's own, such as CloudFormation's `!Ref`, changes nothing: its value is the text under it.

    Raises:
        InputError: as `parse_yaml`, several documents aside.
    """
    return _parsed(content, file, max_bytes, _Composing(iter(()), file, kubernetes=True))


def _parsed(content: bytes, file: str, max_bytes: int, composing: _Composing) -> list[YamlDocument]:
    refuse_size(len(content), file, max_bytes)
    text = _decoded(content, file)
    composing.events = yaml.parse(text, Loader=_LOADER)
    try:
        return _compose(composing)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
        raise InputError(f"not valid YAML ({error.problem})", place=(place,), remedy="correct it there") from None
    except yaml.YAMLError as error:
        reason = shortened(str(error).splitlines()[0])
        raise InputError(f"not valid YAML ({reason})", place=(file,), remedy="correct the text") from None


def _decoded(content: bytes, file: str) -> str:
    if content.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise refusal(file, "bom")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise refusal(file, "utf8", line=line, column=column) from None


def _compose(composing: _Composing) -> list[YamlDocument]:
    documents: list[YamlDocument] = []
    for event in composing.events:
        if isinstance(event, yaml.DocumentStartEvent):
            if documents and not composing.kubernetes:
                raise composing.refuse(event, "a second YAML document", "keep one document per file")
            composing.places, composing.anchors = {}, {}
            value = _value(next(composing.events), composing, "")
            documents.append(YamlDocument(value, composing.places))
    if not documents:
        raise InputError("the file is empty", place=(composing.file,), remedy="give a YAML document")
    return documents


def _value(event: yaml.Event, composing: _Composing, pointer: str) -> object:
    composing.places.setdefault(pointer, (_line(event), _column(event)))
    composing.count(event, 1, pointer)
    if isinstance(event, yaml.AliasEvent):
        return _aliased(event, composing, pointer)
    tag, anchor = _tag_and_anchor(event)
    if tag is not None and not (composing.kubernetes and tag.startswith("!")):
        message = f"the tag `{shortened(tag)}` is not read"
        raise composing.refuse(event, message, "write the value without a tag", pointer)
    if composing.depth >= MAX_DEPTH:
        raise composing.refuse(event, f"nested deeper than {MAX_DEPTH} levels", "flatten the document", pointer)
    before = composing.values
    composing.depth += 1
    value = _untagged(event, composing, pointer)
    composing.depth -= 1
    if anchor is not None:
        composing.anchors[anchor] = (value, composing.values - before)
    return value


def _untagged(event: yaml.Event, composing: _Composing, pointer: str) -> object:
    if isinstance(event, yaml.SequenceStartEvent):
        return _sequence(composing, pointer)
    if isinstance(event, yaml.MappingStartEvent):
        return _mapping(composing, pointer)
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event, composing, pointer)
    raise composing.refuse(event, "no value where one should be", "write a value", pointer)


def _tag_and_anchor(event: yaml.Event) -> tuple[str | None, str | None]:
    if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
        return event.tag, event.anchor
    return None, None


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _column(event: yaml.Event) -> int:
    return event.start_mark.column + 1 if event.start_mark else 1


def _aliased(event: yaml.AliasEvent, composing: _Composing, pointer: str) -> object:
    name = event.anchor or ""
    if name not in composing.anchors:
        message = f"the alias `*{shortened(name)}` refers to nothing before it, or to itself"
        raise composing.refuse(event, message, "write the value out", pointer)
    value, size = composing.anchors[name]
    composing.count(event, size, pointer)
    return value


def _sequence(composing: _Composing, pointer: str) -> list[object]:
    values: list[object] = []
    for event in composing.events:
        if isinstance(event, yaml.SequenceEndEvent):
            break
        values.append(_value(event, composing, f"{pointer}/{len(values)}"))
    return values


def _mapping(composing: _Composing, pointer: str) -> dict[str, object]:
    values: dict[str, object] = {}
    for event in composing.events:
        if isinstance(event, yaml.MappingEndEvent):
            break
        key = _key(event, composing, pointer)
        inner = f"{pointer}/{escaped(key)}"
        if key in values:
            message = f"the key `{shortened(key)}` stands twice, first in line {composing.places[inner][0]}"
            raise composing.refuse(event, message, "remove one of the two", inner)
        composing.places[inner] = _line(event), _column(event)
        values[key] = _value(next(composing.events), composing, inner)
    return values


def _key(event: yaml.Event, composing: _Composing, pointer: str) -> str:
    if not isinstance(event, yaml.ScalarEvent) or event.tag is not None:
        raise composing.refuse(event, "a key that is not plain text", "write the key as text", pointer)
    if event.value == "<<" and event.implicit[0]:
        raise composing.refuse(event, "merge keys (`<<`) are not read", "write the keys out", pointer)
    if not composing.kubernetes or not event.implicit[0]:
        return str(event.value)
    key = yaml_words.kubernetes_key(str(event.value))
    if key is None:
        raise composing.refuse(event, "a key that is null", "write the key in quotes", pointer)
    return key


def _scalar(event: yaml.ScalarEvent, composing: _Composing, pointer: str) -> object:
    text = str(event.value)
    if not event.implicit[0]:
        return text
    if _NOT_A_NUMBER.fullmatch(text):
        raise composing.refuse(event, "NaN and infinity are not read", "write a number or null", pointer)
    value = yaml_words.kubernetes(text) if composing.kubernetes else yaml_words.core(text)
    if isinstance(value, int | float) and abs(value) >= (2**64 if isinstance(value, int) else float("inf")):
        raise composing.refuse(event, f"the number `{shortened(text)}` is too large", "write it in quotes", pointer)
    return value
