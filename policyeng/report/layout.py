"""Lines for a terminal: headings, paragraphs and labelled fields, wrapped between words, in colour or plain."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator

from policyeng.models import Severity

#: A line as spans of (text, style); a style is a rich one, used only in colour.
Line = tuple[tuple[str, str], ...]

BLANK: Line = ()
#: The columns of a label.
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


def beside(spans: Line, text: str, width: int, *, indent: int, style: str = "") -> Iterator[Line]:
    """Give spans with a text after them where the width allows it, else below them in one piece; nothing if empty."""
    if text and _fits(spans, text, width):
        yield (*spans, ("  ", ""), (text, style))
        return
    yield spans
    if text:
        yield (*margin(indent), (text, style))


def entitled(spans: Line, title: str, width: int, *, indent: int) -> Iterator[Line]:
    """Give spans with a title after them where the width allows it, else below them as a paragraph."""
    if title and _fits(spans, title, width):
        yield (*spans, ("  ", ""), (title, ""))
    else:
        yield spans
        yield from paragraph(title, width, indent=indent)


def paragraph(text: str, width: int, *, indent: int, style: str = "") -> Iterator[Line]:
    """Give a text in lines of one indent."""
    for part in wrapped(text, width - indent):
        yield (*margin(indent), (part, style))


def item(text: str, width: int) -> Iterator[Line]:
    """Give an entry of a list of reasons."""
    for number, part in enumerate(wrapped(text, width - 6)):
        yield (("      " if number else "    - ", ""), (part, ""))


def labelled(
    label: str, text: str, width: int, *, indent: int, style: str = "", label_style: str = "dim"
) -> Iterator[Line]:
    """Give text wrapped beside a label; nothing for an empty text."""
    for number, part in enumerate(wrapped(text, width - indent - LABEL) if text else ()):
        yield *margin(indent), (f"{label if number == 0 else '':<{LABEL}}", label_style), (part, style)


def margin(indent: int) -> Line:
    """Give the spans of an indent: none for 0."""
    return ((" " * indent, ""),) if indent else ()


def wrapped(text: str, width: int) -> list[str]:
    """Give text in lines of a width; words are never broken, so that ids and paths can be copied."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _fits(spans: Line, text: str, width: int) -> bool:
    return sum(len(part) for part, _ in spans) + 2 + len(text) <= width


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
