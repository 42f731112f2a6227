"""Parts of Markdown pages: tables, and what folds away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Give a table; the cells are Markdown already."""
    lines = (titles, ["---"] * len(titles), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fold(summary: str, body: str) -> str:
    """Give a body that a reader unfolds by its summary."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"
