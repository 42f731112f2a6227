"""`policyeng audit report`: report a run of an estate with its history."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from policyeng.cli import options
from policyeng.cli.audit.options import StoreUrl, store_of
from policyeng.cli.console import print_parts
from policyeng.cli.context import find_known
from policyeng.cli.files import require_directory, write
from policyeng.cli.option_groups import with_group
from policyeng.cli.options import complete_estates
from policyeng.cli.report_options import ReportPrinter, TextOptions
from policyeng.errors import UsageError
from policyeng.frozen import replace

#: The formats for people and spreadsheets, and JSON; the others only make sense for `check`.
SHOWN = ("html", "csv", "csv-bom", "json", "markdown", "text")

Estate = Annotated[
    str | None,
    typer.Argument(
        metavar="ESTATE", help="Estate; may be omitted if there is only one.", autocompletion=complete_estates
    ),
]
Number = Annotated[int | None, typer.Option("--run", metavar="N", min=1, help="Run to report. Default: the newest.")]
Format = Annotated[str, typer.Option("--format", metavar="FORMAT", help=f"Report format: {', '.join(SHOWN)}.")]
ControlsOf = Annotated[
    list[str] | None,
    typer.Option("--framework", metavar="NAME", help="Also report the controls of this framework; repeatable."),
]
Output = Annotated[Path | None, typer.Option(metavar="FILE", help="File to write the report to. Default: print it.")]


@with_group("args", TextOptions)
def report(
    args: TextOptions,
    estate: Estate = None,
    run: Number = None,
    format_: Format = "text",
    output: Output = None,
    owner_tag: options.OwnerTag = "owner",
    framework: ControlsOf = None,
    store: StoreUrl = None,
    config: options.Config = None,
) -> int:
    """Report the newest run of an estate: findings, when they were first seen, and the compliance trend.

    The exit code is 0 if there is a run to report, whatever its findings; use the exit code of `audit run` instead.

    Examples:
      policyeng audit report --format html --output report.html
      policyeng audit report production --summary
      policyeng audit report production --run 12 --format csv --output findings.csv
    """
    from policyeng.audit.run_report import csv_lines, reported, run_to_report
    from policyeng.report.csv import BYTE_ORDER_MARK

    format_ = find_known(format_, SHOWN, "report format")
    group_by = args.grouping([format_])
    require_directory(output, "report")
    if framework and format_.startswith("csv"):
        raise UsageError(f"--framework does not apply to {format_}", remedy="use `audit history --framework`")
    with store_of(store, config) as history:
        meant = run_to_report(history, estate, run)
        if format_.startswith("csv"):
            marked = [BYTE_ORDER_MARK] if format_ == "csv-bom" else []
            _write_or_print(chain(marked, csv_lines(history, meant, owner_tag=owner_tag)), output)
            return 0
        gathered = reported(history, meant, owner_tag=owner_tag)
        if framework:
            from policyeng.audit.diff.trends import evaluate_controls

            results = tuple(evaluate_controls(history, meant, name) for name in framework)
            evaluation = gathered.evaluation.model_copy(update={"frameworks": results})
            gathered = replace(gathered, evaluation=evaluation)
    printer = ReportPrinter(args, format_, (), group_by)
    parts = printer.write_parts(format_, gathered.evaluation, about=gathered.about, printed=output is None)
    _write_or_print(parts, output)
    return 0


def _write_or_print(parts: Iterator[str], output: Path | None) -> None:
    if output is None:
        print_parts(parts)
    else:
        write(output, parts, "report")
