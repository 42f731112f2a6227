"""The forms of a report on several values, such as estates: text, JSON, CSV and Markdown, by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from policyeng.models.validated import ValidatedModel
from policyeng.report.csv import table_text
from policyeng.report.json import list_text
from policyeng.report.layout import Line, text_form

_Reported = TypeVar("_Reported")
_Listed = TypeVar("_Listed", bound=ValidatedModel)
Forms = Mapping[str, Callable[..., str]]


def table_forms(
    name: str,
    lines: Callable[[_Listed, int], Iterable[Line]],
    markdown: Callable[[_Listed], str],
    columns: Sequence[str],
    rows: Callable[[_Listed], Iterable[Sequence[str]]],
) -> Forms:
    """Return the forms of a list of values of one model.

    Args:
        name: of the list in JSON.
        lines: yields the text of a value, for a width.
        markdown: returns the section of a value, which ends with a newline.
        columns: the titles of CSV.
        rows: yields the rows of a value for CSV.
    """
    return {**prose_forms(lines, markdown, columns, rows), "json": lambda values: list_text(name, values)}


def prose_forms(
    lines: Callable[[_Reported, int], Iterable[Line]],
    markdown: Callable[[_Reported], str],
    columns: Sequence[str],
    rows: Callable[[_Reported], Iterable[Sequence[str]]],
) -> Forms:
    """Return the forms other than JSON of a list of values; the arguments are those of `table_forms`."""

    def every_line(values: Sequence[_Reported], width: int) -> Iterator[Line]:
        return (line for value in values for line in lines(value, width))

    return {
        "text": text_form(every_line),
        "csv": lambda values: table_text([columns, *(row for value in values for row in rows(value))]),
        "markdown": lambda values: "\n".join(map(markdown, values)),
    }
