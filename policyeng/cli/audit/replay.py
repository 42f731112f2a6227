"""`policyeng audit replay`: re-evaluate a run and compare the results."""

from __future__ import annotations

from typing import Annotated

import orjson
import typer

from policyeng.cli import options
from policyeng.cli.audit.options import StoreUrl, store_of
from policyeng.cli.console import print_line
from policyeng.cli.context import plain_format
from policyeng.cli.opa_options import OpaServerOptions
from policyeng.cli.option_groups import with_group
from policyeng.cli.progress import show_progress
from policyeng.report.phrases import count

Number = Annotated[int, typer.Argument(metavar="RUN", help="Run number, as listed by `audit runs`.")]


@with_group("server", OpaServerOptions)
def replay(
    run: Number,
    store: StoreUrl = None,
    config: options.Config = None,
    format_: options.PlainFormat = "text",
    *,
    server: OpaServerOptions,
) -> int:
    """Re-evaluate a run with its own snapshots, policies, parameters, exemptions, clock and engine.

    The exit code is 2 if the evaluations are not identical, byte for byte.

    Examples:
      policyeng audit replay 12
    """
    from policyeng.audit.execution.replay import replay as judge_again

    format_ = plain_format(format_)
    with store_of(store, config) as opened, show_progress(f"re-evaluating run {run}"):
        found = opened.run(run)
        replayed = judge_again(opened, found, server.opa())
    same = replayed.content == found.content
    if format_ == "json":
        differences = [difference._asdict() for difference in replayed.differences]
        document = {**replayed._asdict(), "run": run, "expected": found.content, "same": same}
        print_line(orjson.dumps({**document, "differences": differences}, option=orjson.OPT_INDENT_2).decode())
        return 0 if same else 2
    if same:
        print_line(
            f"run {run}: {count(found.parts, 'part')} re-evaluated, identical results\ncontent {replayed.content}"
        )
        return 0
    for part, path, before, now in replayed.differences:
        print_line(f"policyeng: {part}: {path}: was {before}, now {now}", error=True)
    if replayed.engine != found.engine.version:
        what = f"the run used `{found.engine.name}` {found.engine.version}, the replay {replayed.engine}"
        print_line(f"policyeng: the likely cause is the engine version: {what}", error=True)
    print_line(f"run {run}: {len(replayed.differences)} of {count(found.parts, 'part')} differ")
    print_line(f"content {replayed.content}\nwas     {found.content}")
    return 2
