"""The options of reports, and writing and printing an evaluation with them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from policyeng.cli.console import detect_terminal, print_errors, print_parts
from policyeng.cli.context import find_known
from policyeng.cli.files import output_of, write
from policyeng.errors import UsageError
from policyeng.report import FORMATS, GROUPS, INFORMED, PROFILED, PROSE, write_parts

if TYPE_CHECKING:  # the options need typer, and a plain run does not
    from policyeng.cli import options
    from policyeng.models import Evaluation
    from policyeng.report.context import ReportContext

#: The format for each build agent, by an environment variable that it sets to `true`.
_AGENTS = {"GITHUB_ACTIONS": "github", "TF_BUILD": "azure-devops"}
#: Formats that print problems themselves.
_SHOWING_PROBLEMS = ("text", "github", "azure-devops")


@dataclass(kw_only=True, repr=False, eq=False)
class TextOptions:
    """How to report an evaluation as text."""

    group_by: options.GroupBy = None
    verbose: options.Verbose = False
    summary: options.SummaryOnly = False
    quiet: options.Quiet = False
    all_: options.All = False
    color: options.Color = None

    @property
    def form(self) -> str:
        """The form of text, one of `policyeng.report.text.FORMS`."""
        return next(iter(self._forms()), "compact")

    def only_for_text(self) -> list[str]:
        """Return the given options that apply to text only.

        Raises:
            UsageError: some exclude each other.
        """
        forms = self._forms()
        if len(forms) > 1:
            raise UsageError(f"--{forms[0]} and --{forms[1]} exclude each other", remedy="remove one of them")
        if self.all_ and forms:
            raise UsageError(f"--all does not apply to --{forms[0]}", remedy="remove one of them")
        return [*forms, *(["all"] if self.all_ else [])]

    def grouping(self, names: Sequence[str]) -> str | None:
        """Return how to group findings in a report that is written in these formats; None for no groups.

        Raises:
            UsageError: an option is not valid, or does not apply to any of the formats.
        """
        textual = self.only_for_text()
        if textual and "text" not in names:
            raise UsageError(f"--{textual[0]} does not apply to {_listed(names)}", remedy="use it with text")
        group_by = find_known(self.group_by, GROUPS, "grouping") if self.group_by else None
        if group_by and not any(each in PROSE for each in names):
            raise UsageError(
                f"--group-by does not apply to {_listed(names)}", remedy=f"use it with {' or '.join(PROSE)}"
            )
        return group_by

    def _forms(self) -> list[str]:
        return [name for name in ("verbose", "summary", "quiet") if getattr(self, name)]


@dataclass(kw_only=True, repr=False, eq=False)
class ReportOptions(TextOptions):
    """How to report an evaluation."""

    format_: options.Format = None
    output: options.Output = None

    def printer(self, *, owner_tag: str = "owner", exit_zero: bool = False) -> ReportPrinter:
        """Return what prints reports with these options.

        Args:
            owner_tag: the tag that contains the owners of resources.
            exit_zero: failures do not fail the task of a build agent.

        Raises:
            UsageError: an option is not valid, or does not apply to any of the formats.
        """
        outputs = [output_of(entry, FORMATS) for entry in self.output or ()]
        textual = self.only_for_text()
        name = find_known(self.format_, FORMATS, "report format") if self.format_ else self._default_format(textual)
        group_by = self.grouping([name, *(each for each, _ in outputs)])
        detect_terminal(self.color)  # refuses an unknown color before anything is read
        return ReportPrinter(self, name, outputs, group_by, owner_tag, exit_zero)

    def _default_format(self, textual: Sequence[str]) -> str:
        """Return the format of the build agent that runs the command; text elsewhere, and with options of text."""
        if textual or self.group_by:
            return "text"
        return next((name for agent, name in _AGENTS.items() if os.environ.get(agent, "").lower() == "true"), "text")


class ReportPrinter(Struct, frozen=True):
    """Valid options of a report.

    Attributes:
        text: the options of text.
        name: the format to print.
        outputs: the formats and paths of files to write.
        group_by: one of `GROUPS`, or None.
        owner_tag: the tag that contains the owners of resources.
        exit_zero: failures do not fail the task of a build agent.
    """

    text: TextOptions
    name: str
    outputs: Sequence[tuple[str, Path]]
    group_by: str | None
    owner_tag: str = "owner"
    exit_zero: bool = False

    def write_files(self, evaluation: Evaluation, profile: str | None) -> None:
        """Write the files.

        Raises:
            UsageError: a file cannot be written.
        """
        for name, path in self.outputs:
            write(path, self.write_parts(name, evaluation, profile=profile), "report")

    def print(self, evaluation: Evaluation, profile: str | None) -> None:
        """Print the report, and on standard error the problems that its format omits."""
        print_parts(self.write_parts(self.name, evaluation, profile=profile, printed=True))
        if self.name not in _SHOWING_PROBLEMS:
            print_errors(evaluation)

    def write_parts(
        self,
        name: str,
        evaluation: Evaluation,
        *,
        profile: str | None = None,
        about: ReportContext | None = None,
        printed: bool = False,
    ) -> Iterator[str]:
        """Yield a report with the options that its format accepts; `printed` text has the form of the terminal."""
        given: dict[str, object] = {}
        if name in PROSE:
            given["group_by"] = self.group_by
        if name in PROFILED:
            given["profile"] = profile
        if name in INFORMED:
            from policyeng.report.context import ReportContext

            given["about"] = about or ReportContext(self.owner_tag)
        if name == "text":
            given |= {"form": self.text.form, "every": self.text.all_}
            if printed:
                given["color"], given["width"] = detect_terminal(self.text.color)
        if name == "azure-devops":
            given["exit_zero"] = self.exit_zero
        return write_parts(name, evaluation, **given)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))
