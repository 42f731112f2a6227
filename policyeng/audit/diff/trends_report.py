"""Reports of trends and histories of findings as text, Markdown, CSV and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from policyeng.audit.diff.finding_history import FindingHistory, Turn
from policyeng.audit.diff.phrases import cause_sentence
from policyeng.audit.diff.tables import as_csv, as_json
from policyeng.audit.diff.trends import ComplianceTrend, TrendPoint
from policyeng.report.escaping import markdown_code, markdown_text, visible
from policyeng.report.layout import BLANK, STYLES, Line, labelled, render_lines
from policyeng.report.markdown_tables import table
from policyeng.report.phrases import shorten_id, to_the_second


class _Column(NamedTuple):
    title: str
    value: Callable[[TrendPoint], object]


_COLUMNS = (
    _Column("run", lambda point: point.run),
    _Column("as of", lambda point: to_the_second(point.as_of)),
    _Column("parts", lambda point: point.parts),
    _Column("fail", lambda point: point.fail),
    _Column("exempt", lambda point: point.exempt),
    _Column("unknown", lambda point: point.unknown),
    _Column("error", lambda point: point.error),
    _Column("pass", lambda point: point.pass_count),
    _Column("strict %", lambda point: _format_share(point.strict_compliance)),
    _Column("azure %", lambda point: _format_share(point.azure_compliance)),
    _Column("new", lambda point: point.new),
    _Column("changed", lambda point: point.changed),
    _Column("fixed", lambda point: point.fixed),
    _Column("lost", lambda point: point.lost),
    _Column("reopened", lambda point: point.reopened),
    _Column("exit", lambda point: point.exit_code),
)


def _format_share(share: float | None) -> str | None:
    return None if share is None else f"{share:.2f}"


def _cells(point: TrendPoint, nothing: str = "-") -> list[str]:
    values = (column.value(point) for column in _COLUMNS)
    return [nothing if value is None else str(value) for value in values]


def render_trends_text(courses: Sequence[ComplianceTrend]) -> str:
    """Return a table for each estate."""
    return "\n".join("".join(_render_trend(course)) for course in courses)


def _render_trend(course: ComplianceTrend) -> Iterator[str]:
    rows = [[column.title for column in _COLUMNS], *map(_cells, course.points)]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    yield f"{visible(course.estate)}\n"
    for row in rows:
        yield "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) + "\n"


def render_trends_markdown(courses: Sequence[ComplianceTrend]) -> str:
    """Return a heading and a table for each estate."""
    titles = [column.title for column in _COLUMNS]
    parts = (f"## {markdown_text(one.estate)}\n\n{table(titles, map(_cells, one.points))}\n" for one in courses)
    return "\n".join(parts)


def render_trends_csv(courses: Sequence[ComplianceTrend]) -> str:
    """Return a row for each run of each estate."""
    rows = ([course.estate, *_cells(point, "")] for course in courses for point in course.points)
    return as_csv(["estate", *(column.title for column in _COLUMNS)], rows)


def render_histories_text(lives: Sequence[FindingHistory], *, color: bool = False, width: int = 100) -> str:
    """Return each finding with its changes."""
    return render_lines((line for life in lives for line in _render_history(life, max(width, 40))), color=color)


def _render_history(life: FindingHistory, width: int) -> Iterator[Line]:
    head = (visible(life.policy), "bold"), (f"  {life.severity}", STYLES[life.severity])
    yield (*head, (f"  on {shorten_id(life.resource)}, {visible(life.estate)}: {visible(life.part)}", ""))
    yield ((visible(life.resource), "dim"),)
    for turn in life.turns:
        yield from labelled(f"run {turn.run}", f"{to_the_second(turn.as_of)}  {turn_words(turn)}", width, indent=2)
        for number, because in enumerate(_describe_reason(turn)):
            yield from labelled("or because" if number else "because", because, width, indent=4, style="magenta")
    yield BLANK


def turn_words(turn: Turn) -> str:
    """Return `new: fail`, or `fixed`."""
    if turn.outcome is None:
        return turn.turn
    return f"{turn.turn}: {turn.outcome}{' (exempt)' if turn.exempt else ''}"


def _describe_reason(turn: Turn) -> list[str]:
    said = [" and ".join(map(cause_sentence, together)) for together in turn.causes]
    return said or [visible(turn.note)] * bool(turn.note)


def render_histories_markdown(lives: Sequence[FindingHistory]) -> str:
    """Return a heading and a table for each finding."""
    parts = []
    for life in lives:
        rows = [
            (
                str(turn.run),
                to_the_second(turn.as_of),
                turn_words(turn),
                "<br>or ".join(map(markdown_text, _describe_reason(turn))),
            )
            for turn in life.turns
        ]
        where = f"{markdown_code(life.policy)} on {markdown_code(life.resource)}, {markdown_code(life.part)}"
        parts.append(f"## {where}\n\n{table(('Run', 'As of', 'Turn', 'Because'), rows)}\n")
    return "\n".join(parts)


def render_histories_csv(lives: Sequence[FindingHistory]) -> str:
    """Return a row for each change of each finding."""
    rows = (
        [
            *(life.estate, life.part, life.policy, str(life.severity), life.resource, str(turn.run)),
            *(to_the_second(turn.as_of), turn_words(turn), "; or ".join(_describe_reason(turn))),
        ]
        for life in lives
        for turn in life.turns
    )
    return as_csv(["estate", "part", "policy", "severity", "resource", "run", "as of", "turn", "because"], rows)


COURSES: Mapping[str, Callable[[Sequence[ComplianceTrend]], str]] = {
    "text": render_trends_text,
    "json": lambda courses: as_json("estates", courses),
    "csv": render_trends_csv,
    "markdown": render_trends_markdown,
}
LIVES: Mapping[str, Callable[[Sequence[FindingHistory]], str]] = {
    "text": render_histories_text,
    "json": lambda lives: as_json("lives", lives),
    "csv": render_histories_csv,
    "markdown": render_histories_markdown,
}
