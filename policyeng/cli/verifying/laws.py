"""`policyeng verify`: prove that the laws of consistency hold of a bundle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from policyeng.bundle import Bundle
from policyeng.cli.loading import split
from policyeng.cli.verifying.progress import progress
from policyeng.cli.writing import write

if TYPE_CHECKING:
    from policyeng.verify.running.run import Found, Run


def verify_laws(
    bundle: Bundle,
    given: Sequence[str],
    *,
    law: Sequence[str] | None,
    examples: int,
    seed: int,
    jobs: int,
    database: Path | None,
    counterexample: Path | None,
    format_: str,
) -> int:
    """Try laws on random examples and print what holds: exit 0 when all do, 1 when one is violated, 2 when undecided.

    Args:
        bundle: the policies on trial.
        given: the options that name them, for the commands that are printed.
        law: numbers or names; all laws unless given.
        examples: how many.
        seed: what they are drawn from.
        jobs: processes; 0 is one for each processor.
        database: where failures are kept; None keeps none.
        counterexample: where the first smallest snapshot is written, the others beside it with a number.
        format_: text, json or junit.

    Raises:
        UsageError: there is no such law.
        EngineError: the bundle does not compile.
        InputError: the database cannot be used.
    """
    from policyeng.verify.laws import laws_named
    from policyeng.verify.running.run import run

    chosen = laws_named(split(law))
    with progress(f"trying {len(chosen)} laws, seed {seed}", examples) as advance:
        done = run(bundle, chosen, examples=examples, seed=seed, jobs=jobs, progress=advance, database=database)
    written = list(_written(done.found, counterexample)) if counterexample else []
    typer.echo(_rendered(done, given, written, format_))
    return done.exit_code


def _written(found: Sequence[Found], path: Path) -> Iterator[Path | None]:
    """Write every counterexample with the parameters that it needs; the file of each, None where it has no snapshot."""
    from policyeng.verify.example_documents import snapshot_text
    from policyeng.verify.running.report import settings_of, settings_path

    number = 0
    for entry in found:
        if entry.example is None:
            yield None
            continue
        number += 1
        target = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        write(target, snapshot_text(entry.example), "counterexample")
        if settings := settings_of(entry):
            write(settings_path(target), settings, "parameters of the counterexample")
        yield target


def _rendered(done: Run, given: Sequence[str], written: Sequence[Path | None], format_: str) -> str:
    from policyeng.verify.running import report

    if format_ == "json":
        return report.as_json(done)
    return report.as_junit(done).rstrip("\n") if format_ == "junit" else report.as_text(done, given, written)
