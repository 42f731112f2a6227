"""`policyeng audit evidence`: pack what a run is based on for an auditor, and verify such a pack."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer

from policyeng.cli import options
from policyeng.cli.audit.options import StoreUrl, store_of
from policyeng.cli.console import print_line
from policyeng.cli.context import plain_format
from policyeng.cli.files import require_directory, write
from policyeng.cli.opa_options import OpaServerOptions
from policyeng.cli.option_groups import with_group
from policyeng.cli.progress import show_progress
from policyeng.errors import UsageError
from policyeng.report.phrases import count

Number = Annotated[
    int | None, typer.Argument(metavar="RUN", min=1, help="Run number, as listed by `audit runs`.", show_default=False)
]
Output = Annotated[Path | None, typer.Option(metavar="FILE", help="File to write the pack to (.tar.gz).")]
Verify = Annotated[Path | None, typer.Option(metavar="FILE", help="Pack to verify instead; no store is needed.")]
Expect = Annotated[
    list[str] | None,
    typer.Option(metavar="HASH", help="With --verify: hash of a run that the pack must lead to; repeatable."),
]
RunPython = Annotated[
    bool,
    typer.Option("--run-python", help="With --verify: run Python policies of the pack that are not built in."),
]


@with_group("server", OpaServerOptions)
def evidence(
    run: Number = None,
    output: Output = None,
    verify: Verify = None,
    expect: Expect = None,
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
    from importlib.util import find_spec

    if not all(map(find_spec, ("sqlalchemy", "alembic"))):
        raise UsageError("audits need SQLAlchemy and Alembic", remedy="install `policyeng[audit]`")
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
