"""The options of `verify --satisfiable`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from policyeng.cli import options
from policyeng.cli.context import moment_of, split


@dataclass(frozen=True, slots=True)
class ClassOptions:
    """The workload classes to analyze, and how.

    Attributes:
        asked: whether the analysis is requested.
        paths: files and directories of additional classes.
        chosen: class ids; all if empty.
        as_of: the clock; now if None.
        profile: a named set of parameters.
        witness: the output directory for example snapshots.
        given: the value of each option; None if it is not given.
    """

    asked: bool
    paths: tuple[Path, ...]
    chosen: tuple[str, ...]
    as_of: datetime | None
    profile: str | None
    witness: Path | None
    given: Mapping[str, object]


def class_options(
    *,
    satisfiable: Annotated[
        bool,
        typer.Option("--satisfiable", help="Find, for each workload class, a snapshot that passes every policy."),
    ] = False,
    class_files: Annotated[
        list[Path] | None,
        typer.Option("--classes", metavar="PATH", help="File or directory of additional workload classes; repeatable."),
    ] = None,
    class_: Annotated[
        list[str] | None,
        typer.Option("--class", metavar="ID", help="Analyze only this class; repeatable or comma-separated."),
    ] = None,
    as_of: options.AsOf = None,
    profile: options.Profile = None,
    witness: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory for the example snapshot of each class.")
    ] = None,
) -> ClassOptions:
    """Gather the options for workload classes."""
    moment = moment_of(as_of) if as_of else None
    given = {"--classes": class_files, "--class": class_, "--profile": profile, "--witness": witness}
    return ClassOptions(satisfiable, tuple(class_files or ()), tuple(split(class_)), moment, profile, witness, given)
