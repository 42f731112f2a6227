"""Where keys stand in a configuration file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from policyeng.named import NamedTuple


class File(NamedTuple):
    """A configuration file.

    Attributes:
        first: the line where its settings begin.
        inherited: whether a search found it above the directory in which it began.
    """

    path: Path
    text: str
    table: Mapping[str, object]
    first: int = 1
    inherited: bool = False

    def place(self, key: str) -> str:
        """The file, and the line that sets a key when it is found."""
        name = rf"[\"']?{re.escape(key)}[\"']?"
        sets = re.compile(rf"\s*(\[.*(?<![\w-]){name}\s*[\].]|([\w.\"'-]+\.)?{name}\s*[=.])")
        for line, text in enumerate(self.text.splitlines(), 1):
            if line >= self.first and sets.match(text):
                return f"{self.path}:{line}"
        return str(self.path)

    def place_of(self, key: str, position: int) -> str:
        """The file, and the line of a table of a list of tables (`[[key]]`) by its position in the list, from 0."""
        begins = re.compile(rf"\s*\[\[(?:[^\]]*\.)?\s*[\"']?{re.escape(key)}[\"']?\s*\]\]")
        lines = [
            line for line, text in enumerate(self.text.splitlines(), 1) if line >= self.first and begins.match(text)
        ]
        return f"{self.path}:{lines[position]}" if position < len(lines) else self.place(key)
