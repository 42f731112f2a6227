"""`policyeng verify --engines`: verify that all engines return the same findings."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from policyeng.cli.context import split
from policyeng.cli.files import FileWriter
from policyeng.cli.progress import show_progress
from policyeng.cli.verify_modes.options import EngineOptions, VerifyOptions
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError
from policyeng.frozen import replace

if TYPE_CHECKING:
    from policyeng.verify.differential.differential import Counterexample

#: More kinds of differences than this usually have a single cause, so the others are not shrunk.
_MOST_SHRUNK = 10


def verify_engines(asked: VerifyOptions, options: EngineOptions, opa: OpaOptions) -> int:
    """Compare the engines on the same pairs, print the result, and return 0 if they agree, 1 if they differ.

    Raises:
        UsageError: `without` has an unknown engine or leaves too few, or a counterexample cannot be written.
        EngineError: the bundle does not compile, or an engine is missing.
    """
    from policyeng.verify.differential import report
    from policyeng.verify.differential.differential import compare, contestants
    from policyeng.verify.differential.differential import counterexample as smallest

    started = time.monotonic()
    bundle = asked.bundle
    compared = contestants(bundle, without=_list_left_out(options.without, opa), opa=opa)
    with show_progress(f"comparing, seed {asked.seed}", "pairs", options.pairs) as advance:
        tally = compare(bundle, compared, pairs=options.pairs, seed=asked.seed, progress=advance)
        found = [smallest(difference, bundle, compared) for difference in tally.differences[:_MOST_SHRUNK]]
    run = report.DifferentialRun(bundle, compared, tally, found, time.monotonic() - started)
    writer = FileWriter()
    written = list(_write_counterexamples(found, asked.counterexample, writer)) if asked.counterexample else []
    typer.echo(report.as_json(run) if asked.format == "json" else report.as_text(run, asked.naming, written))
    writer.require_all()
    return int(bool(tally.differing))


def _list_left_out(without: Sequence[str], opa: OpaOptions) -> list[str]:
    left_out = [name.lower() for name in split(without)]
    if "opa" in left_out and replace(opa, token="") != OpaOptions():
        raise UsageError("OPA server options and `--without opa` cannot be combined", remedy="remove one of them")
    return left_out


def _write_counterexamples(found: Sequence[Counterexample], path: Path, writer: FileWriter) -> Iterator[Path | None]:
    """Write every counterexample; yield the file of each, or None if it cannot be written."""
    from policyeng.cli.verify_modes.counterexamples import write_example

    for number, entry in enumerate(found, 1):
        yield write_example(writer, path, number, entry.comparison.example)
