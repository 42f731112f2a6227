"""CSV and JSON forms of reports."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from io import StringIO

from policyeng.models.validated import ValidatedModel
from policyeng.report.csv import guarded
from policyeng.report.escaping import visible


def as_csv(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return CSV (RFC 4180) with titles and without formulas for spreadsheets."""
    written = StringIO(newline="")
    csv.writer(written).writerows([guarded(visible(cell)) for cell in row] for row in (titles, *rows))
    return written.getvalue()


def as_json(name: str, members: Sequence[ValidatedModel]) -> str:
    """Return a JSON object with a list of the members."""
    listed = [member.model_dump(mode="json", by_alias=True, fallback=str) for member in members]
    return visible(json.dumps({name: listed}, indent=2, ensure_ascii=False), keep="\n") + "\n"
