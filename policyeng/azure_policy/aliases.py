"""Aliases: the paths of fields in resources, by type."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from policyeng.azure_policy.values import Steps, split_path
from policyeng.errors import suggest_nearest
from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_text import parse_json

_DATA = Path(__file__).with_name("aliases.gz")
#: The output for all providers has 60 MB.
_MOST_BYTES = 256_000_000
#: Fields of every resource, which need no alias.
_FIELDS = frozenset(
    [
        "name",
        "fullname",
        "kind",
        "type",
        "location",
        "id",
        "tags",
        "identity",
        "apiversion",
        "zones",
        "sku",
        "plan",
        "managedby",
        "systemdata",
        "extendedlocation",
    ]
)
#: The names of fields whose members are fields, too.
_OBJECTS = ("identity.", "sku.", "systemdata.", "plan.", "tags.", "extendedlocation.")


class UnknownAliasError(ValueError):
    """A field that is no alias; the text has the nearest one."""


class AliasTable:
    """The paths of aliases by their names in lower case, and then by the lower-case types of resources."""

    def __init__(self, rows: Iterator[tuple[str, str, str]], source: str) -> None:
        """Store rows of a name, a path and a type, which counts if the name has none before its last slash."""
        self.source = source
        self._paths: dict[str, dict[str, str]] = {}
        self._names: dict[str, str] = {}
        self._namespaces: set[str] = set()
        for name, path, kind in rows:
            folded = lowered(name)
            self._names[folded] = name
            prefix = folded.rpartition("/")[0]
            # The aliases of children are listed with their parents; those without a type are of several.
            self._paths.setdefault(folded, {}).setdefault(prefix if "/" in prefix else lowered(kind), path)
            self._namespaces.add(folded.partition("/")[0])
        self._steps: dict[tuple[str, str], Steps | None] = {}

    def __len__(self) -> int:
        return len(self._paths)

    def updated(self, other: AliasTable) -> AliasTable:
        """Return a table with the rows of another one, which win."""
        table = AliasTable(iter(()), f"{other.source}, {self.source}")
        table._paths = {**self._paths, **other._paths}
        table._names = {**self._names, **other._names}
        table._namespaces = self._namespaces | other._namespaces
        return table

    def steps(self, name: str, kind: str) -> Steps | None:
        """Return the path of a field in resources of a lower-case type; None if these do not have it.

        Raises:
            UnknownAliasError: it is neither a field of every resource nor an alias.
        """
        key = (name, kind)
        if key not in self._steps:
            self._steps[key] = self._find(name, kind)
        return self._steps[key]

    def find_name(self, steps: Steps, kind: str) -> str | None:
        """Return the name of a field of resources of a lower-case type by its path; None if it has none."""
        if lowered(steps[0]) in _FIELDS:
            return ".".join(steps)
        path = lowered(".".join(steps))
        names = (name for name, by_type in self._paths.items() if lowered(by_type.get(kind, "")) == path)
        return next((self._names[name] for name in names), None)

    def _find(self, name: str, kind: str) -> Steps | None:
        folded = lowered(name)
        if folded.startswith("tags[") and folded.endswith("]"):
            return "tags", name[5:-1].strip("'\"")
        if folded.startswith("tags."):
            return "tags", name[5:]
        if folded in _FIELDS or folded.startswith(_OBJECTS):
            return split_path(name)
        by_type = self._paths.get(folded)
        if by_type is None and (whole := self._paths.get(f"{folded}[*]")) is not None:
            # Some lists have an alias of their members only.
            by_type = {key: path[:-3] for key, path in whole.items() if path.endswith("[*]")}
        if not by_type:
            raise UnknownAliasError(self._describe(name, folded))
        path = by_type.get(kind)
        return None if path is None else split_path(path)

    def _describe(self, name: str, folded: str) -> str:
        if "/" not in folded:
            return f"unknown field `{name}`{suggest_nearest(name, sorted(_FIELDS))}"
        namespace, prefix = folded.partition("/")[0], folded.rpartition("/")[0]
        if namespace not in self._namespaces:
            return f"unknown alias `{name}`: no aliases of {namespace} are known; give `--aliases`"
        near = [known for key, known in self._names.items() if key.startswith(f"{prefix}/")]
        return f"unknown alias `{name}`{suggest_nearest(folded, near)}"


@cache
def built_in_aliases() -> AliasTable:
    """Return the aliases that come with policyeng."""
    lines = gzip.decompress(_DATA.read_bytes()).decode().splitlines()
    return AliasTable(_rows(line for line in lines if not line.startswith("#")), lines[0].removeprefix("# "))


def _rows(lines: Iterator[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of lines `name`, `name,path` or `name,path,type`; without a path it is below `properties`."""
    for line in lines:
        name, _, rest = line.partition(",")
        path, _, kind = rest.partition(",")
        yield name, path or f"properties.{name.rpartition('/')[2]}", kind


def aliases_in(content: bytes, place: str) -> AliasTable | None:
    """Return the aliases in the output of the call that lists resource providers; None if it is something else.

    It is an object with `value`, a list of providers, or one of them, as `az provider list --expand
    resourceTypes/aliases` and `GET /providers?$expand=resourceTypes/aliases` give it.

    Raises:
        InputError: it is not JSON.
    """
    document = parse_json(content.removeprefix(b"\xef\xbb\xbf"), place, max_bytes=_MOST_BYTES)
    providers = document.get("value", [document]) if isinstance(document, dict) else document
    rows = list(_provider_rows(providers)) if isinstance(providers, list) else []
    return AliasTable(iter(rows), place) if rows else None


def _provider_rows(providers: list[object]) -> Iterator[tuple[str, str, str]]:
    for provider in providers:
        for kind in _objects(provider, "resourceTypes"):
            for alias in _objects(kind, "aliases"):
                paths = [entry.get("path") for entry in _objects(alias, "paths")]
                path = next((text for text in (alias.get("defaultPath"), *paths) if isinstance(text, str)), None)
                name = alias.get("name")
                if isinstance(name, str) and path is not None and isinstance(provider, Mapping):
                    yield name, path, f"{provider.get('namespace')}/{kind.get('resourceType')}"


def _objects(holder: object, name: str) -> list[JsonObject]:
    entries = holder.get(name) if isinstance(holder, dict) else None
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
