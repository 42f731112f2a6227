"""The options of `policyeng verify` that no other command has, and their defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

#: Below the current directory; `policyeng.verify.running.kept` says what lies there.
DATABASE = Path(".policyeng/verify")
EXAMPLES = 1000
PAIRS = 100_000
#: The ways of asking, by the option that names them; the laws have none.
LAWS, ENGINES, REDUNDANCY, SATISFIABLE = "", "--engines", "--redundancy", "--satisfiable"
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
    "--seed": (LAWS, ENGINES, REDUNDANCY),
    "--classes": (SATISFIABLE,),
    "--class": (SATISFIABLE,),
    "--profile": (SATISFIABLE,),
    "--witness": (SATISFIABLE,),
}

Engines = Annotated[bool, typer.Option("--engines", help="Compare what every engine says of the same random pairs.")]
Redundancy = Annotated[
    bool, typer.Option("--redundancy", help="Find policies that never apply, never fail or are implied by others.")
]
LawNames = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Only this law, by name or number; repeatable, or with commas."),
]
Examples = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help=f"How many random examples are drawn; {EXAMPLES} unless given.",
    ),
]
Seed = Annotated[
    int | None, typer.Option(metavar="N", help="Draw the examples of an earlier run again; any unless given.")
]
Jobs = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Processes that try laws; one for each processor unless given.")
]
Database = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help=f"Where failures are kept, to be tried first next time; {DATABASE} unless given."),
]
NoDatabase = Annotated[bool, typer.Option("--no-database", help="Neither try kept failures nor keep any.")]
Pairs = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help=f"With --engines: how many pairs to compare; {PAIRS} unless given."),
]
Without = Annotated[
    list[str] | None,
    typer.Option(metavar="ENGINE", help="With --engines: leave an engine out; repeatable, or with commas."),
]
CounterexampleFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the smallest snapshot that shows what is wrong.")
]
