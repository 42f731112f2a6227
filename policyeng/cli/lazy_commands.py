"""Commands whose modules are imported only to run them or to show their help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from policyeng.cli.help_sections import write_help
from policyeng.cli.strict_command import Command
from policyeng.errors import UsageError
from policyeng.frozen import frozen

if TYPE_CHECKING:
    from typer._click import Command as AnyCommand
    from typer._click import Context
    from typer._click.formatting import HelpFormatter


#: What to use instead of commands that other programs have.
HABITS = {
    "version": "policyeng --version",
    "help": "policyeng --help",
    "scan": "policyeng check",
    "eval": "policyeng check",
    "lint": "policyeng check",
    "explain": "policyeng policies show",
    "rule": "policyeng policies show",
    "list": "policyeng policies list",
    "new": "policyeng policies new",
    "fix": "policyeng check --suggest",
    "collect": "policyeng snapshot collect",
}


@frozen
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
