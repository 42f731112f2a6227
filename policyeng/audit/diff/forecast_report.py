"""Reports of forecasts as text, Markdown, CSV and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from policyeng.audit.diff.forecast import Outlook, UpcomingChange
from policyeng.audit.diff.phrases import causes_sentences, flip_words
from policyeng.audit.diff.tables import as_csv, as_json
from policyeng.report.escaping import markdown_code, markdown_text, visible
from policyeng.report.layout import (
    BLANK,
    LABEL,
    STYLES,
    Line,
    heading,
    item,
    labelled,
    place_title,
    render_lines,
    wrap_paragraph,
)
from policyeng.report.locations import reasons
from policyeng.report.markdown_tables import table
from policyeng.report.phrases import count, shorten_id, to_the_second

_EXITS = {0: "bold green", 1: "bold red"}


def text(outlooks: Sequence[Outlook], *, color: bool = False, width: int = 100) -> str:
    """Return the flips by their times, with causes."""
    lines = (line for one in outlooks for line in _lines(one, max(width, 40)))
    return render_lines(lines, color=color)


def _lines(outlook: Outlook, width: int) -> Iterator[Line]:
    for at, together in groupby(outlook.coming, lambda one: one.at):
        days = (at - outlook.begins).days
        yield from heading(f"{to_the_second(at)}, in {count(days, 'day')}")
        for one in together:
            yield from _render_flips(one, width)
    for problem in outlook.problems:
        yield from labelled(problem.level, visible(f"{problem.place}: {problem.message}"), width, indent=2)
    style = _EXITS.get(outlook.exit_code, "bold yellow")
    yield from wrap_paragraph(conclude(outlook), width, indent=0, style=style)


def _render_flips(one: UpcomingChange, width: int) -> Iterator[Line]:
    finding = one.flip.finding
    head: Line = ((f"{finding.severity:<{LABEL}}", STYLES[finding.severity]), (visible(finding.policy), "bold"))
    yield from place_title(head, visible(finding.title), width, indent=2)
    where = f"{shorten_id(finding.resource)}{f', {visible(one.part)}' if one.part else ''}"
    yield from labelled("on", where, width, indent=2)
    yield from labelled("", visible(finding.resource), width, indent=2, style="dim")
    yield from labelled("flip", flip_words(one.flip), width, indent=2)
    if one.flip.after is finding.outcome:
        for reason in reasons(finding, finding.location):
            yield from item(reason, width)
    yield from labelled("because", " or ".join(causes_sentences(one.flip)), width, indent=2, style="magenta")
    yield BLANK


def conclude(outlook: Outlook) -> str:
    """Return the exit code and the number of flips in the period."""
    run = f", run {outlook.run}" if outlook.run else ""
    words = f"{count(len(outlook.coming), 'finding')} will flip" if outlook.coming else "nothing will flip"
    span = f"from {to_the_second(outlook.begins)} to {to_the_second(outlook.until)}"
    return visible(f"exit {outlook.exit_code}: {outlook.estate}{run}: {words} {span} if nothing changes")


def markdown(outlooks: Sequence[Outlook]) -> str:
    """Return a heading and a table for each estate."""
    titles = ("At", "Severity", "Policy", "Part", "Resource", "Flip", "Because")
    return "\n".join(
        f"## {markdown_text(conclude(one))}\n\n{table(titles, map(_row, one.coming))}\n" for one in outlooks
    )


def _row(one: UpcomingChange) -> tuple[str, ...]:
    finding = one.flip.finding
    return (
        to_the_second(one.at),
        str(finding.severity),
        f"{markdown_code(finding.policy)}<br>{markdown_text(finding.title)}",
        markdown_code(one.part) if one.part else "",
        markdown_code(shorten_id(finding.resource)),
        flip_words(one.flip),
        "<br>or ".join(map(markdown_text, causes_sentences(one.flip))),
    )


def csv(outlooks: Sequence[Outlook]) -> str:
    """Return a row for each flip."""
    rows = (
        [
            *(outlook.estate, to_the_second(one.at), one.flip.finding.severity, one.flip.finding.policy),
            *(one.flip.finding.title, one.part, one.flip.finding.resource, flip_words(one.flip)),
            "; or ".join(causes_sentences(one.flip)),
        ]
        for outlook in outlooks
        for one in outlook.coming
    )
    return as_csv(("estate", "at", "severity", "policy", "title", "part", "resource", "flip", "because"), rows)


FORMS: Mapping[str, Callable[[Sequence[Outlook]], str]] = {
    "text": text,
    "json": lambda outlooks: as_json("outlooks", outlooks),
    "csv": csv,
    "markdown": markdown,
}
