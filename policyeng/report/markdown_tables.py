"""Parts of Markdown pages: text and code that show what stands in them, tables, and what folds away."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from policyeng.report.escaping import markdown_code, markdown_text, visible


def code(text: str) -> str:
    """Give a name or a value as code, also inside a table."""
    plain = text.strip() == text != "" and not re.search(r"[`|\n]", text) and visible(text) == text
    return f"`{text}`" if plain else markdown_code(text)


def prose(text: str, code: Callable[[str], str] = code) -> str:
    """Give text as Markdown that shows it as it stands, what it has between backticks as code.

    Text from a snapshot takes `markdown_code`, whose elements no text can end.
    """
    parts = re.split(r"`([^`\n]+)`", text)
    return "".join(code(part) if number % 2 else markdown_text(part) for number, part in enumerate(parts))


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Give a table; the cells are Markdown already."""
    lines = (titles, ["---"] * len(titles), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fold(summary: str, body: str) -> str:
    """Give a body that a reader unfolds by its summary."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"
