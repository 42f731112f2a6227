"""What the documents of all inputs name, so that each finds the things of the others: those that are nearest first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from pathlib import PurePath

from policyeng.models import JsonObject
from policyeng.sources.reading import Find, Found

_EVERYWHERE = ""


class Naming:
    """The things that the documents of one format name."""

    def __init__(self) -> None:
        """Know of no document yet."""
        self._found: dict[tuple[Hashable, str | PurePath], list[Found]] = defaultdict(list)

    def add(self, names: Mapping[Hashable, JsonObject], file: str, directory: PurePath) -> Find:
        """Take note of what a document names.

        Args:
            names: the things by key.
            file: the one of the document, as the user named it.
            directory: that of the file, whole.

        Returns:
            what finds things from there: those of the file, else of the directory or of the nearest one above it that
            has any, else of all inputs.
        """

        def find(key: Hashable) -> Sequence[Found]:
            places: tuple[str | PurePath, ...] = (f"file {file}", directory, *directory.parents, _EVERYWHERE)
            return next((found for place in places if (found := self._found.get((key, place)))), [])

        for key, thing in names.items():
            found = Found(thing, names, find)
            for place in (f"file {file}", directory, _EVERYWHERE):
                self._found[(key, place)].append(found)
        return find
