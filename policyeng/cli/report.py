"""`policyeng report`: convert a saved JSON report to other formats."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from policyeng.cli.option_groups import with_options
from policyeng.cli.report_options import ReportOptions
from policyeng.models import Evaluation
from policyeng.sources import read_report

SavedReport = Annotated[
    str, typer.Argument(metavar="FILE", help="JSON report that `check` wrote; - reads standard input.")
]


@with_options(ReportOptions)
def report(file: SavedReport, args: ReportOptions) -> int:
    """Convert a JSON report of `check` to other formats, without evaluating anything again.

    The exit code is 0 if the report can be read, whatever its findings.

    Examples:
      policyeng check . --output json=report.json
      policyeng report report.json --format markdown
      policyeng report report.json --summary --output html=report.html --output sarif=report.sarif
    """
    printer = args.printer(exit_zero=True)
    stdin = sys.stdin.buffer.read() if file == "-" and sys.stdin is not None else None
    evaluation = read_report(file, stdin=stdin)
    profile = _profile_of(evaluation)
    printer.write_files(evaluation, profile)
    printer.print(evaluation, profile)
    return 0


def _profile_of(evaluation: Evaluation) -> str | None:
    """Return the parameter profile of an evaluation, as its settings state it."""
    stated = (change.value for change in evaluation.settings.changes if change.setting == "profile")
    return next((str(value) for value in stated), None)
