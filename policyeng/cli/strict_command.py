"""A typer command that refuses blank inputs and options."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from typer.core import TyperCommand

from policyeng.cli.console import print_line
from policyeng.cli.environment import ENVIRONMENT, IN_FORCE
from policyeng.cli.help_sections import write_help

if TYPE_CHECKING:
    from typer import Context
    from typer._click.formatting import HelpFormatter

#: The command lines of `check` that list the input formats.
_LISTING = (["--from"], ["--from", "list"], ["--from=list"])


class Command(TyperCommand):
    """A command that refuses blank inputs and options, from the command line or the environment.

    Blank values come from empty shell variables. They would silently widen the run, and as a path they would mean the
    current directory, whose policies are run.
    """

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:  # type: ignore[override]  # typer hands over this one
        """Parse the arguments and return those that are left over, as in typer.

        Raises:
            UsageError: a value is blank.
        """
        if not ctx.resilient_parsing:  # completion parses incomplete command lines
            from policyeng.cli.context import require_text
            from policyeng.configuration import describe_unknown_variables

            for warning in describe_unknown_variables(os.environ, ENVIRONMENT):
                print_line(f"policyeng: warning: {warning}", error=True)
            given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
            for parameter in self.get_params(ctx):
                value = given.get(str(parameter.name))
                require_text(_texts(parameter.value_from_envvar(ctx) if value is None else value))
        left = super().parse_args(ctx, args)
        IN_FORCE.set(
            {
                str(parameter.envvar): (str(parameter.opts[-1]).lstrip("-"), ctx.params[str(parameter.name)])
                for parameter in self.get_params(ctx)
                if (source := ctx.get_parameter_source(str(parameter.name))) and source.name == "ENVIRONMENT"
            }
        )
        return left

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:  # type: ignore[override]  # typer hands over this one
        """Write the help in sections."""
        write_help(self, ctx, formatter)


class CheckCommand(Command):
    """The command `check`, which lists the input formats for `--from` alone.

    With an input it does not: an empty shell variable after `--from` must not make a run succeed.
    """

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:  # type: ignore[override]  # typer hands over this one
        """List the input formats, or parse the arguments as in the base class."""
        if args in _LISTING and not ctx.resilient_parsing:
            from policyeng.cli.input_summary import format_lines

            for line in format_lines():
                print_line(line)
            ctx.exit()
        return super().parse_args(ctx, args)


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [entry for entry in values if isinstance(entry, str)]
