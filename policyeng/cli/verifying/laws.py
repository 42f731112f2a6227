"""`policyeng verify`: prove that the laws of consistency hold of a bundle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from policyeng.cli.loading import split
from policyeng.cli.verifying.options import Asked, LawOptions
from policyeng.cli.verifying.progress import progress
from policyeng.cli.writing import Beside, numbered

if TYPE_CHECKING:
    from policyeng.verify.running.run import Found, Run


def verify_laws(asked: Asked, options: LawOptions) -> int:
    """Try laws on random examples and print what holds: exit 0 when all do, 1 when one is violated, 2 when undecided.

    Raises:
        UsageError: there is no such law, the database cannot be used, or a counterexample cannot be written.
        EngineError: the bundle does not compile.
        InputError: a file of the database is none of ours.
    """
    from policyeng.verify.laws import laws_named
    from policyeng.verify.running.run import run

    chosen = laws_named(split(options.names))
    with progress(f"trying {len(chosen)} laws, seed {asked.seed}", asked.examples) as advance:
        done = run(
            asked.bundle,
            chosen,
            examples=asked.examples,
            seed=asked.seed,
            jobs=options.jobs,
            progress=advance,
            database=options.database,
        )
    beside = Beside()
    written = list(_written(done.found, asked.counterexample, beside)) if asked.counterexample else []
    typer.echo(_rendered(done, asked.naming, written, asked.format))
    beside.require_all()
    return done.exit_code


def _written(found: Sequence[Found], path: Path, beside: Beside) -> Iterator[Path | None]:
    """Write every counterexample with the parameters that it needs; the file of each, None where there is none."""
    from policyeng.verify.example_documents import snapshot_text
    from policyeng.verify.running.report import settings_of, settings_path

    number = 0
    for entry in found:
        if entry.example is None:
            yield None
            continue
        number += 1
        target = numbered(path, number)
        is_whole = beside.write(target, snapshot_text(entry.example), "counterexample")
        if settings := settings_of(entry):
            is_whole &= beside.write(settings_path(target), settings, "parameters of the counterexample")
        yield target if is_whole else None


def _rendered(done: Run, given: Sequence[str], written: Sequence[Path | None], format_: str) -> str:
    from policyeng.verify.running import report

    if format_ == "json":
        return report.as_json(done)
    return report.as_junit(done, given) if format_ == "junit" else report.as_text(done, given, written)
