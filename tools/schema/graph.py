"""Join the models of several API versions, and of an overlay by hand, to one graph of objects for each namespace.

The first version in the table that has an object is the one that it is described by; what only others have, and what
they call the same object, is added to it with these versions. Objects are the same where the same member leads to them,
whatever they are called.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from schema.sdk import Member, Model, Models


class Row(NamedTuple):
    """A row of `overlay.csv`: a member of an object, a kind of it, a word of an enumeration, or the object of a type.

    Attributes:
        namespace: of the types.
        object: the name of an object; `=NAME` for an enumeration; a resource type.
        member: of the object, with `: KIND` behind a discriminator; a word; the API version
            of a type.
        type: as in `sdk.Member`.
        flags: as in `sdk.Member`.
        source: a URL.
        reason: why the packages do not say so.
    """

    namespace: str
    object: str
    member: str
    type: str
    flags: str
    source: str
    reason: str


def overlay_rows(path: Path) -> list[Row]:
    """Return the rows of the overlay."""
    with path.open(encoding="utf-8", newline="") as file:
        return [Row(**row) for row in csv.DictReader(file)]


class Graph:
    """The objects, enumerations and types of one namespace."""

    def __init__(self) -> None:
        self.objects: dict[str, Model] = {}
        self.enumerations: dict[str, dict[str, frozenset[str]]] = {}
        self.types: dict[str, tuple[str, str]] = {}
        self.versions: list[str] = []
        self._home: dict[str, str] = {}

    def add(self, models: Models, types: Iterable[str], family: str) -> None:
        """Add the types of an API version; names of objects are those of the family, the package it is from."""
        if models.version not in self.versions:
            self.versions.append(models.version)
        addition = _Addition(self, models, family)
        for arm_type in types:
            name = models.types[arm_type]
            spelled = next((known for known in self.types if known.lower() == arm_type.lower()), arm_type)
            if spelled in self.types:
                addition.join(self.types[spelled][0], name)
            else:
                self.types[arm_type] = (addition.name_of(name), models.version)

    def name_in(self, name: str, family: str) -> str:
        """Return the name for an object or enumeration of a family, whose other families have their own."""
        while self._home.setdefault(name, family) != family:
            name += "'"
        return name

    def overlay(self, rows: Iterable[Row]) -> None:
        """Apply rows of the overlay.

        Raises:
            SystemExit: a row says what is so without it.
        """
        version = frozenset({self.versions[0]})
        for row in rows:
            if "/" in row.object:
                is_new = row.object not in self.types
                self.types[row.object] = (row.type.removeprefix("#"), row.member)
            elif row.object.startswith("="):
                words = self.enumerations.setdefault(row.object[1:], {})
                is_new = version.isdisjoint(words.get(row.member, ()))
                words[row.member] = version
            else:
                model = self.objects.setdefault(row.object, Model())
                name, colon, kind = row.member.partition(": ")
                if colon:
                    is_new = kind not in model.kinds
                    model.by, model.kinds[kind] = name, row.type.removeprefix("#")
                else:
                    is_new = _is_other(model.members.get(name), row)
                    model.members[name] = Member(row.type, row.flags, version)
            if not is_new:
                raise SystemExit(f"overlay.csv: the packages say so already: {row.object} {row.member}")

    def document(self) -> dict[str, Any]:
        """Return what is written: the types and what is reachable from them."""
        objects: dict[str, dict[str, Any]] = {}
        enumerations: dict[str, list[str]] = {}
        waiting = [f"#{name}" for name, _ in self.types.values()]
        while waiting:
            kind = waiting.pop().replace("[]", "").replace("{}", "")
            name = kind[1:]
            if kind[0] == "=":
                enumerations[name] = self._words(name)
            elif kind[0] == "#" and name not in objects:
                model = self.objects[name]
                primary = self._primary(member.versions for member in model.members.values())
                objects[name] = {key: self._written(member, primary) for key, member in sorted(model.members.items())}
                if model.kinds:
                    objects[name][f"{model.by}:"] = dict(sorted(model.kinds.items()))
                waiting += (member.type for member in model.members.values())
                waiting += (f"#{other}" for other in model.kinds.values())
        return {
            "versions": self.versions,
            "types": dict(sorted(self.types.items())),
            "objects": dict(sorted(objects.items())),
            "enumerations": dict(sorted(enumerations.items())),
        }

    def _primary(self, versions: Iterable[frozenset[str]]) -> str:
        stated = frozenset().union(*versions)
        return next((version for version in self.versions if version in stated), "")

    def _written(self, member: Member, primary: str) -> str:
        versions = "" if primary in member.versions else f"@{self._mask(member.versions)}"
        return " ".join(filter(None, (member.type, member.flags, versions)))

    def _words(self, name: str) -> list[str]:
        words = self.enumerations[name]
        primary = self._primary(words.values())
        return sorted(
            word if primary in versions else f"{word} @{self._mask(versions)}" for word, versions in words.items()
        )

    def _mask(self, versions: frozenset[str]) -> str:
        return format(sum(1 << self.versions.index(version) for version in versions), "x")


def _is_other(member: Member | None, row: Row) -> bool:
    return member is None or (member.type, member.flags) != (row.type, row.flags)


class _Addition:
    """What joins the models of one version to a graph."""

    def __init__(self, graph: Graph, models: Models, family: str) -> None:
        self.graph, self.models, self.family = graph, models, family
        self._joined: set[tuple[str, str]] = set()

    def name_of(self, name: str) -> str:
        """Return the name in the graph of an object of these models, with all that it leads to."""
        known = self.graph.name_in(name, self.family)
        self.graph.objects.setdefault(known, Model())
        self.join(known, name)
        return known

    def join(self, known: str, name: str) -> None:
        """Join an object of these models to one of the graph."""
        if (known, name) in self._joined:
            return
        self._joined.add((known, name))
        target, source = self.graph.objects[known], self.models.objects[name]
        for key, member in source.members.items():
            spelled = next((other for other in target.members if other.lower() == key.lower()), key)
            if spelled not in target.members:
                kind = self._type_of(member.type)
                target.members[spelled] = Member(kind, member.flags, member.versions)
            else:
                existing = target.members[spelled]
                existing.versions |= member.versions
                existing.type = self._join_types(existing.type, member.type)
        target.by = target.by or source.by
        for kind, other in source.kinds.items():
            if kind in target.kinds:
                self.join(target.kinds[kind], other)
            else:
                target.kinds[kind] = self.name_of(other)

    def _type_of(self, kind: str) -> str:
        holders, sign, name = _apart(kind)
        if sign == "#":
            return f"{holders}#{self.name_of(name)}"
        return f"{holders}={self._enumeration(name)}" if sign == "=" else kind

    def _enumeration(self, name: str, known: str = "") -> str:
        known = known or self.graph.name_in(name, self.family)
        words = self.graph.enumerations.setdefault(known, {})
        for word, versions in self.models.enumerations[name].items():
            spelled = next((other for other in words if other.lower() == word.lower()), word)
            words[spelled] = words.get(spelled, frozenset()) | versions
        return known

    def _join_types(self, known: str, kind: str) -> str:
        """Join the type of a member to that of the graph, and return the one that says more."""
        holders, sign, name = _apart(known)
        other_holders, other_sign, other = _apart(kind)
        if holders != other_holders:
            return known
        if sign == other_sign == "#":
            self.join(name, other)
        elif sign == other_sign == "=":
            self._enumeration(other, name)
        elif other_sign == "=" and name == "string":
            return self._type_of(kind)
        return known


def _apart(kind: str) -> tuple[str, str, str]:
    """Return what holds a type, its sign and its name: `[]`, `#`, `Model` for a list of objects."""
    bare = kind.lstrip("[]{}")
    holders = kind[: len(kind) - len(bare)]
    return (holders, bare[0], bare[1:]) if bare[0] in "#=" else (holders, "", bare)


def lines_of(document: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a document as JSON: one for each type, object and enumeration."""
    import json

    def compact(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)

    parts = []
    for name, part in document.items():
        rows = [f"{compact(key)}:{compact(value)}" for key, value in part.items()] if isinstance(part, dict) else []
        parts.append(f"{compact(name)}:{{\n" + ",\n".join(rows) + "\n}" if rows else f"{compact(name)}:{compact(part)}")
    yield "{" + ",\n".join(parts) + "}\n"
