"""`policyeng verify`: prove that a bundle is consistent."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from policyeng.cli import options
from policyeng.cli.loading import plain_format, selected_bundle, settings_of
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError

#: Below the current directory; `policyeng.verify.running.kept` says what lies there.
_DATABASE = Path(".policyeng/verify")
_EXAMPLES = 1000
_PAIRS = 100_000


def verify(
    engines: Annotated[
        bool, typer.Option("--engines", help="Compare what every engine says of the same random pairs.")
    ] = False,
    policy: options.Policies = None,
    data: options.GivenData = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    law: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this law, by name or number; repeatable, or with commas."),
    ] = None,
    examples: Annotated[
        int | None, typer.Option(metavar="N", min=1, help=f"How many examples the laws are tried on; {_EXAMPLES:,}.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Draw the examples of an earlier run again; any unless given.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Processes that try laws; 0, or none given, is one for each processor."),
    ] = None,
    database: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help=f"Where failures are kept, to be tried first next time; {_DATABASE}."),
    ] = None,
    no_database: Annotated[bool, typer.Option("--no-database", help="Neither try kept failures nor keep any.")] = False,
    pairs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help=f"With --engines: how many pairs to compare; {_PAIRS:,}."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="ENGINE", help="With --engines: leave an engine out; repeatable, or with commas."),
    ] = None,
    counterexample: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the smallest snapshot that shows what is wrong.")
    ] = None,
    format_: options.VerifyFormat = "text",
    config: options.Config = None,
    *,
    trust: Mapping[str, object],
    opa: OpaOptions,
) -> int:
    """Prove that a bundle is consistent: exit 0 when every law holds, 1 when one is violated, 2 when undecided.

    The laws (docs/laws.md) are tried on random examples drawn for the bundle; a violated one shows the smallest
    snapshot. With --engines the engines are compared instead.

    Examples:
      policyeng verify --policy my-policies --examples 10000 --seed 7 --counterexample smallest.json
      policyeng verify --law order,gate
      policyeng verify --engines --policy my-policies --pairs 10000
    """
    format_ = plain_format(format_, "junit")
    for_laws = {"--law": law, "--examples": examples, "--jobs": jobs, "--database": database}
    if engines:
        _refuse(for_laws | {"--no-database": no_database or None}, "belongs to the laws, not to `--engines`")
        if format_ == "junit":
            raise UsageError("`--engines` prints text or json", remedy="leave `--format junit` out")
    else:
        _refuse({"--pairs": pairs, "--without": without}, "belongs to `--engines`")
    if no_database and database:
        raise UsageError("`--database` and `--no-database` are both given", remedy="leave one of them out")
    bundle = selected_bundle(policy, settings_of(trust, config), data, select, ignore)
    chosen = random.SystemRandom().randrange(2**32) if seed is None else seed
    if engines:
        from policyeng.cli.verifying.engines import verify_engines

        return verify_engines(
            bundle,
            pairs=pairs or _PAIRS,
            seed=chosen,
            without=without,
            counterexample=counterexample,
            format_=format_,
            opa=opa,
        )
    from policyeng.cli.verifying.laws import verify_laws

    return verify_laws(
        bundle,
        list(_naming(policy, data)),
        law=law,
        examples=examples or _EXAMPLES,
        seed=chosen,
        jobs=jobs or 0,
        database=None if no_database else database or _DATABASE,
        counterexample=counterexample,
        format_=format_,
    )


def _refuse(given: Mapping[str, object], why: str) -> None:
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"`{option}` {why}", remedy="leave one of them out")


def _naming(policy: Sequence[Path] | None, data: Sequence[str] | None) -> Iterator[str]:
    """The options that name the policies, as they were given."""
    for path in policy or ():
        yield from ("--policy", str(path))
    for name in data or ():
        yield from ("--data", name)
