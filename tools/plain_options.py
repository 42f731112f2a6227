"""Write the table of the options of a plain `check`, which needs no typer, from their declarations.

What starts a server, prints something other than a report, or has a value that typer converts is left to typer.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_type_hints

import typer

from policyeng.cli import options
from policyeng.cli.app import app
from policyeng.cli.check import CheckOptions

TARGET = Path(__file__).parents[1] / "policyeng" / "cli" / "plain_options.py"
NAMES = {
    str | None: "TEXTS",
    str: "TEXTS",
    list[str] | None: "TEXT_LISTS",
    list[Path] | None: "PATH_LISTS",
    bool: "FLAGS",
}
LEFT_TO_TYPER = {"engine", "minimise", "suggest"}


def generate() -> str:
    """Return the text of the module."""
    tables: dict[str, dict[str, str]] = {name: {} for name in ("TEXTS", "TEXT_LISTS", "PATH_LISTS", "FLAGS")}
    hints = get_type_hints(CheckOptions, localns={"options": options})
    for parameter in typer.main.get_command(app).commands["check"].params:  # type: ignore[attr-defined]  # a group, whatever its declared type
        table = NAMES.get(hints[parameter.name])
        if parameter.param_type_name != "option" or table is None or parameter.name in LEFT_TO_TYPER:
            continue
        if parameter.rich_help_panel not in (options.SIGNATURES, options.OPA):
            tables[table].update(dict.fromkeys(parameter.opts, parameter.name))
    lines = ['"""The options of a plain `check`, by kind; `python -m tools.plain_options` writes this."""']
    for name, flags in tables.items():
        lines += ["", f"{name} = {{", *(f'    "{flag}": "{field}",' for flag, field in flags.items()), "}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(generate(), encoding="utf-8")
