"""Where the parts of a YAML document stand: a tree beside the value, asked by JSON Pointer.

A pointer for every value would take the length of all keys above it each time; a tree takes each key once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from policyeng.strict.json_pointer import escaped, list_index, unescaped

Inner = dict[str, "Part"] | list["Part"] | None


@dataclass(slots=True)
class Part:
    """One value: the line and column, from 1, at which it begins (an entry: at its key), and the values inside it."""

    line: int
    column: int
    inner: Inner = None


class Places(Mapping[str, tuple[int, int]]):
    """Line and column by JSON Pointer; below an alias, and for merged keys, that of the text which they repeat."""

    def __init__(self, root: Part) -> None:
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


def _step(inner: Inner, token: str) -> Part | None:
    if isinstance(inner, dict):
        return inner.get(unescaped(token))
    index = list_index(token)
    return inner[index] if inner is not None and index is not None and index < len(inner) else None


def _pointers(part: Part, pointer: str) -> Iterator[str]:
    yield pointer
    entries = part.inner.items() if isinstance(part.inner, dict) else enumerate(part.inner or ())
    for key, inner in entries:
        yield from _pointers(inner, f"{pointer}/{escaped(key)}")
