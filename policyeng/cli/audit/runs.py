"""`policyeng audit runs`: list stored runs."""

from __future__ import annotations

from typing import Annotated

import orjson
import typer

from policyeng.cli import options
from policyeng.cli.audit.options import StoreUrl, store_of
from policyeng.cli.completion import complete_estates
from policyeng.cli.console import print_line
from policyeng.cli.context import plain_format
from policyeng.errors import UsageError, suggest_nearest
from policyeng.report.phrases import count

Estate = Annotated[
    str | None, typer.Argument(metavar="ESTATE", help="Estate. Default: all estates.", autocompletion=complete_estates)
]
Last = Annotated[int, typer.Option(metavar="N", min=1, help="Show only the newest N runs of each estate.")]


def runs(
    estate: Estate = None,
    last: Last = 20,
    store: StoreUrl = None,
    config: options.Config = None,
    format_: options.PlainFormat = "text",
) -> int:
    """List the stored runs, newest last.

    Examples:
      policyeng audit runs
      policyeng audit runs production --last 5 --format json
    """
    format_ = plain_format(format_)
    with store_of(store, config) as opened:
        names = opened.estates()
        if estate is not None and estate not in names:
            remedy = f"choose from {', '.join(names)}" if names else "no estate has a run yet"
            raise UsageError(f"no run of an estate `{estate}`{suggest_nearest(estate, names)}", remedy=remedy)
        found = [run for name in names if estate in (None, name) for run in opened.runs(name, last=last)]
    found.sort(key=lambda run: run.number)
    if format_ == "json":
        document = [orjson.loads(run.model_dump_json(by_alias=True)) for run in found]
        print_line(orjson.dumps({"runs": document}, option=orjson.OPT_INDENT_2).decode())
        return 0
    for run in found:
        summary = run.summary
        counts = f"{summary.pass_} pass, {summary.fail} fail, {summary.unknown} unknown, {summary.error} error"
        when = run.as_of.isoformat().replace("+00:00", "Z")
        line = f"{run.number:>5}  {when}  {run.estate}  {count(run.parts, 'part')}: {counts}; exit {run.exit_code}"
        print_line(f"{line}  {run.hash[:12]}")
    return 0
