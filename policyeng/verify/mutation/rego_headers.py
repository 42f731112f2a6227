"""The faults that the header of a Rego policy can have, found in the YAML of its METADATA block."""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson
import yaml

from policyeng.verify.mutation.edits import Edit, Mutation, Spoken, mutation, without_member

#: A run of comments, with what makes it the one above the package.
_COMMENTS = re.compile(r"^((?:#.*\n)++)(\s*package[ \t])?", re.MULTILINE)
_METADATA = re.compile(r"^#[ \t]*METADATA[ \t]*\n", re.MULTILINE)
_INTEGER = re.compile(r"-?\d+")


def header_mutations(source: str, spoken: Spoken) -> Iterator[Mutation]:
    """Every fault of the header of a module.

    What is for people (titles, messages, sources), `consults` and the contracts are left alone: laws prove the latter.
    """
    place = _block(source)
    if place is None:
        return
    start, end = place
    # Every character keeps its place: the signs of the comments become spaces.
    before = re.sub(r"[^\n]", " ", source[:start])
    tree = yaml.compose(before + re.sub(r"^#", " ", source[start:end], flags=re.MULTILINE), yaml.SafeLoader)
    yield from _Header(source, spoken).mutations(tree)


def _block(source: str) -> tuple[int, int] | None:
    """Find where the header above the package begins, after its first line, and ends."""
    for comments in _COMMENTS.finditer(source):
        if comments[2] and (first := _METADATA.search(comments[1])):
            return comments.start() + first.end(), comments.end(1)
    return None


class _Header:
    def __init__(self, source: str, spoken: Spoken) -> None:
        self._source = source
        self._spoken = spoken

    def mutations(self, tree: yaml.Node | None) -> Iterator[Mutation]:
        fields = {**_fields(tree), **_fields(_fields(tree).get("custom"))}
        yield from self._judges(fields.get("judges"))
        schemas = _fields(fields.get("parameters"))
        for schema in _fields(schemas.get("properties", fields.get("parameters"))).values():
            yield from self._default(_fields(schema).get("default"))

    def _judges(self, judges: yaml.Node | None) -> Iterator[Mutation]:
        entries = _entries(judges)
        if isinstance(judges, yaml.SequenceNode) and len(entries) > 1:
            for index in range(len(entries)):
                yield Mutation("drop what is judged", (self._dropped(judges, index),))
        for entry in _listed(judges):
            for index, (key, where) in enumerate(_pairs(entry)):
                if key.value == "where":
                    yield Mutation("drop what is judged", (self._dropped(entry, index),))
                    yield from self._where(where)

    def _where(self, where: yaml.Node) -> Iterator[Mutation]:
        pairs = _pairs(where)
        for index, (_, allowed) in enumerate(pairs):
            if len(pairs) > 1:
                yield Mutation("drop what is judged", (self._dropped(where, index),))
            yield from self._set(allowed)

    def _default(self, default: yaml.Node | None) -> Iterator[Mutation]:
        if isinstance(default, yaml.SequenceNode):
            yield from self._set(default)
        elif isinstance(default, yaml.ScalarNode):
            start, end = _span(default)
            if _INTEGER.fullmatch(default.value):
                for other in (int(default.value) + 1, int(default.value) - 1):
                    yield mutation("shift a number", start, end, str(other))
            elif default.value in ("true", "false"):
                yield mutation("flip a boolean", start, end, "false" if default.value == "true" else "true")
            else:
                quoted = int(default.style in ("'", '"'))
                yield mutation("change a text", end - quoted, end - quoted, "_")

    def _set(self, node: yaml.Node) -> Iterator[Mutation]:
        entries = _entries(node)
        if not isinstance(node, yaml.SequenceNode) or not entries:
            return
        for index in range(len(entries)):
            edit = self._dropped(node, index) if len(entries) > 1 else Edit(*_span(node), "[]")
            yield Mutation("narrow a set", (edit,))
        start = _span(entries[0])[0]
        held = [entry.value for entry in entries if isinstance(entry, yaml.ScalarNode)]
        word = self._spoken.another(held) if _in_brackets(node) and len(held) == len(entries) else None
        if word:
            yield mutation("widen a set", start, start, f"{orjson.dumps(word).decode()}, ")

    def _dropped(self, node: yaml.Node, index: int) -> Edit:
        """A member of a list or mapping taken out, in brackets with its comma, else with its lines."""
        members = [member if isinstance(member, tuple) else (member, member) for member in node.value]
        spans = [(first.start_mark.index, _end(last)) for first, last in members]
        if _in_brackets(node):
            return without_member(spans, index)
        start = self._source.rindex("\n", 0, spans[index][0]) + 1
        end = self._source.index("\n", spans[index][1]) + 1
        if self._source.count("\n", start, spans[index][0]) == 0 and self._opens(node, index, start):
            # The first key of a mapping in a list stands behind the hyphen, which stays.
            start = spans[index][0]
            end = spans[index + 1][0] if index + 1 < len(spans) else spans[index][1]
        return Edit(start, end, "")

    def _opens(self, node: yaml.Node, index: int, start: int) -> bool:
        line = self._source[start : node.start_mark.index]
        return isinstance(node, yaml.MappingNode) and index == 0 and "-" in line


def _fields(node: yaml.Node | None) -> dict[str, yaml.Node]:
    return {key.value: value for key, value in _pairs(node)}


def _pairs(node: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    return node.value if isinstance(node, yaml.MappingNode) else []


def _entries(node: yaml.Node | None) -> list[yaml.Node]:
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _listed(node: yaml.Node | None) -> list[yaml.Node]:
    """The entries of a list; what is none is the only one."""
    return [node] if isinstance(node, yaml.MappingNode) else _entries(node)


def _span(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.index, node.end_mark.index


def _in_brackets(node: yaml.Node) -> bool:
    return isinstance(node, yaml.CollectionNode) and bool(node.flow_style)


def _end(node: yaml.Node) -> int:
    """Where the last thing in a node ends: a block's own end is where the next one begins."""
    if isinstance(node, yaml.ScalarNode) or _in_brackets(node) or not node.value:
        end: int = node.end_mark.index
        return end
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)
