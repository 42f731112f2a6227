"""Lines for a terminal: headings, wrapped paragraphs and labelled fields, with or without colour."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator

from policyeng.models import Severity

#: A line as spans of (text, style); a style is a rich one, used only in colour.
Line = tuple[tuple[str, str], ...]

BLANK: Line = ()
#: Columns that a label takes.
LABEL = 10
STYLES = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
    Severity.INFO: "blue",
}


def printed(lines: Iterable[Line], *, color: bool) -> str:
    """Give the lines as text; with `color`, ANSI colours are added and the text stays the same."""
    paint = _painter() if color else _plain
    return "".join(f"{paint(line)}\n" for line in lines)


def heading(title: str) -> Iterator[Line]:
    """Give a title, underlined."""
    yield ((title, "bold"),)
    yield (("=" * len(title), "bold"),)


def paragraph(text: str, width: int, *, indent: int, style: str = "") -> Iterator[Line]:
    """Give text wrapped at a width, all of it indented."""
    for part in wrapped(text, width - indent):
        yield ((" " * indent, ""), (part, style))


def item(text: str, width: int) -> Iterator[Line]:
    """Give text wrapped beside a hyphen."""
    for number, part in enumerate(wrapped(text, width - 6)):
        yield (("      " if number else "    - ", ""), (part, ""))


def labelled(
    label: str, text: str, width: int, *, indent: int, style: str = "", label_style: str = "dim"
) -> Iterator[Line]:
    """Give text wrapped beside a label; nothing when there is no text."""
    margin = " " * indent
    for number, part in enumerate(wrapped(text, width - indent - LABEL) if text else ()):
        yield (margin, ""), (f"{label if number == 0 else '':<{LABEL}}", label_style), (part, style)


def wrapped(text: str, width: int) -> list[str]:
    """Give text in lines of a width; words are never broken, so that ids and paths can be copied."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _plain(line: Line) -> str:
    return "".join(text for text, _ in line)


def _painter() -> Callable[[Line], str]:
    from rich.color import ColorSystem
    from rich.style import Style

    def paint(line: Line) -> str:
        return "".join(
            Style.parse(style).render(text, color_system=ColorSystem.STANDARD) if style else text
            for text, style in line
        )

    return paint
