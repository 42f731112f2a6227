"""The options of `verify --satisfiable`, each declared once, and what they come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from policyeng.cli import options
from policyeng.cli.groups import with_group
from policyeng.cli.loading import moment_of, split
from policyeng.errors import UsageError


@dataclass(frozen=True, slots=True)
class ClassOptions:
    """Which classes of workloads are asked about, and how.

    Attributes:
        asked: whether they are.
        paths: files and directories of further classes.
        chosen: ids; all unless given.
        as_of: the clock; now unless given.
        profile: a named set of parameters.
        witness: the directory that witnesses are written to.
    """

    asked: bool
    paths: tuple[Path, ...]
    chosen: tuple[str, ...]
    as_of: datetime | None
    profile: str | None
    witness: Path | None


def with_classes(command: Callable[..., int]) -> Callable[..., int]:
    """A command with the options about classes of workloads; they reach it as `classes`."""
    return with_group(command, "classes", _given)


def _given(
    *,
    satisfiable: Annotated[
        bool,
        typer.Option("--satisfiable", help="Find for each class of workloads an estate that passes every policy."),
    ] = False,
    class_files: Annotated[
        list[Path] | None,
        typer.Option("--classes", metavar="PATH", help="A file or directory of more classes; repeatable."),
    ] = None,
    class_: Annotated[
        list[str] | None, typer.Option("--class", metavar="ID", help="Only this class; repeatable, or with commas.")
    ] = None,
    as_of: options.AsOf = None,
    profile: options.Profile = None,
    witness: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the witness of each class, a snapshot.")
    ] = None,
) -> ClassOptions:
    given = {"--classes": class_files, "--class": class_, "--profile": profile, "--witness": witness}
    for option, value in given.items():
        if value is not None and not satisfiable:
            raise UsageError(f"`{option}` belongs to `--satisfiable`", remedy="give both, or neither")
    moment = moment_of(as_of) if as_of else None
    return ClassOptions(satisfiable, tuple(class_files or ()), tuple(split(class_)), moment, profile, witness)
