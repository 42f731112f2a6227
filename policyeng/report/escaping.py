"""Escape text from a snapshot for display and for Markdown, and build Markdown tables and sections."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence

from policyeng.later import lazy_pattern

# Build agents run `##vso[...]` and `##[...]` anywhere in a line, and `::command` at the start of a line. Wrapping can
# start a line at any space.
_AGENT_COMMAND = lazy_pattern(r"#(?=#(?:vso)?\[)|(?:(?<=\s)|^):(?=:[A-Za-z])", re.MULTILINE)
# Markdown markup; numeric character references have no markup meaning (CommonMark 0.31, 2.5).
_MARKUP = lazy_pattern(r"[\\`*_{}\[\]<>|~&$@#]|:(?=\S)|(?<=www)\.", re.IGNORECASE)
_CALLING = lazy_pattern(r"&#(?:64|35);")


def _as_json_escape(text: str) -> str:
    return json.dumps(text)[1:-1]


def visible(text: str, *, keep: str = "") -> str:
    r"""Write control, bidirectional, zero-width and other unprintable characters as JSON escapes (`\u202e`).

    Commands to build agents are escaped in the same way. The value of a JSON string does not change, so complete JSON
    documents can be escaped, with `keep="\n"` for their own newlines. Idempotent.
    """
    if not (text.replace(keep, "") if keep else text).isprintable():
        text = "".join(c if c.isprintable() or c in keep else _as_json_escape(c) for c in text)
    if "##" not in text and "::" not in text:  # faster than the pattern, and reports are long
        return text
    return _AGENT_COMMAND.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def compact(value: object) -> str:
    """Return a JSON value on one line, escaped; numbers that JSON lacks become strings."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        from pydantic_core import to_json  # only policies in Python return such values

        plain = to_json(value, inf_nan_mode="strings", fallback=str)
        text = json.dumps(json.loads(plain), ensure_ascii=False)
    return visible(text)


def markdown_text(text: str) -> str:
    """Escape text for a line or a table of GitHub Markdown: no markup, link, mention or emoji.

    Source: Renovate also writes a zero-width space after `@` and `#` to prevent notifications.
    """
    return _CALLING.sub(lambda match: f"{match[0]}&#8203;", _referenced(text))


def markdown_code(text: str) -> str:
    """Return text as a `<code>` element that shows every character, also inside a table."""
    return f"<code>{_referenced(text)}</code>"


def _referenced(text: str) -> str:
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", visible(text))


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


def section(title: str, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a heading and a table; the title and the cells are Markdown already."""
    return f"## {title}\n\n{table(titles, rows)}\n"


def row(cells: Sequence[str]) -> str:
    """Return a row of a table; the cells are Markdown already."""
    return f"| {' | '.join(cells)} |"


def fold(summary: str, body: str) -> str:
    """Return a body folded under its summary."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"
