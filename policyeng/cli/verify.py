"""`policyeng verify`: prove that a bundle is consistent."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from policyeng.cli import options
from policyeng.cli.classes import ClassOptions
from policyeng.cli.loading import plain_format, selected_bundle, settings_of
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError


def verify(
    engines: Annotated[
        bool, typer.Option("--engines", help="Compare what every engine says of the same random pairs.")
    ] = False,
    policy: options.Policies = None,
    data: options.GivenData = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    pairs: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many pairs of policy and resource to compare.")
    ] = 100_000,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Draw the examples of an earlier run again; any unless given.")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="ENGINE", help="Leave an engine out; repeatable, or with commas."),
    ] = None,
    counterexample: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the smallest snapshot on which engines differ.")
    ] = None,
    format_: options.VerifyFormat = "text",
    config: options.Config = None,
    *,
    trust: Mapping[str, object],
    opa: OpaOptions,
    classes: ClassOptions,
) -> int:
    """Prove that a bundle is consistent: exit 0 when it is, 1 when it is not, 2 when it could not be decided.

    Examples:
      policyeng verify --engines
      policyeng verify --engines --policy my-policies --pairs 10000 --seed 7 --counterexample smallest.json
      policyeng verify --satisfiable --class batch-scoring --as-of 2028-01-01 --witness witnesses
    """
    _require_one(engines, classes.asked)
    settings = settings_of({"profile": classes.profile, **trust}, config)
    bundle = selected_bundle(policy, settings, data, select, ignore)
    if classes.asked:
        from policyeng.cli.verifying.satisfiable import verify_satisfiable

        return verify_satisfiable(
            bundle, settings, classes, list(_naming(policy, data)), plain_format(format_, "junit")
        )
    from policyeng.cli.verifying.engines import verify_engines

    format_ = plain_format(format_)
    chosen = random.SystemRandom().randrange(2**32) if seed is None else seed
    return verify_engines(
        bundle,
        pairs=pairs,
        seed=chosen,
        without=without,
        counterexample=counterexample,
        format_=format_,
        opa=opa,
    )


def _require_one(engines: bool, satisfiable: bool) -> None:
    if engines is satisfiable:
        what = "two things to verify are named" if engines else "nothing to verify is named"
        remedy = "name one: --engines compares the engines, --satisfiable looks for estates that pass every policy"
        raise UsageError(what, remedy=remedy)


def _naming(policy: Sequence[Path] | None, data: Sequence[str] | None) -> Iterator[str]:
    """The options that name the policies, as they were given."""
    for path in policy or ():
        yield from ("--policy", str(path))
    for name in data or ():
        yield from ("--data", name)
