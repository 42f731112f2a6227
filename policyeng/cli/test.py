"""`policyeng test`: run the test cases, the generated tests for absent fields and the Rego unit tests of a bundle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from policyeng.cli import options
from policyeng.cli.console import print_line
from policyeng.cli.context import plain_format
from policyeng.cli.files import write
from policyeng.cli.option_groups import with_options
from policyeng.cli.policy_options import SelectionOptions
from policyeng.cli.progress import show_progress
from policyeng.errors import BundleError
from policyeng.frozen import frozen
from policyeng.models import JsonObject
from policyeng.report.phrases import count

if TYPE_CHECKING:
    from policyeng.testing.rego_tests import UnitTest
    from policyeng.testing.runner import CaseRun


@frozen(kw_only=True)
class CaseOptions(SelectionOptions):
    """The options of `policyeng test`."""

    coverage: Annotated[
        bool,
        typer.Option("--coverage", help="Print the Rego lines that no test covers; exit 1 if there are any."),
    ] = False
    format_: options.PlainFormat = "text"
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a JUnit report.")] = None
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="List all test cases, not only failures.")] = False


@with_options(CaseOptions)
def test(asked: CaseOptions) -> int:
    """Run the test cases of every policy, the generated tests for absent fields and the Rego unit tests."""
    from policyeng.engines.embedded import use_program  # only this command loads these
    from policyeng.rego.syntax import lines_of
    from policyeng.testing.rego_tests import lines_missed, needs_session, open_session, run_unit_tests
    from policyeng.testing.runner import find_misspelled_pointers, run_cases

    format_, coverage = plain_format(asked.format_), asked.coverage
    bundle = asked.bundle(asked.settings())
    bundle.run_python(twins=True)
    for path in asked.policies:
        if path.is_file():
            raise BundleError(
                "an archive contains no test cases", place=(str(path),), remedy="pass the directory it was built from"
            )
    session = None
    if coverage or needs_session(bundle):
        whole = not (asked.select or asked.ignore)
        session = open_session(bundle, lambda line: print_line(line, error=True), whole=whole, cover=coverage)
    with use_program(session.program, bundle) if session else nullcontext(), show_progress("testing", "policies"):
        runs = list(run_cases(bundle))
    tests = list(run_unit_tests(session)) if session else []
    missed = lines_missed(session) if session and coverage else {}
    counted = sum(len(lines_of(module)) for module in session.modules) if session and coverage else 0
    failed = sum(bool(run.reason) for run in runs) + sum(found.outcome in ("failed", "error") for found in tests)
    if asked.junit:
        from policyeng.testing.junit import render

        write(asked.junit, f"{render(runs, tests)}\n", "JUnit report")
    for remark in find_misspelled_pointers(bundle):
        print_line(f"warning: {remark}", error=True)
    without = [entry.id for entry in bundle.policies if entry.cases is None]
    if without:
        print_line(f"no cases: {', '.join(without)}", error=True)
    if format_ == "json":
        found: JsonObject = {"cases": list(map(_object, runs)), "tests": list(map(asdict, tests))}
        if coverage:
            found["coverage"] = {"lines": counted, "missed": missed}
        typer.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2))
    else:
        _print(runs, tests, verbose=asked.verbose)
        if coverage:
            _print_coverage(missed, counted)
        skipped = sum(found.outcome == "skipped" for found in tests)
        passed = len(runs) + len(tests) - failed - skipped
        typer.echo(f"{passed} passed, {failed} failed{f', {skipped} skipped' if skipped else ''}")
    if not runs and not tests:
        print_line("policyeng: no test cases found; add a `cases.yaml` next to each policy", error=True)
        return 2
    return int(bool(failed or missed))


def _object(run: CaseRun) -> JsonObject:
    return {**asdict(run), "outcome": "failed" if run.reason else "passed"}


def _print(runs: Iterable[CaseRun], tests: Iterable[UnitTest], *, verbose: bool) -> None:
    for run in runs:
        if run.reason:
            typer.echo(f"FAIL {run.policy} {run.name}: {run.reason}")
            typer.echo(f"  {run.file}:{run.line}{f': patch: {run.edit}' if run.edit else ''}")
        elif verbose:
            typer.echo(f"ok   {run.policy} {run.name}")
    for test in tests:
        name = f"{test.package}.{test.name}"
        if test.outcome in ("failed", "error"):
            typer.echo(f"{'FAIL' if test.outcome == 'failed' else 'ERROR'} {name}: {test.reason}")
            typer.echo(f"  {test.file}:{test.line}")
        elif verbose or test.outcome == "skipped":
            typer.echo(f"{'ok  ' if test.outcome == 'passed' else 'skip'} {name}")


def _print_coverage(missed: Mapping[str, Sequence[int]], counted: int) -> None:
    for file, lines in missed.items():
        typer.echo(f"{file}: no test covers {'line' if len(lines) == 1 else 'lines'} {_ranges(lines)}")
    covered = counted - sum(map(len, missed.values()))
    typer.echo(f"{covered} of {count(counted, 'line')} covered")


def _ranges(lines: Sequence[int]) -> str:
    """Format numbers, with consecutive ones as ranges."""
    parts: list[list[int]] = []
    for line in lines:
        if parts and line == parts[-1][1] + 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
