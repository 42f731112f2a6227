"""`policyeng verify`: prove that a bundle is consistent."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from policyeng.cli import options
from policyeng.cli.loading import plain_format, selected_bundle, settings_of
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError


def verify(
    engines: Annotated[
        bool, typer.Option("--engines", help="Compare what every engine says of the same random pairs.")
    ] = False,
    mutation: options.Mutation = False,
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
        list[str] | None, typer.Option(metavar="ENGINE", help="Leave an engine out; repeatable, or with commas.")
    ] = None,
    counterexample: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the smallest snapshot on which engines differ.")
    ] = None,
    min_mutation_score: options.MinMutationScore = None,
    sample: options.Sample = None,
    format_: options.VerifyFormat = "text",
    config: options.Config = None,
    *,
    trust: Mapping[str, object],
    opa: OpaOptions,
) -> int:
    """Prove that a bundle is consistent: exit 0 when it is, 1 when it is not, 2 when it could not be decided.

    Examples:
      policyeng verify --engines
      policyeng verify --engines --policy my-policies --pairs 10000 --seed 7 --counterexample smallest.json
      policyeng verify --mutation --policy my-policies --min-mutation-score 95
    """
    if engines == mutation:
        remedy = "--engines compares the engines, --mutation tries whether faults in policies are noticed"
        raise UsageError("name one thing to verify", remedy=remedy)
    format_ = plain_format(format_, *(["junit"] if mutation else []))
    bundle = selected_bundle(policy, settings_of(trust, config), data, select, ignore)
    if mutation:
        from policyeng.cli.verifying.mutation import verify_mutation

        return verify_mutation(bundle, seed=seed or 0, sample=sample or 0, minimum=min_mutation_score, format_=format_)
    from policyeng.cli.verifying.engines import verify_engines

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
