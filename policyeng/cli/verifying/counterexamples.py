"""The files of a counterexample."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from policyeng.cli.writing import write

if TYPE_CHECKING:
    from policyeng.verify.drawing.examples import Example


def write_example(path: Path, example: Example) -> None:
    """Write what is judged, and the parameters that it needs beside it.

    Raises:
        UsageError: a file cannot be written.
    """
    from policyeng.verify.example_documents import snapshot_text
    from policyeng.verify.reproduction import settings_of, settings_path

    write(path, snapshot_text(example), "counterexample")
    if settings := settings_of(example):
        write(settings_path(path), settings, "parameters of the counterexample")
