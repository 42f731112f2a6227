"""Commands for typer: imported when they run, with strict options, and with their help in sections."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from policyeng.cli.console import print_line
from policyeng.cli.fast_path import ENVIRONMENT, IN_FORCE
from policyeng.errors import UsageError

if TYPE_CHECKING:
    from typer import Context as TyperContext
    from typer._click import Command as AnyCommand
    from typer._click import Context
    from typer._click.core import Parameter
    from typer._click.formatting import HelpFormatter

#: For `context_settings`: the options that print help, and the widest line of it.
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_EXAMPLES = "Examples:"


def write_help(command: AnyCommand, context: Context, formatter: HelpFormatter) -> None:
    """Write the usage, the description, the examples, and one section per group of options or commands."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if not paragraph.startswith(_EXAMPLES):
            formatter.write_text(" ".join(paragraph.split()))
            formatter.write_paragraph()
    command.format_usage(context, formatter)
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith(_EXAMPLES):
            formatter.write(f"\n{paragraph}\n")
    if isinstance(command, TyperGroup):
        _write_commands(command, context, formatter)
    _write_options(command.get_params(context), context, formatter)
    if epilog := getattr(command, "epilog", None):
        formatter.write_paragraph()
        formatter.write_text(epilog)


def _write_commands(group: TyperGroup, context: Context, formatter: HelpFormatter) -> None:
    names = group.list_commands(context)
    found = [(name, group.get_command(context, name)) for name in names]
    with formatter.section("Commands"):
        formatter.write_dl(
            [
                (name, inspect.cleandoc(each.help or "").partition("\n\n")[0].replace("\n", " "))
                for name, each in found
                if each
            ]
        )


def _write_options(parameters: Iterable[Parameter], context: Context, formatter: HelpFormatter) -> None:
    sections: dict[str, list[tuple[str, str]]] = {}
    others: list[tuple[str, str]] = []  # such as `--help`, which typer appends to the options
    for parameter in sorted(parameters, key=lambda each: not isinstance(each, TyperArgument)):
        is_argument = isinstance(parameter, TyperArgument)
        title = getattr(parameter, "rich_help_panel", None) or ("Arguments" if is_argument else "Options")
        if (record := _record(parameter, context)) is not None:
            (others if "--help" in parameter.opts else sections.setdefault(title, [])).append(record)
    for title, rows in [*sections.items(), ("Help", others)]:
        with formatter.section(title):
            formatter.write_dl(rows, col_max=26)


def _record(parameter: Parameter, context: Context) -> tuple[str, str] | None:
    """Return the two columns of a parameter; None if it is hidden."""
    if isinstance(parameter, TyperArgument):
        return parameter.display_name_raw, _describe(parameter, context)
    return parameter.get_help_record(context) if isinstance(parameter, TyperOption) else None


def _describe(argument: TyperArgument, context: Context) -> str:
    record = argument.get_help_record(context)
    return record[1].removesuffix("  [required]") if record else ""


#: The command lines of `check` that list the input formats.
_LISTING = (["--from"], ["--from", "list"], ["--from=list"])


class Command(TyperCommand):
    """A command that refuses blank inputs and options, from the command line or the environment.

    Blank values come from empty shell variables. They would silently widen the run, and as a path they would mean the
    current directory, whose policies are run.
    """

    def parse_args(self, ctx: TyperContext, args: list[str]) -> list[str]:  # type: ignore[override]  # typer hands over this one
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

    def format_help(self, ctx: TyperContext, formatter: HelpFormatter) -> None:  # type: ignore[override]  # typer hands over this one
        """Write the help in sections."""
        write_help(self, ctx, formatter)


class CheckCommand(Command):
    """The command `check`, which lists the input formats for `--from` alone.

    With an input it does not: an empty shell variable after `--from` must not make a run succeed.
    """

    def parse_args(self, ctx: TyperContext, args: list[str]) -> list[str]:  # type: ignore[override]  # typer hands over this one
        """List the input formats, or parse the arguments as in the base class."""
        if args in _LISTING and not ctx.resilient_parsing:
            from policyeng.cli.evaluation_options import format_lines

            for line in format_lines():
                print_line(line)
            ctx.exit()
        return super().parse_args(ctx, args)


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [entry for entry in values if isinstance(entry, str)]


#: What to use instead of commands that other programs have.
HABITS = {
    "version": "policyeng --version",
    "help": "policyeng --help",
    "scan": "policyeng check",
    "lint": "policyeng check",
    "rule": "policyeng policies show",
    "list": "policyeng policies list",
    "new": "policyeng policies new",
    "fix": "policyeng check --suggest",
    "collect": "policyeng snapshot collect",
}


@dataclass(frozen=True)
class Late:
    """A command that is not imported yet.

    Attributes:
        home: `module:name`, relative to `policyeng.cli`, of its function or of the typer application of a group.
        help: its line in the help of the parent group; a test compares it with the help of the command.
        kind: the class of a command that is not a group.
    """

    home: str
    help: str
    kind: type[Command] = Command


class Group(TyperGroup):
    """A group of commands with the help of `write_help`."""

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the help in sections."""
        write_help(self, ctx, formatter)


class _Commands(Mapping[str, "AnyCommand"]):
    """Commands by name, each imported on access."""

    def __init__(self, places: Mapping[str, Late]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> AnyCommand:
        return _command(name, self._places[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def group_of(places: Mapping[str, Late]) -> type[Group]:
    """Create the class of a group with these commands, in this order."""

    class LateGroup(Group):
        """A group whose commands are imported when they run."""

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.commands = _Commands(places)  # type: ignore[assignment]  # typer adds none once the group is made

        def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002  # typer passes it
            """Return the names of the commands, without importing them as typer would."""
            return list(places)

        def get_command(self, ctx: Context, cmd_name: str) -> AnyCommand | None:  # noqa: ARG002  # typer passes it
            """Return a placeholder with the help line of a command."""
            return TyperCommand(cmd_name, help=places[cmd_name].help) if cmd_name in places else None

        def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, AnyCommand | None, list[str]]:
            """Import the command that a command line names, and return it with its arguments."""
            if not ctx.resilient_parsing and args[0] not in places and (meant := HABITS.get(args[0])):
                raise UsageError(f"no such command `{args[0]}`", remedy=f"use `{meant}`")
            name, _, rest = super().resolve_command(ctx, args)
            return name, self.commands[name] if name else None, rest

    return LateGroup


@cache
def _command(name: str, place: Late) -> AnyCommand:
    module, _, attribute = place.home.partition(":")
    found = getattr(import_module(f"policyeng.cli.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(cls=place.kind)(found)
        found = alone
    command = get_command(found)
    command.name = name
    return command
