"""`policyeng test`: run the cases of a bundle and the absent tests that its headers imply."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from policyeng.cli import options
from policyeng.cli.loading import selected_bundle, settings_of
from policyeng.cli.printing import say
from policyeng.cli.writing import write
from policyeng.errors import BundleError


def test(
    policy: options.Policies = None,
    data: options.GivenData = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a JUnit report.")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Name every case, not only those that fail.")
    ] = False,
    config: options.Config = None,
    *,
    trust: Mapping[str, object],
) -> int:
    """Run the cases of every policy, and for every inspected field the test of its absence."""
    from policyeng.verify.case_runs import run_cases  # only this command pays for it

    bundle = selected_bundle(policy, settings_of(trust, config), data, select, ignore)
    bundle.run_python(twins=True)
    for path in policy or ():
        if path.is_file():
            raise BundleError(
                "an archive carries no cases", place=(str(path),), remedy="name the directory it is built from"
            )
    runs = list(run_cases(bundle))
    failed = [run for run in runs if run.reason]
    for run in runs:
        if run.reason or verbose:
            typer.echo(
                f"{'FAIL' if run.reason else 'ok  '} {run.policy} {run.name}{f': {run.reason}' if run.reason else ''}"
            )
    if junit:
        from policyeng.verify.case_junit import render

        write(junit, f"{render(runs)}\n", "JUnit report")
    without = [entry.id for entry in bundle.policies if entry.cases is None]
    if without:
        say(f"no cases: {', '.join(without)}", error=True)
    typer.echo(f"{len(runs) - len(failed)} passed, {len(failed)} failed")
    if not runs:
        say("policyeng: no case was found; put a cases.yaml beside each policy", error=True)
        return 2
    return int(bool(failed))
