"""`policyeng audit runs`, `replay`, `evidence`, `verify-history` and `prune`: stored runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import orjson
import typer

from policyeng.cli import options
from policyeng.cli.audit.options import StoreUrl, store_of
from policyeng.cli.console import print_line, show_progress
from policyeng.cli.context import plain_format, settings_of
from policyeng.cli.evaluation_options import OpaServerOptions
from policyeng.cli.files import require_directory, write
from policyeng.cli.option_groups import with_group
from policyeng.cli.options import complete_estates
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
    from policyeng.audit.store.integrity import prune as take_away

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


ExpectInStore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HASH", help="Hash of a run or retention, recorded elsewhere, that the store must contain; repeatable."
    ),
]


def verify_history(
    expect: ExpectInStore = None,
    store: StoreUrl = None,
    config: options.Config = None,
    format_: options.PlainFormat = "text",
) -> int:
    """Verify that no row of the audit store was altered; exit code 2 if one was.

    The store alone cannot show that its newest runs were deleted. Record the head that `audit run` prints in another
    place, and pass it with --expect or set `expect` in the configuration, which `audit run` also checks.

    Examples:
      policyeng audit verify-history
      policyeng audit verify-history --expect fd89c2cba7d2a25b05c369f9d3e65f70895da4c314d5f0babc52e46c4fa6a444
    """
    from policyeng.audit.store import open_store
    from policyeng.audit.store.integrity import verify

    format_ = plain_format(format_)
    settings = settings_of({"store": store}, config)
    with open_store(settings.store) as opened:
        verified = verify(opened, [*(expect or ()), *settings.expect])
    code = 2 if verified.faults else 0
    if format_ == "json":
        faults = [fault._asdict() for fault in verified.faults]
        document = {**verified._asdict(), "faults": faults, "exitCode": code}
        print_line(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return code
    for fault in verified.faults:
        run = "" if fault.run is None else f" run {fault.run}:"
        print_line(f"policyeng: {fault.table}:{run} {fault.message}", error=True)
    verdict = f"{count(len(verified.faults), 'fault')}" if verified.faults else "no row was altered"
    print_line(f"{count(verified.runs, 'run')}: {verdict}")
    if verified.pruned:
        print_line(f"pruned {count(len(verified.pruned), 'run')}: {_format_ranges(verified.pruned)}")
    if verified.unused:
        print_line(f"{count(verified.unused, 'unused object')}; run `policyeng audit prune` to delete unused objects")
    print_line(f"head {verified.head or 'none'}")
    if verified.retention:
        print_line(f"retention {verified.retention}")
    return code


def _format_ranges(numbers: list[int]) -> str:
    """Format numbers with ranges: `1-4, 7`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(f"{first}-{last}" if first < last else str(first) for first, last in ranges)


RunNumber = Annotated[int, typer.Argument(metavar="RUN", help="Run number, as listed by `audit runs`.")]


@with_group("server", OpaServerOptions)
def replay(
    run: RunNumber,
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
    from policyeng.audit.replay import replay as replay_run

    format_ = plain_format(format_)
    with store_of(store, config) as opened, show_progress(f"re-evaluating run {run}"):
        found = opened.run(run)
        replayed = replay_run(opened, found, server.opa())
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


OptionalRunNumber = Annotated[
    int | None, typer.Argument(metavar="RUN", min=1, help="Run number, as listed by `audit runs`.", show_default=False)
]
Output = Annotated[Path | None, typer.Option(metavar="FILE", help="File to write the pack to (.tar.gz).")]
Verify = Annotated[Path | None, typer.Option(metavar="FILE", help="Pack to verify instead; no store is needed.")]
ExpectInPack = Annotated[
    list[str] | None,
    typer.Option(metavar="HASH", help="With --verify: hash of a run that the pack must lead to; repeatable."),
]
RunPython = Annotated[
    bool,
    typer.Option("--run-python", help="With --verify: run Python policies of the pack that are not built in."),
]


@with_group("server", OpaServerOptions)
def evidence(
    run: OptionalRunNumber = None,
    output: Output = None,
    verify: Verify = None,
    expect: ExpectInPack = None,
    run_python: RunPython = False,
    store: StoreUrl = None,
    config: options.Config = None,
    format_: options.PlainFormat = "text",
    *,
    server: OpaServerOptions,
) -> int:
    """Pack the reports, snapshots, policies and hashes of a run for an auditor, or verify such a pack.

    Verification compares all digests, follows the hashes to the head, and repeats the evaluation. Exit codes: 0
    verified, 1 something does not match, 2 the pack cannot be read or results cannot be compared.

    Examples:
      policyeng audit evidence 12 --output run-12.tar.gz
      policyeng audit evidence --verify run-12.tar.gz --expect 4f0c21d94d35
    """
    format_ = plain_format(format_)
    if verify is not None:
        if run is not None or output is not None:
            raise UsageError("`--verify` excludes RUN and --output", remedy="remove them")
        return _verify(verify, expect or [], server, format_, run_python=run_python)
    if run is None or output is None:
        raise UsageError("a run and a file are required", remedy="use `policyeng audit evidence RUN --output FILE`")
    if expect or run_python:
        raise UsageError("--expect and --run-python apply to --verify only", remedy="remove them")
    from policyeng.audit.evidence_pack import build_pack

    require_directory(output, "pack")
    with store_of(store, config) as opened, show_progress(f"packing run {run}"):
        content, head = build_pack(opened, run), opened.head()
    write(output, content, "pack")
    digest = "" if head is None else head.hash
    if format_ == "json":
        document = {"run": run, "output": str(output), "bytes": len(content), "head": digest}
        print_line(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    else:
        print_line(f"run {run}: {output}, {len(content)} bytes\nhead {digest}")
    return 0


def _verify(path: Path, expected: list[str], server: OpaServerOptions, format_: str, *, run_python: bool) -> int:
    from policyeng.audit.evidence_pack import verify_pack

    with show_progress("verifying the pack"):
        verified = verify_pack(path, expected, server.opa(), run_python=run_python)
    run, faults, undecided = verified.run, verified.faults, verified.undecided
    code = 1 if faults else 2 if undecided else 0
    if format_ == "json":
        document = {
            "run": run.number,
            "estate": run.estate,
            "hash": run.hash,
            "head": verified.head,
            "faults": [fault._asdict() for fault in faults],
            "undecided": undecided,
            "exitCode": code,
        }
        print_line(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return code
    for fault in faults:
        print_line(f"policyeng: {path}: {fault.member}: {fault.message}", error=True)
    for reason in undecided:
        print_line(f"policyeng: {path}: not compared: {reason}", error=True)
    result = count(len(faults), "fault") if faults else "not fully verified" if undecided else "verified"
    print_line(f"run {run.number} of {run.estate}, {count(run.parts, 'part')}: {result}\nhead {verified.head}")
    return code
