"""Options for reading inputs, for every command that reads files in the formats of `check`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from policyeng.cli.context import find_known
from policyeng.errors import UsageError
from policyeng.frozen import frozen
from policyeng.sources import FORMATS, DocumentContext, FileWalk, normalize_context, resolve_paths

if TYPE_CHECKING:  # the options need typer, and a plain run does not
    from policyeng.cli import options
    from policyeng.configuration import Settings


@frozen(kw_only=True)
class InputOptions:
    """The format of the inputs, the context that their documents lack, and which files of directories to read."""

    from_: options.From = None
    scope: options.Scope = None
    workspace: options.Workspace = None
    parameters: options.TemplateParameters = None
    show_skipped: options.ShowSkipped = False
    exclude: options.Exclude = None
    no_gitignore: options.NoGitignore = False

    def from_format(self, formats: Iterable[str] = FORMATS) -> str | None:
        """Return the name of the input format, if one is given.

        Raises:
            UsageError: it is unknown.
        """
        return find_known(self.from_, formats, "input format") if self.from_ else None

    def context(self) -> DocumentContext:
        """Return the context that documents of some formats lack.

        Raises:
            UsageError, InputError: a value is not valid, or a parameter file cannot be read.
        """
        return normalize_context(self.scope or "", self.workspace or "", self._parameters())

    def _parameters(self) -> Mapping[str, object]:
        if not self.parameters:
            return {}
        from policyeng.sources import read_parameters  # most runs have none

        return read_parameters(self.parameters)

    def walk(self, settings: Settings, others: Iterable[str | Path | None]) -> FileWalk:
        """Return which files of directories a run reads; `others` are the values of options that name files."""
        named = [
            other.removeprefix("@") if isinstance(other, str) else other
            for other in (*others, *(self.parameters or ()))
        ]
        named += [*settings.exemptions, settings.verification_key]
        return FileWalk(settings.exclude, not self.no_gitignore, resolve_paths(named))


def refuse_urls(inputs: Iterable[str]) -> None:
    """Refuse URLs, which are not downloaded.

    Raises:
        UsageError: with the command that downloads it.
    """
    for given in inputs:
        if given.lower().startswith(("http://", "https://")):
            remedy = f"use `curl -fsS {shlex.quote(given)} | policyeng check -`"
            raise UsageError(f"`{given}` is a URL; inputs are files and directories", remedy=remedy)
