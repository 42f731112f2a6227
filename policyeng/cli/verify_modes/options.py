"""The options of `policyeng verify` that no other command has, in groups, and what they come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from policyeng.bundle import Bundle
from policyeng.cli.option_groups import with_group
from policyeng.errors import UsageError

#: Below the current directory; `policyeng.verify.runner.run` says what lies there.
DATABASE = Path(".policyeng/verify")
EXAMPLES = 1000
PAIRS = 100_000
#: The ways of asking, by the option that names them; the laws have none.
LAWS, ENGINES, REDUNDANCY, SATISFIABLE, MUTATION = "", "--engines", "--redundancy", "--satisfiable", "--mutation"
#: By option that not every way of asking takes, those that do.
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
    int | None, typer.Option(metavar="N", min=1, help=f"How many random examples are drawn; {EXAMPLES} unless given.")
]
Seed = Annotated[
    int | None, typer.Option(metavar="N", help="Draw the examples of an earlier run again; any unless given.")
]
CounterexampleFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the smallest snapshot that shows what is wrong.")
]


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """What every way of asking needs.

    Attributes:
        naming: the options that name the policies, for the commands that are printed.
        wanted: how many examples, where that is said.
        counterexample: where the first smallest snapshot is written, the others beside it with a number.
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
        """How many examples."""
        return self.wanted or EXAMPLES


@dataclass(frozen=True, slots=True)
class LawOptions:
    """Which laws are tried and how; `given` has by option its value, None where it is not given.

    Attributes:
        names: numbers or names; all laws unless given.
        jobs: processes; 0 is one for each processor.
        database: where failures are kept; None keeps none.
    """

    names: Sequence[str]
    jobs: int
    database: Path | None
    given: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Whether engines are compared, on how many pairs and without which."""

    asked: bool
    pairs: int
    without: Sequence[str]
    given: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class MutationOptions:
    """Whether policies are mutated, how often each, and the score that is asked for, in percent."""

    asked: bool
    sample: int
    minimum: float | None
    given: Mapping[str, object]


def with_questions(command: Callable[..., int]) -> Callable[..., int]:
    """A command with the options of laws, engines and mutation; they reach it as `laws`, `engines` and `mutation`."""
    with_laws = with_group(command, "laws", _law_options)
    return with_group(with_group(with_laws, "engines", _engine_options), "mutation", _mutation_options)


def _law_options(
    *,
    law: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this law, by name or number; repeatable, or with commas."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Processes that try laws; one for each processor unless given."),
    ] = None,
    database: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help=f"Where failures are kept, to be tried first next time; {DATABASE} unless given."
        ),
    ] = None,
    no_database: Annotated[bool, typer.Option("--no-database", help="Neither try kept failures nor keep any.")] = False,
) -> LawOptions:
    if database is not None and no_database:
        raise UsageError("`--database` and `--no-database` are both given", remedy="leave one of them out")
    given = {"--law": law, "--jobs": jobs, "--database": database, "--no-database": no_database or None}
    return LawOptions(law or (), jobs or 0, None if no_database else database or DATABASE, given)


def _engine_options(
    *,
    engines: Annotated[
        bool, typer.Option("--engines", help="Compare what every engine says of the same random pairs.")
    ] = False,
    pairs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help=f"With --engines: how many pairs to compare; {PAIRS} unless given."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="ENGINE", help="With --engines: leave an engine out; repeatable, or with commas."),
    ] = None,
) -> EngineOptions:
    return EngineOptions(engines, pairs or PAIRS, without or (), {"--pairs": pairs, "--without": without})


def _mutation_options(
    *,
    mutation: Annotated[
        bool, typer.Option("--mutation", help="Write small faults into the policies: do cases and laws notice them?")
    ] = False,
    min_mutation_score: Annotated[
        float | None,
        typer.Option(metavar="N", min=0, max=100, help="Exit 1 when fewer percent of faults are noticed."),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Try at most so many faults of each policy.")
    ] = None,
) -> MutationOptions:
    given = {"--min-mutation-score": min_mutation_score, "--sample": sample}
    return MutationOptions(mutation, sample or 0, min_mutation_score, given)
