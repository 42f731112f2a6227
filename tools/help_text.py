"""Print the help of every command as Markdown, for checks of its prose."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from policyeng.cli.app import app


def paragraphs(command: object, name: str) -> Iterator[str]:
    """Yield the description of a command and of its options, then those of the commands below it."""
    yield f"# `{name}`"
    yield from filter(None, [getattr(command, "help", None)])
    for parameter in getattr(command, "params", ()):
        if text := getattr(parameter, "help", None):
            yield f"`{parameter.opts[0]}`: {text}"
    for below, each in sorted(getattr(command, "commands", {}).items()):
        yield from paragraphs(each, f"{name} {below}")


if __name__ == "__main__":
    print(*paragraphs(typer.main.get_command(app), "policyeng"), sep="\n\n")
