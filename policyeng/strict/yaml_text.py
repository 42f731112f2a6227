"""YAML, strictly: the values that JSON has, one meaning per document, or a refusal with the place and the remedy.

Plain words resolve as YAML 1.2's core schema does (`true`, `false`, `null` and numbers, nothing else), so `no`, times
and versions stay strings; keys are always strings. Source: https://yaml.org/spec/1.2.2/#103-core-schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import yaml

from policyeng.errors import InputError
from policyeng.strict import yaml_words
from policyeng.strict.json_text import DEFAULT_MAX_BYTES, refusal, refuse_encoding, refuse_size, shortened
from policyeng.strict.placeholders import refuse_placeholders
from policyeng.strict.yaml_composing import MAX_DIRECTIVES, MAX_DOCUMENTS, MAX_REPEATED, Anchored, Composing, part_of
from policyeng.strict.yaml_places import Part, Places

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
    Merge keys (`<<`) are followed as https://yaml.org/type/merge.html says: what a mapping says itself goes before.

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
            reason = f"the character `{shortened(unfit[0])}` cannot stand in it"
        raise InputError(f"not valid YAML ({reason})", place=(place,), remedy="correct it there") from None


def _decoded(content: bytes, file: str) -> str:
    refuse_encoding(content, file)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        start = content.rfind(b"\n", 0, error.start) + 1
        line, column = content.count(b"\n", 0, start) + 1, len(content[start : error.start].decode()) + 1
        raise refusal(file, "utf8", line=line, column=column) from None


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
            documents.append(YamlDocument(_value(first, composing, root), Places(root)))
    if not documents:
        raise InputError("the file is empty", place=(composing.file,), remedy="give a YAML document")
    return documents


def _value(event: yaml.Event, composing: Composing, part: Part) -> object:
    """The value that begins with an event; where its parts stand goes into `part`."""
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


def _untagged(event: yaml.ScalarEvent | yaml.CollectionStartEvent, composing: Composing, part: Part) -> object:
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


def _sequence(composing: Composing, part: Part) -> list[object]:
    values: list[object] = []
    parts: list[Part] = []
    part.inner = parts
    for event in composing.events:
        if isinstance(event, yaml.SequenceEndEvent):
            break
        composing.path.append(len(values))
        parts.append(part_of(event))
        values.append(_value(event, composing, parts[-1]))
        composing.path.pop()
    return values


def _mapping(composing: Composing, part: Part) -> dict[str, object]:
    values: dict[str, object] = {}
    parts: dict[str, Part] = {}
    part.inner = parts
    merges: yaml.Event | None = None
    for event in composing.events:
        if isinstance(event, yaml.MappingEndEvent):
            break
        key = _key(event, composing)
        composing.path.append(key)
        if key in values:
            message = f"the key `{shortened(key)}` stands twice, first in line {parts[key].line}"
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


def _merge(values: dict[str, object], parts: dict[str, Part], event: yaml.Event, composing: Composing) -> None:
    """Put the entries of the mappings under `<<` in its place; of several mappings the earlier ones go before."""
    value, part = values.pop("<<"), parts.pop("<<")
    sources: list[tuple[object, Part]] = [(value, part)]
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
    key = yaml_words.kubernetes_key(str(event.value)) if plain else str(event.value)
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
    value = yaml_words.kubernetes(text) if composing.kubernetes else yaml_words.core(text)
    if isinstance(value, int | float) and abs(value) >= (2**64 if isinstance(value, int) else float("inf")):
        raise composing.refuse(event, f"the number `{shortened(text)}` is too large", "write it in quotes")
    return value
