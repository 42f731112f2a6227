"""`policyeng audit prune`: delete data that only old runs need."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import orjson
import typer

from policyeng.cli import options
from policyeng.cli.audit.options import StoreUrl, store_of
from policyeng.cli.console import print_line
from policyeng.cli.context import plain_format
from policyeng.cli.progress import show_progress
from policyeng.errors import UsageError
from policyeng.report.phrases import count

#: More days than the age of any store.
_MOST_DAYS = 36500
KeepDays = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, max=_MOST_DAYS, help="Keep the runs of the last N days."),
]
KeepRuns = Annotated[int | None, typer.Option(metavar="N", min=1, help="Keep the newest N runs of each estate.")]


def prune(
    keep_days: KeepDays = None,
    keep_runs: KeepRuns = None,
    store: StoreUrl = None,
    config: options.Config = None,
    format_: options.PlainFormat = "text",
) -> int:
    """Delete snapshots, evaluations and policies of old runs; headers, hashes and finding history remain.

    With both options, a run is kept if either of them keeps it. The newest run of each estate is always kept.

    Examples:
      policyeng audit prune --keep-days 90
      policyeng audit prune --keep-runs 30
    """
    from policyeng.audit.store.retention import prune as take_away

    format_ = plain_format(format_)
    if keep_days is None and keep_runs is None:
        raise UsageError("no retention is given", remedy="add `--keep-days N` or `--keep-runs N`")
    now = datetime.now(UTC)
    since = None if keep_days is None else now - timedelta(days=keep_days)
    with store_of(store, config) as opened, show_progress("pruning"):
        pruned = take_away(opened, now=now, keep_runs=keep_runs, keep_since=since)
    if format_ == "json":
        print_line(orjson.dumps(pruned._asdict(), option=orjson.OPT_INDENT_2).decode())
        return 0
    print_line(f"deleted {count(pruned.contents, 'object')} ({pruned.size} bytes) of {count(len(pruned.runs), 'run')}")
    if pruned.hash:
        print_line(f"retention {pruned.hash}")
    return 0
