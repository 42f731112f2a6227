"""The state of one pass over a YAML document: how large it is once aliases are followed, and where the pass stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import yaml

from policyeng.errors import InputError
from policyeng.strict.json_pointer import escaped
from policyeng.strict.json_text import MAX_DEPTH, shortened
from policyeng.strict.yaml_places import Inner, Part

#: How many values a document may hold, those that aliases repeat counted each time.
MAX_VALUES = 1_000_000
#: How many documents a stream may hold, empty ones too.
MAX_DOCUMENTS = 10_000
#: How many tag directives a file may hold: the parser compares each with all before it.
MAX_DIRECTIVES = 1000
#: How many characters aliases may repeat; whoever writes the document out again writes each of them.
MAX_REPEATED = 16 * 1024 * 1024


class Anchored(NamedTuple):
    """What an alias repeats: a value, where its parts stand, and how many values, characters and levels it has."""

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
        """The error at an event, for the value that `path` leads to."""
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


def part_of(event: yaml.Event) -> Part:
    """A part that begins where an event does."""
    mark = event.start_mark
    return Part(mark.line + 1, mark.column + 1) if mark else Part(1, 1)
