"""Report the coverage of Rego with coverage.py: name this module as a plugin in its configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from coverage.plugin import CoveragePlugin, FileReporter, FileTracer
from coverage.plugin_support import Plugins

from policyeng.rego.parser import parse_module
from policyeng.rego.syntax import lines_of


class RegoTracer(FileTracer):
    """A coverage.py tracer that maps a Rego file to itself."""

    def __init__(self, file: str) -> None:
        """Take the name that compiled code has for the file."""
        self._file = file

    def source_filename(self) -> str:
        """Return the name of the file."""
        return self._file


class RegoReporter(FileReporter):
    """A coverage.py reporter for the executable lines of a Rego file."""

    def lines(self) -> set[int]:
        """Return the lines, as OPA counts them.

        Raises:
            RegoError: the file is not Rego v1.
        """
        return lines_of(parse_module(self.filename, self.source(), 1))


class RegoPlugin(CoveragePlugin):
    """The plugin; it takes every file that ends in `.rego`."""

    def file_tracer(self, filename: str) -> FileTracer | None:
        """Return what traces a file, None for one that is not Rego."""
        return RegoTracer(filename) if filename.endswith(".rego") else None

    def file_reporter(self, filename: str) -> FileReporter:
        """Return what reports a file."""
        return RegoReporter(filename)

    def find_executable_files(self, src_dir: str) -> Iterator[str]:
        """Return the files below a folder, those that nothing evaluated included."""
        return map(str, Path(src_dir).rglob("*.rego"))


def coverage_init(registry: Plugins, options: dict[str, object]) -> None:  # noqa: ARG001  # the signature of coverage.py
    """Register the plugin."""
    registry.add_file_tracer(RegoPlugin())
