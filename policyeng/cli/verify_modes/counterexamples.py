"""Writing of counterexamples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policyeng.cli.files import FileWriter
    from policyeng.verify.generators.examples import Example


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
