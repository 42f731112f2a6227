"""The options of `verify --satisfiable`, each declared once, and what they come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from policyeng.cli import options
from policyeng.cli.context import moment_of, split
from policyeng.cli.option_groups import with_group


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
        given: by option, its value; None where it is not given.
    """

    asked: bool
    paths: tuple[Path, ...]
    chosen: tuple[str, ...]
    as_of: datetime | None
    profile: str | None
    witness: Path | None
    given: Mapping[str, object]


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
    moment = moment_of(as_of) if as_of else None
    given = {"--classes": class_files, "--class": class_, "--profile": profile, "--witness": witness}
    return ClassOptions(satisfiable, tuple(class_files or ()), tuple(split(class_)), moment, profile, witness, given)
