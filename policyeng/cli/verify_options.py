"""The options of `policyeng verify` that no other command has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from policyeng.bundle import Bundle
from policyeng.cli import options
from policyeng.cli.context import moment_of, split
from policyeng.errors import UsageError

#: Relative to the current directory; see `policyeng.verify.runner` for the contents.
DATABASE = Path(".policyeng/verify")
EXAMPLES = 1000
PAIRS = 100_000
#: The analyses by their options; the laws have no option.
LAWS, ENGINES, REDUNDANCY, SATISFIABLE, MUTATION = "", "--engines", "--redundancy", "--satisfiable", "--mutation"
#: Options that not every analysis accepts, with those that do.
TAKEN_BY = {
    "--law": (LAWS,),
    "--examples": (LAWS, REDUNDANCY),
    "--jobs": (LAWS,),
    "--database": (LAWS,),
    "--no-database": (LAWS,),
    "--pairs": (ENGINES,),
    "--without": (ENGINES,),
    "--counterexample": (LAWS, ENGINES),
    "--seed": (LAWS, ENGINES, REDUNDANCY, MUTATION),
    "--classes": (SATISFIABLE,),
    "--class": (SATISFIABLE,),
    "--profile": (SATISFIABLE,),
    "--witness": (SATISFIABLE,),
    "--min-mutation-score": (MUTATION,),
    "--sample": (MUTATION,),
}

Redundancy = Annotated[
    bool, typer.Option("--redundancy", help="Find policies that never apply, never fail or are implied by others.")
]
Examples = Annotated[
    int | None, typer.Option(metavar="N", min=1, help=f"Number of random examples. Default: {EXAMPLES}.")
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Random seed, to repeat an earlier run. Default: random.")]
CounterexampleFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File for the smallest snapshot that shows a violation.")
]


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """Options that all analyses share.

    Attributes:
        naming: the options that name the policies, for printed commands.
        wanted: the number of examples, if given.
        counterexample: the file for the first counterexample; the others get a number.
        format: text, json or junit.
    """

    bundle: Bundle
    naming: Sequence[str]
    wanted: int | None
    seed: int
    counterexample: Path | None
    format: str

    @property
    def examples(self) -> int:
        """The number of examples."""
        return self.wanted or EXAMPLES


@dataclass(frozen=True, slots=True)
class LawOptions:
    """The laws to test, and how; `given` has the value of each option, None if it is not given.

    Attributes:
        names: numbers or names; all laws if empty.
        jobs: the number of processes; 0 is one per processor.
        database: the directory where failures are stored; None stores none.
    """

    names: Sequence[str]
    jobs: int
    database: Path | None
    given: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Whether to compare engines, on how many pairs and without which engines."""

    requested: bool
    pairs: int
    without: Sequence[str]
    given: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class MutationOptions:
    """Whether to mutate policies, how often each, and the minimum score in percent."""

    requested: bool
    sample: int
    minimum: float | None
    given: Mapping[str, object]


def law_options(
    *,
    law: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Test only this law, by name or number; repeatable or comma-separated."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Number of test processes. Default: one per processor."),
    ] = None,
    database: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help=f"Directory for failing examples, which are tested first next time. Default: {DATABASE}.",
        ),
    ] = None,
    no_database: Annotated[bool, typer.Option("--no-database", help="Do not read or write failing examples.")] = False,
) -> LawOptions:
    """Gather the options for the laws."""
    if database is not None and no_database:
        raise UsageError("`--database` and `--no-database` cannot be combined", remedy="remove one of them")
    given = {"--law": law, "--jobs": jobs, "--database": database, "--no-database": no_database or None}
    return LawOptions(law or (), jobs or 0, None if no_database else database or DATABASE, given)


def engine_options(
    *,
    engines: Annotated[
        bool, typer.Option("--engines", help="Compare the findings of all engines on the same random pairs.")
    ] = False,
    pairs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help=f"With --engines: number of pairs to compare. Default: {PAIRS}."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="ENGINE", help="With --engines: skip this engine; repeatable or comma-separated."),
    ] = None,
) -> EngineOptions:
    """Gather the options for comparing engines."""
    return EngineOptions(engines, pairs or PAIRS, without or (), {"--pairs": pairs, "--without": without})


def mutation_options(
    *,
    mutation: Annotated[
        bool,
        typer.Option(
            "--mutation",
            help="Inject small faults into the policies and measure whether test cases and laws detect them.",
        ),
    ] = False,
    min_mutation_score: Annotated[
        float | None,
        typer.Option(metavar="N", min=0, max=100, help="Exit 1 if a smaller percentage of faults is detected."),
    ] = None,
    sample: Annotated[int | None, typer.Option(metavar="N", min=1, help="Maximum number of faults per policy.")] = None,
) -> MutationOptions:
    """Gather the options for mutation."""
    given = {"--min-mutation-score": min_mutation_score, "--sample": sample}
    return MutationOptions(mutation, sample or 0, min_mutation_score, given)


@dataclass(frozen=True, slots=True)
class ClassOptions:
    """The workload classes to analyze, and how.

    Attributes:
        requested: whether the analysis is requested.
        paths: files and directories of additional classes.
        chosen: class ids; all if empty.
        as_of: the clock; now if None.
        profile: a named set of parameters.
        witness: the output directory for example snapshots.
        given: the value of each option; None if it is not given.
    """

    requested: bool
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
