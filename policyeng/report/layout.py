"""Lines for a terminal: headings, paragraphs, labeled fields and findings, wrapped between words, in color or plain."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from policyeng.models import Finding, LedgerEntry, Problem, Severity, relevant_entries
from policyeng.report.escaping import visible
from policyeng.report.phrases import ledger_sentence, problem_sentence

_Reported = TypeVar("_Reported")

#: A line as spans of (text, style); rich styles, applied only in color.
Line = tuple[tuple[str, str], ...]

BLANK: Line = ()
#: The width of a label in columns.
LABEL = 10
STYLES = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
    Severity.INFO: "blue",
}
_EXITS = {0: "bold green", 1: "bold red"}


def render_lines(lines: Iterable[Line], *, color: bool) -> str:
    """Return the lines as text; `color` adds ANSI colors and does not change the text."""
    paint = _choose_painter() if color else _plain
    return "".join(f"{paint(line)}\n" for line in lines)


def text_form(lines: Callable[[_Reported, int], Iterable[Line]]) -> Callable[..., str]:
    """Return a function that renders a value as text, from a function of the value and a width that yields lines."""

    def render(value: _Reported, *, color: bool = False, width: int = 100) -> str:
        """Return the text; `color` adds ANSI colors, and `width` is the number of columns to wrap at, at least 40."""
        return render_lines(lines(value, max(width, 40)), color=color)

    return render


def heading(title: str) -> Iterator[Line]:
    """Yield an underlined title."""
    yield ((title, "bold"),)
    yield (("=" * len(title), "bold"),)


def place_text(spans: Line, text: str, width: int, *, indent: int, style: str = "") -> Iterator[Line]:
    """Yield spans followed by a text, on the same line if it fits, else unwrapped on the next line."""
    if text and _fits(spans, text, width):
        yield (*spans, ("  ", ""), (text, style))
        return
    yield spans
    if text:
        yield (*make_margin(indent), (text, style))


def place_title(spans: Line, title: str, width: int, *, indent: int) -> Iterator[Line]:
    """Yield spans followed by a title, on the same line if it fits, else as a paragraph below."""
    if title and _fits(spans, title, width):
        yield (*spans, ("  ", ""), (title, ""))
    else:
        yield spans
        yield from wrap_paragraph(title, width, indent=indent)


def wrap_paragraph(text: str, width: int, *, indent: int, style: str = "") -> Iterator[Line]:
    """Yield a text wrapped with an indent."""
    for part in wrap(text, width - indent):
        yield (*make_margin(indent), (part, style))


def item(text: str, width: int) -> Iterator[Line]:
    """Yield a list item."""
    for number, part in enumerate(wrap(text, width - 6)):
        yield (("      " if number else "    - ", ""), (part, ""))


def labelled(
    label: str, text: str, width: int, *, indent: int, style: str = "", label_style: str = "dim"
) -> Iterator[Line]:
    """Yield a label with wrapped text next to it; nothing if the text is empty."""
    for number, part in enumerate(wrap(text, width - indent - LABEL) if text else ()):
        yield *make_margin(indent), (f"{label if number == 0 else '':<{LABEL}}", label_style), (part, style)


def conclusion(text: str, exit_code: int, width: int) -> Iterator[Line]:
    """Yield the last paragraph of a report, in the color of the exit code."""
    yield from wrap_paragraph(text, width, indent=0, style=_EXITS.get(exit_code, "bold yellow"))


def problem_lines(problem: Problem, width: int) -> Iterator[Line]:
    """Yield a problem, labeled with its level."""
    style = "bold red" if problem.level == "error" else "yellow"
    yield from labelled(problem.level, problem_sentence(problem), width, indent=2, label_style=style)


def ledger_section(ledger: Sequence[LedgerEntry], width: int) -> Iterator[Line]:
    """Yield one line with how much was not read; nothing if everything was."""
    if sentence := ledger_sentence(ledger):
        style = "yellow" if relevant_entries(ledger) else "dim"
        yield from labelled("not read", f"{sentence} (--show-skipped lists all)", width, indent=2, label_style=style)
        yield BLANK


def problems_section(problems: Sequence[Problem], width: int) -> Iterator[Line]:
    """Yield the problems below a heading; nothing without any."""
    if problems:
        yield from heading(f"Problems ({len(problems)})")
        for problem in problems:
            yield from problem_lines(problem, width)
        yield BLANK


def finding_head(finding: Finding, *, lead: str = "", style: str = "") -> Line:
    """Return the spans of the severity and the policy of a finding, after `lead`; `style` is for the severity."""
    severity = (f"{lead}{finding.severity:<{LABEL}}", style or STYLES[finding.severity])
    return severity, (visible(finding.policy), "bold")


def align(rows: Iterable[Sequence[str]], justify: Callable[[str, int], str] = str.ljust) -> Iterator[Line]:
    """Yield the rows of a table in columns."""
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield (("  ".join(map(justify, row, widths)).rstrip(), ""),)


def make_margin(indent: int) -> Line:
    """Return the spans of an indent: none for 0."""
    return ((" " * indent, ""),) if indent else ()


def wrap(text: str, width: int) -> list[str]:
    """Wrap text to a width; words are never broken, because people copy ids and paths."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _fits(spans: Line, text: str, width: int) -> bool:
    return sum(len(part) for part, _ in spans) + 2 + len(text) <= width


def _plain(line: Line) -> str:
    return "".join(text for text, _ in line)


def _choose_painter() -> Callable[[Line], str]:
    from rich.color import ColorSystem
    from rich.style import Style

    def paint(line: Line) -> str:
        return "".join(
            Style.parse(style).render(text, color_system=ColorSystem.STANDARD) if style else text
            for text, style in line
        )

    return paint
