"""`policyeng audit verify-history`: verify that the audit store was not altered."""

from __future__ import annotations

from typing import Annotated

import orjson
import typer

from policyeng.cli import options
from policyeng.cli.audit.options import StoreUrl
from policyeng.cli.console import print_line
from policyeng.cli.context import plain_format, settings_of
from policyeng.report.phrases import count

Expect = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HASH", help="Hash of a run or retention, recorded elsewhere, that the store must contain; repeatable."
    ),
]


def verify_history(
    expect: Expect = None,
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
    held = f"{count(len(verified.faults), 'fault')}" if verified.faults else "no row was altered"
    print_line(f"{count(verified.runs, 'run')}: {held}")
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
