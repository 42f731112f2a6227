"""Help of commands: sections of options, and examples as they are typed.

Typer's own help draws tables: at 80 columns it leaves 20 for a description, and wraps examples, so that they cannot be
copied.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING

from typer.core import TyperArgument, TyperGroup, TyperOption

if TYPE_CHECKING:
    from typer._click import Context
    from typer._click.core import Command, Parameter
    from typer._click.formatting import HelpFormatter

#: For `context_settings`: the options that print help, and the widest line of it.
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_EXAMPLES = "Examples:"


def write_help(command: Command, context: Context, formatter: HelpFormatter) -> None:
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
