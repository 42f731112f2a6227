"""The analyses of `policyeng verify`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import typer

from policyeng.bundle import Policy
from policyeng.cli.console import print_line, show_progress
from policyeng.cli.context import split
from policyeng.cli.files import FileWriter
from policyeng.cli.verify_options import ClassOptions, EngineOptions, LawOptions, MutationOptions, VerifyOptions
from policyeng.configuration import Settings
from policyeng.context import parameters_given
from policyeng.engines import OpaOptions
from policyeng.errors import BundleError, UsageError

if TYPE_CHECKING:
    from policyeng.cli.files import FileWriter
    from policyeng.verify.differential import Counterexample
    from policyeng.verify.generators.examples import Example
    from policyeng.verify.mutation.run import MutationRun
    from policyeng.verify.runner import LawRun, ReportedViolation
    from policyeng.verify.satisfiability.result import SatisfiabilityResult


def write_example(writer: FileWriter, path: Path, number: int, example: Example) -> Path | None:
    """Write a counterexample and its parameters; return the file, or None if not everything could be written.

    Args:
        writer: writes the files and collects errors.
        path: the file for the first counterexample; the others get a number.
        number: the number of the counterexample, from 1.
        example: with its snapshot or documents, and its parameters.
    """
    from policyeng.verify.example_documents import settings_of, settings_path, snapshot_text

    target = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
    is_whole = writer.write(target, snapshot_text(example), "counterexample")
    if settings := settings_of(example):
        is_whole &= writer.write(settings_path(target), settings, "parameters of the counterexample")
    return target if is_whole else None


#: More kinds of differences than this usually have a single cause, so the others are not shrunk.
_MOST_SHRUNK = 10


def verify_engines(args: VerifyOptions, options: EngineOptions, opa: OpaOptions) -> int:
    """Compare the engines on the same pairs, print the result, and return 0 if they agree, 1 if they differ.

    Raises:
        UsageError: `without` has an unknown engine or leaves too few, or a counterexample cannot be written.
        EngineError: the bundle does not compile, or an engine is missing.
    """
    from policyeng.verify import differential
    from policyeng.verify.differential import compare, contestants
    from policyeng.verify.differential import counterexample as smallest

    started = time.monotonic()
    bundle = args.bundle
    compared = contestants(bundle, without=_list_left_out(options.without, opa), opa=opa)
    with show_progress(f"comparing, seed {args.seed}", "pairs", options.pairs) as advance:
        tally = compare(bundle, compared, pairs=options.pairs, seed=args.seed, progress=advance)
        found = [smallest(difference, bundle, compared) for difference in tally.differences[:_MOST_SHRUNK]]
    run = differential.DifferentialRun(bundle, compared, tally, found, time.monotonic() - started)
    writer = FileWriter()
    written = list(_write_differences(found, args.counterexample, writer)) if args.counterexample else []
    typer.echo(differential.as_json(run) if args.format == "json" else differential.as_text(run, args.naming, written))
    writer.require_all()
    return int(bool(tally.differing))


def _list_left_out(without: Sequence[str], opa: OpaOptions) -> list[str]:
    left_out = [name.lower() for name in split(without)]
    if "opa" in left_out and replace(opa, token="") != OpaOptions():
        raise UsageError("OPA server options and `--without opa` cannot be combined", remedy="remove one of them")
    return left_out


def _write_differences(found: Sequence[Counterexample], path: Path, writer: FileWriter) -> Iterator[Path | None]:
    """Write every counterexample; yield the file of each, or None if it cannot be written."""
    for number, entry in enumerate(found, 1):
        yield write_example(writer, path, number, entry.comparison.example)


def verify_laws(args: VerifyOptions, options: LawOptions) -> int:
    """Test laws on random examples, print the results, and return 0 if all are true, 1 if one is violated, else 2.

    Raises:
        UsageError: a law is unknown, the database cannot be used, or a counterexample cannot be written.
        EngineError: the bundle does not compile.
        InputError: a file in the database was not written by this command.
    """
    from policyeng.verify.laws import laws_named
    from policyeng.verify.runner import run

    chosen = laws_named(split(options.names))
    with show_progress(f"testing {len(chosen)} laws, seed {args.seed}", "examples", args.examples) as advance:
        done = run(
            args.bundle,
            chosen,
            examples=args.examples,
            seed=args.seed,
            jobs=options.jobs,
            progress=advance,
            database=options.database,
        )
    writer = FileWriter()
    written = list(_write_violations(done.found, args.counterexample, writer)) if args.counterexample else []
    typer.echo(_rendered(done, args.naming, written, args.format))
    writer.require_all()
    return done.exit_code


def _write_violations(found: Sequence[ReportedViolation], path: Path, writer: FileWriter) -> Iterator[Path | None]:
    """Write every counterexample; yield the file of each, or None if there is no snapshot or it cannot be written."""
    number = 0
    for entry in found:
        if entry.example is None:
            yield None
            continue
        number += 1
        yield write_example(writer, path, number, entry.example)


def _rendered(done: LawRun, given: Sequence[str], written: Sequence[Path | None], format_: str) -> str:
    from policyeng.verify import runner

    if format_ == "json":
        return runner.as_json(done)
    return runner.as_junit(done, given) if format_ == "junit" else runner.as_text(done, given, written)


def verify_mutation(args: VerifyOptions, options: MutationOptions) -> int:
    """Test the mutants of a bundle's policies and print the results.

    Returns:
        0; 1 if the score is below the minimum or a justified survivor does not survive; 2 if no mutant could be tested,
        or if there is a minimum and a policy has no test cases.

    Raises:
        BundleError: test cases or justified survivors are not well formed, or a test case fails without mutation.
        EngineError: the bundle does not compile.
    """
    from policyeng.verify.laws import LAWS
    from policyeng.verify.mutation import run as mutation
    from policyeng.verify.mutation.run import run

    bundle, minimum = args.bundle, options.minimum
    with show_progress("mutating", "policies", len(bundle.policies)) as advance:
        made = run(bundle, seed=args.seed, sample=options.sample, laws=LAWS, progress=advance)
    if args.format == "text":
        typer.echo(mutation.as_text(made))
        typer.echo(_conclude(made, minimum))
    else:
        typer.echo(mutation.as_json(made) if args.format == "json" else mutation.as_junit(made))
    code = _exit_code(made, minimum)
    if code == 2:
        untried = ", ".join(made.without_cases) or "no mutant of any policy compiles"
        print_line(f"policyeng: not tested: {untried}; add a `cases.yaml` next to each policy", error=True)
    return code


def _exit_code(made: MutationRun, minimum: float | None) -> int:
    if not made.is_tried or (minimum is not None and made.without_cases):
        return 2
    stale = any(tally.stale for tally in made.tallies)
    return int(stale or (minimum is not None and made.score < minimum))


def _conclude(made: MutationRun, minimum: float | None) -> str:
    code = _exit_code(made, minimum)
    if not made.is_tried:
        return f"exit {code}: no mutant could be tested"
    required = "" if minimum is None else f", minimum {minimum:g} %"
    return f"exit {code}: mutation score {made.score:.2f} %{required}"


def verify_redundancy(args: VerifyOptions) -> int:
    """Print the policies that never apply, never fail or are implied by others; return 1 if there is one, else 0.

    Raises:
        BundleError: a `cases.yaml` is not well formed, or no policy evaluates resources.
        EngineError: the bundle does not compile.
    """
    from policyeng.verify import redundancy
    from policyeng.verify.generators.documents import evaluates_documents
    from policyeng.verify.redundancy import analysed

    bundle, examples = args.bundle, args.examples
    if all(map(evaluates_documents, bundle.policies)):
        message = "all policies evaluate documents, and --redundancy only supports policies that evaluate resources"
        raise BundleError(message, remedy="pass policies that evaluate resources")
    total = sum(map(_cases, bundle.policies)) + examples
    with show_progress(f"searching for redundancy, seed {args.seed}", "examples", total) as advance:
        analysis = analysed(bundle, examples, args.seed, progress=advance)
    if args.format == "text":
        typer.echo(redundancy.as_text(analysis, args.naming))
    else:
        typer.echo(
            redundancy.as_json(analysis) if args.format == "json" else redundancy.as_junit(analysis, args.naming)
        )
    return int(bool(analysis.faults))


def _cases(policy: Policy) -> int:
    from policyeng.bundle.cases import read_cases

    file = read_cases(policy)
    return sum(1 for _ in file.named()) if file else 0


def verify_satisfiable(args: VerifyOptions, settings: Settings, options: ClassOptions) -> int:
    """Analyze and print each class; return 0 if all are satisfiable, 1 if one is not, else 2.

    Raises:
        UsageError: a profile or a parameter is not valid, or an example snapshot cannot be written.
        BundleError: a class is not well formed, or its id is unknown.
        EngineError: the bundle does not compile.
    """
    from policyeng.verify.satisfiability import result
    from policyeng.verify.satisfiability.classes import classes_of
    from policyeng.verify.satisfiability.result import answer

    started, bundle = time.monotonic(), args.bundle
    parameters = parameters_given(bundle, bundle, settings)
    subjects = classes_of(bundle, options.paths, options.chosen)
    if options.witness:
        _make(options.witness)
    now = datetime.now(UTC)
    results: list[SatisfiabilityResult] = []
    with show_progress("searching for example snapshots", "classes", len(subjects)) as advance:
        for number, subject in enumerate(subjects, 1):
            results.append(answer(subject, bundle, options.as_of or subject.as_of or now, parameters))
            advance(number)
    writer = FileWriter()
    written = _write_witnesses(results, options.witness, writer) if options.witness else {}
    run = result.SatisfiabilityRun(bundle, results, settings.profile, written, time.monotonic() - started, args.naming)
    render = {"json": result.as_json, "junit": result.as_junit}.get(args.format, result.as_text)
    print_line(render(run))
    writer.require_all()
    return run.exit_code


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        remedy = "use another directory for `--witness`"
        raise UsageError(
            f"cannot create the directory for example snapshots: {reason}", place=(str(folder),), remedy=remedy
        ) from error


def _write_witnesses(results: Sequence[SatisfiabilityResult], folder: Path, writer: FileWriter) -> dict[str, Path]:
    """Write every example snapshot; return the files that could be written, by class."""
    files = {}
    for found in results:
        if found.witness:
            path = folder / f"{found.subject.id}.json"
            text = orjson.dumps(found.witness.document, option=orjson.OPT_INDENT_2) + b"\n"
            if writer.write(path, text, "witness"):
                files[found.subject.id] = path
    return files
