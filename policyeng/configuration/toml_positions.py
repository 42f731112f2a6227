"""Line numbers of keys in a configuration file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from policyeng.named import NamedTuple


class File(NamedTuple):
    """A configuration file.

    Attributes:
        first: the line where the settings start.
        inherited: whether the file was found in a parent of the directory where the search started.
    """

    path: Path
    text: str
    table: Mapping[str, object]
    first: int = 1
    inherited: bool = False

    def place(self, key: str) -> str:
        """Return the file, with the line that sets a key if it is found."""
        name = rf"[\"']?{re.escape(key)}[\"']?"
        sets = re.compile(rf"\s*(\[.*(?<![\w-]){name}\s*[\].]|([\w.\"'-]+\.)?{name}\s*[=.])")
        for line, text in enumerate(self.text.splitlines(), 1):
            if line >= self.first and sets.match(text):
                return f"{self.path}:{line}"
        return str(self.path)

    def place_of(self, key: str, position: int) -> str:
        """Return the file and the line of a `[[key]]` table by its position, from 0."""
        begins = re.compile(rf"\s*\[\[(?:[^\]]*\.)?\s*[\"']?{re.escape(key)}[\"']?\s*\]\]")
        lines = [
            line for line, text in enumerate(self.text.splitlines(), 1) if line >= self.first and begins.match(text)
        ]
        return f"{self.path}:{lines[position]}" if position < len(lines) else self.place(key)
