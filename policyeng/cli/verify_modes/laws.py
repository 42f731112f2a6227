"""`policyeng verify`: verify the consistency laws of a bundle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from policyeng.cli.context import split
from policyeng.cli.files import FileWriter
from policyeng.cli.progress import show_progress
from policyeng.cli.verify_modes.options import LawOptions, VerifyOptions

if TYPE_CHECKING:
    from policyeng.verify.runner.run import LawRun, ReportedViolation


def verify_laws(asked: VerifyOptions, options: LawOptions) -> int:
    """Test laws on random examples, print the results, and return 0 if all are true, 1 if one is violated, else 2.

    Raises:
        UsageError: a law is unknown, the database cannot be used, or a counterexample cannot be written.
        EngineError: the bundle does not compile.
        InputError: a file in the database was not written by this command.
    """
    from policyeng.verify.laws import laws_named
    from policyeng.verify.runner.run import run

    chosen = laws_named(split(options.names))
    with show_progress(f"testing {len(chosen)} laws, seed {asked.seed}", "examples", asked.examples) as advance:
        done = run(
            asked.bundle,
            chosen,
            examples=asked.examples,
            seed=asked.seed,
            jobs=options.jobs,
            progress=advance,
            database=options.database,
        )
    writer = FileWriter()
    written = list(_write_counterexamples(done.found, asked.counterexample, writer)) if asked.counterexample else []
    typer.echo(_rendered(done, asked.naming, written, asked.format))
    writer.require_all()
    return done.exit_code


def _write_counterexamples(found: Sequence[ReportedViolation], path: Path, writer: FileWriter) -> Iterator[Path | None]:
    """Write every counterexample; yield the file of each, or None if there is no snapshot or it cannot be written."""
    from policyeng.cli.verify_modes.counterexamples import write_example

    number = 0
    for entry in found:
        if entry.example is None:
            yield None
            continue
        number += 1
        yield write_example(writer, path, number, entry.example)


def _rendered(done: LawRun, given: Sequence[str], written: Sequence[Path | None], format_: str) -> str:
    from policyeng.verify.runner import report

    if format_ == "json":
        return report.as_json(done)
    return report.as_junit(done, given) if format_ == "junit" else report.as_text(done, given, written)
