"""Parts of Markdown pages: escaped text and code, tables, and folded sections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from policyeng.report.escaping import markdown_code, markdown_text, visible


def code(text: str) -> str:
    """Return a name or a value as code, also inside a table."""
    plain = text.strip() == text != "" and not re.search(r"[`|\n]", text) and visible(text) == text
    return f"`{text}`" if plain else markdown_code(text)


def prose(text: str, code: Callable[[str], str] = code) -> str:
    """Escape text for Markdown, and format parts between backticks as code.

    For text from a snapshot, pass `markdown_code`, whose elements no text can end.
    """
    parts = re.split(r"`([^`\n]+)`", text)
    return "".join(code(part) if number % 2 else markdown_text(part) for number, part in enumerate(parts))


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the cells are Markdown already."""
    return "\n".join(map(row, (titles, ["---"] * len(titles), *rows)))


def row(cells: Sequence[str]) -> str:
    """Return a row of a table; the cells are Markdown already."""
    return f"| {' | '.join(cells)} |"


def fold(summary: str, body: str) -> str:
    """Return a body folded under its summary."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"
