"""`policyeng test`: run the test cases, the generated tests for absent fields and the Rego unit tests of a bundle."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
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
from policyeng.models import JsonObject
from policyeng.report.phrases import count

if TYPE_CHECKING:
    from policyeng.testing.rego_tests import LineCoverage, UnitTest
    from policyeng.testing.runner import CaseRun

#: The seconds between two looks at the files with `--watch`.
_INTERVAL = 0.3


@dataclass(kw_only=True, repr=False, eq=False)
class CaseOptions(SelectionOptions):
    """The options of `policyeng test`."""

    coverage: Annotated[
        bool,
        typer.Option("--coverage", help="Print the Rego lines that no test covers; exit 1 if there are any."),
    ] = False
    coverage_threshold: Annotated[
        float | None,
        typer.Option(
            "--coverage-threshold",
            "--threshold",
            metavar="PERCENT",
            min=0,
            max=100,
            help="Like --coverage, but exit 1 only if less than this percentage of the lines is covered.",
        ),
    ] = None
    case: Annotated[str, typer.Option(metavar="NAME", help="Run only the cases with this name.")] = ""
    run: Annotated[
        str,
        typer.Option(
            "--run", "-r", metavar="REGEX", help="Run only the Rego tests whose name, data.PACKAGE.test_NAME, matches."
        ),
    ] = ""
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
    from policyeng.engines.embedded import CompiledBundle, compile_rego, use_program  # only this command loads these
    from policyeng.testing.rego_tests import (
        coverage_of,
        needs_session,
        open_session,
        percentage,
        run_unit_tests,
        select_tests,
    )
    from policyeng.testing.runner import (
        find_misspelled_pointers,
        find_misspelled_types,
        find_unknown_inputs,
        run_cases,
    )

    format_, coverage = plain_format(args.format_), args.coverage or args.coverage_threshold is not None
    bundle = args.bundle(args.settings(), require_policies=False)
    bundle.run_python(twins=True)
    for path in args.policies:
        if path.is_file():
            raise BundleError(
                "an archive contains no test cases", place=(str(path),), remedy="pass the directory it was built from"
            )
    session = None
    if coverage or args.run or needs_session(bundle):
        whole = not (args.select or args.ignore)
        session = open_session(bundle, lambda line: print_line(line, error=True), whole=whole, cover=coverage)
        if args.run:
            select_tests(session, args.run)
    else:
        compile_rego(bundle)  # a bundle without cases has to compile, too
    runs: list[CaseRun] = []
    if args.case or not args.run:
        compiled = CompiledBundle(session.program, session.left_out) if session else None
        with use_program(compiled, bundle) if compiled else nullcontext(), show_progress("testing", "policies"):
            runs = list(run_cases(bundle, args.case, session.begin if session else None))
    tests = list(run_unit_tests(session)) if session and (args.run or not args.case) else []
    lines = coverage_of(session) if session and coverage else {}
    outcomes = [outcome for test in tests for outcome in test.outcomes]
    failed = sum(bool(run.reason) for run in runs) + outcomes.count("failed") + outcomes.count("error")
    if args.junit:
        from policyeng.testing.reports import render

        write(args.junit, f"{render(runs, tests)}\n", "JUnit report")
    finders = (find_unknown_inputs, find_misspelled_types, find_misspelled_pointers)
    is_whole = not (args.case or args.run)
    for remark in [remark for find in finders for remark in find(bundle)] if is_whole else ():
        print_line(f"warning: {remark}", error=True)
    own = (entry for entry in bundle.policies if entry.input_form == "policy")
    without = [entry.id for entry in own if entry.cases is None]
    if without:
        print_line(f"no cases: {', '.join(without)}", error=True)
    if format_ == "json":
        report: JsonObject = {"cases": list(map(_object, runs)), "tests": list(map(asdict, tests))}
        if coverage:
            report["coverage"] = _coverage_object(lines, percentage(lines))
        typer.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2))
    else:
        _print(runs, tests, args)
        if coverage:
            _print_coverage(lines, percentage(lines))
        skipped = outcomes.count("skipped")
        passed = len(runs) + len(outcomes) - failed - skipped
        typer.echo(f"{passed} passed, {failed} failed{f', {skipped} skipped' if skipped else ''}")
    if not runs and not tests:
        if args.case:
            raise UsageError(f"no case is called `{args.case}`", remedy="`policyeng test --verbose` lists the cases")
        print_line("policyeng: no test cases found; add a `cases.yaml` next to each policy", error=True)
        return 2
    if session and session.left_out:
        return 2
    return int(bool(failed) or (coverage and _is_below(lines, percentage(lines), args.coverage_threshold)))


def _is_below(coverage: Mapping[str, LineCoverage], percent: float, threshold: float | None) -> bool:
    """Return whether fewer lines are covered than required: all, or a part of them."""
    return any(lines.missed for lines in coverage.values()) if threshold is None else percent < threshold


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
        _print_test(test, args)


def _print_test(test: UnitTest, args: CaseOptions) -> None:
    from policyeng.testing.reports import lines_of_expression

    name = f"{test.package}.{test.name}"
    if test.outcome in ("failed", "error"):
        typer.echo(f"{'FAIL' if test.outcome == 'failed' else 'ERROR'} {name}: {test.reason}")
        typer.echo(f"  {test.file}:{test.line}")
        for line in lines_of_expression(test.expression):
            typer.echo(f"  {line}")
        for case in test.cases:
            if case.outcome == "failed":
                typer.echo(f"  {case.name}:")
                for line in lines_of_expression(case.expression):
                    typer.echo(f"    {line}")
        if test.name.startswith("test_"):  # and not a module that cannot be compiled
            words = ["policyeng", "test", *args.repeated, "-r", f"^{re.escape(name)}$"]
            typer.echo(f"  alone: {shlex.join(words)}")
    elif args.verbose or test.outcome == "skipped":
        cases = f" ({', '.join(case.name for case in test.cases)})" if test.cases else ""
        typer.echo(f"{'ok  ' if test.outcome == 'passed' else 'skip'} {name}{cases}")


def _coverage_object(coverage: Mapping[str, LineCoverage], percent: float) -> JsonObject:
    covered, missed = ({file: lines[number] for file, lines in coverage.items() if lines[number]} for number in (0, 1))
    return {
        "lines": sum(map(len, (*covered.values(), *missed.values()))),
        "coverage": round(percent, 2),
        "covered": covered,
        "missed": missed,
    }


def _print_coverage(coverage: Mapping[str, LineCoverage], percent: float) -> None:
    for file, lines in coverage.items():
        if lines.missed:
            noun = "line" if len(lines.missed) == 1 else "lines"
            typer.echo(f"{file}: no test covers {noun} {_ranges(lines.missed)}")
    covered, missed = (sum(len(lines[number]) for lines in coverage.values()) for number in (0, 1))
    typer.echo(f"{covered} of {count(covered + missed, 'line')} covered, {percent:.2f} %")


def _ranges(lines: Sequence[int]) -> str:
    """Format numbers, with consecutive ones as ranges."""
    parts: list[list[int]] = []
    for line in lines:
        if parts and line == parts[-1][1] + 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
