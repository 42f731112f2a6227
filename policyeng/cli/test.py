"""`policyeng test`: run the test cases, the generated tests for absent fields and the Rego unit tests of a bundle."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from policyeng.bundle.assembling import path_given
from policyeng.cli import options
from policyeng.cli.console import print_line, show_progress
from policyeng.cli.context import plain_format
from policyeng.cli.evaluation_options import SelectionOptions
from policyeng.cli.files import write
from policyeng.cli.option_groups import with_options
from policyeng.errors import BundleError, PolicyengError, UsageError
from policyeng.facts.catalogue import built_in_root
from policyeng.frozen import frozen
from policyeng.models import JsonObject
from policyeng.report.phrases import count

if TYPE_CHECKING:
    from policyeng.testing.rego_tests import UnitTest
    from policyeng.testing.runner import CaseRun

#: The seconds between two looks at the files with `--watch`.
_INTERVAL = 0.3


@frozen(kw_only=True)
class CaseOptions(SelectionOptions):
    """The options of `policyeng test`."""

    coverage: Annotated[
        bool,
        typer.Option("--coverage", help="Print the Rego lines that no test covers; exit 1 if there are any."),
    ] = False
    case: Annotated[str, typer.Option(metavar="NAME", help="Run only the cases with this name.")] = ""
    watch: Annotated[
        bool, typer.Option("--watch", help="Run the tests again whenever a file of the policies changes.")
    ] = False
    format_: options.PlainFormat = "text"
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a JUnit report.")] = None
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="List all test cases, not only failures.")] = False


@with_options(CaseOptions)
def test(args: CaseOptions) -> int:
    """Run the test cases of every policy, the generated tests for absent fields and the Rego unit tests.

    Examples:
      policyeng test --policy policies
      policyeng test --policy policies --select ORG-ACME-001 --case "a wrong value"
      policyeng test --policy policies --watch
    """
    from policyeng.engines.embedded import checked_types  # loaded by commands that compile

    with checked_types():
        return _watch(args) if args.watch else _run(args)


def _watch(args: CaseOptions) -> int:
    """Run the tests again whenever a file of the policies changes, until it is interrupted."""
    roots = [*map(Path, args.policies), *map(path_given, args.given_data)] or [built_in_root()]
    while True:
        seen = fingerprint(roots)
        try:
            _run(args)
        except PolicyengError as error:
            print_line(f"policyeng: {error}", error=True)
        print_line("policyeng: waiting for changes; Ctrl+C ends", error=True)
        while fingerprint(roots) == seen:
            sleep(_INTERVAL)


def fingerprint(roots: Iterable[Path]) -> Mapping[str, tuple[int, int]]:
    """Return the size and the modification time of every file at or below some paths."""
    found = {}
    for root in roots:
        for path in [root, *root.rglob("*")] if root.is_dir() else [root]:
            try:
                status = path.stat()
            except OSError:  # deleted meanwhile
                continue
            if not path.is_dir():
                found[str(path)] = status.st_size, status.st_mtime_ns
    return found


def _run(args: CaseOptions) -> int:
    from policyeng.engines.embedded import compile_rego, use_program  # only this command loads these
    from policyeng.rego.syntax import lines_of
    from policyeng.testing.rego_tests import lines_missed, needs_session, open_session, run_unit_tests
    from policyeng.testing.runner import (
        find_misspelled_pointers,
        find_misspelled_types,
        find_unknown_inputs,
        run_cases,
    )

    format_, coverage = plain_format(args.format_), args.coverage
    bundle = args.bundle(args.settings())
    bundle.run_python(twins=True)
    for path in args.policies:
        if path.is_file():
            raise BundleError(
                "an archive contains no test cases", place=(str(path),), remedy="pass the directory it was built from"
            )
    session = None
    if coverage or needs_session(bundle):
        whole = not (args.select or args.ignore)
        session = open_session(bundle, lambda line: print_line(line, error=True), whole=whole, cover=coverage)
    else:
        compile_rego(bundle)  # a policy without cases has to compile, too
    with use_program(session.program, bundle) if session else nullcontext(), show_progress("testing", "policies"):
        runs = list(run_cases(bundle, args.case))
    tests = list(run_unit_tests(session)) if session and not args.case else []
    missed = lines_missed(session) if session and coverage else {}
    counted = sum(len(lines_of(module)) for module in session.modules) if session and coverage else 0
    failed = sum(bool(run.reason) for run in runs) + sum(found.outcome in ("failed", "error") for found in tests)
    if args.junit:
        from policyeng.testing.reports import render

        write(args.junit, f"{render(runs, tests)}\n", "JUnit report")
    finders = (find_unknown_inputs, find_misspelled_types, find_misspelled_pointers)
    for remark in () if args.case else [remark for find in finders for remark in find(bundle)]:
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
        _print(runs, tests, args)
        if coverage:
            _print_coverage(missed, counted)
        skipped = sum(found.outcome == "skipped" for found in tests)
        passed = len(runs) + len(tests) - failed - skipped
        typer.echo(f"{passed} passed, {failed} failed{f', {skipped} skipped' if skipped else ''}")
    if not runs and not tests:
        if args.case:
            raise UsageError(f"no case is called `{args.case}`", remedy="`policyeng test --verbose` lists the cases")
        print_line("policyeng: no test cases found; add a `cases.yaml` next to each policy", error=True)
        return 2
    return int(bool(failed or missed))


def _object(run: CaseRun) -> JsonObject:
    return {**asdict(run), "outcome": "failed" if run.reason else "passed"}


def _print(runs: Iterable[CaseRun], tests: Iterable[UnitTest], args: CaseOptions) -> None:
    verbose = args.verbose
    for run in runs:
        if run.reason:
            typer.echo(f"FAIL {run.policy} {run.name}: {run.reason}")
            typer.echo(f"  {run.file}:{run.line}")
            if run.edit:
                typer.echo(f"  input: {run.edit}")
            if not run.name.startswith("absent"):
                words = ["policyeng", "test", *args.repeated, "--select", run.policy, "--case", run.name]
                typer.echo(f"  alone: {shlex.join(words)}")
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
