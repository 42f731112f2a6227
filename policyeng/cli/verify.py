"""`policyeng verify`: prove that a bundle is consistent."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from policyeng.cli import options
from policyeng.cli.loading import plain_format, selected_bundle, settings_of
from policyeng.cli.verifying import options as verifying
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError


def verify(
    engines: verifying.Engines = False,
    policy: options.Policies = None,
    data: options.GivenData = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    law: verifying.LawNames = None,
    examples: verifying.Examples = None,
    seed: verifying.Seed = None,
    jobs: verifying.Jobs = None,
    database: verifying.Database = None,
    no_database: verifying.NoDatabase = False,
    pairs: verifying.Pairs = None,
    without: verifying.Without = None,
    counterexample: verifying.CounterexampleFile = None,
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
    _refuse_mixture(engines, (law, examples, jobs, database, no_database or None), (pairs, without), format_)
    bundle = selected_bundle(policy, settings_of(trust, config), data, select, ignore)
    chosen = random.SystemRandom().randrange(2**32) if seed is None else seed
    if engines:
        from policyeng.cli.verifying.engines import verify_engines

        return verify_engines(
            bundle,
            pairs=pairs or verifying.PAIRS,
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
        examples=examples or verifying.EXAMPLES,
        seed=chosen,
        jobs=jobs or 0,
        database=None if no_database else database or verifying.DATABASE,
        counterexample=counterexample,
        format_=format_,
    )


#: The options that only laws have, and those that only the engines have.
_FOR_LAWS = ("--law", "--examples", "--jobs", "--database", "--no-database")
_FOR_ENGINES = ("--pairs", "--without")


def _refuse_mixture(engines: bool, for_laws: Sequence[object], for_engines: Sequence[object], format_: str) -> None:
    """Refuse options that nothing would be done with.

    Raises:
        UsageError: naming one of them.
    """
    given = zip(_FOR_LAWS, for_laws, strict=True) if engines else zip(_FOR_ENGINES, for_engines, strict=True)
    for option, value in given:
        if value is not None:
            why = "belongs to the laws, not to" if engines else "belongs to"
            raise UsageError(f"`{option}` {why} `--engines`", remedy="leave one of them out")
    if engines and format_ == "junit":
        raise UsageError("`--engines` prints text or json", remedy="leave `--format junit` out")
    if not any(value is None for value in for_laws[-2:]):
        raise UsageError("`--database` and `--no-database` are both given", remedy="leave one of them out")


def _naming(policy: Sequence[Path] | None, data: Sequence[str] | None) -> Iterator[str]:
    """The options that name the policies, as they were given."""
    for path in policy or ():
        yield from ("--policy", str(path))
    for name in data or ():
        yield from ("--data", name)
