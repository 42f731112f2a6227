"""`policyeng verify`: prove that a bundle is consistent."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from policyeng.cli import options
from policyeng.cli.loading import plain_format, selected_bundle, settings_of
from policyeng.cli.verifying import options as verifying
from policyeng.cli.verifying.classes import ClassOptions
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError


def verify(
    engines: verifying.Engines = False,
    redundancy: verifying.Redundancy = False,
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
    classes: ClassOptions,
) -> int:
    """Prove that a bundle is consistent: exit 0 when it is, 1 when it is not, 2 when it could not be decided.

    The laws (docs/laws.md) are tried on random examples drawn for the bundle; a violated one shows the smallest
    snapshot. --engines, --redundancy and --satisfiable ask something else.

    Examples:
      policyeng verify --policy my-policies --examples 10000 --seed 7 --counterexample smallest.json
      policyeng verify --law order,gate
      policyeng verify --engines --policy my-policies --pairs 10000
      policyeng verify --redundancy --policy my-policies
      policyeng verify --satisfiable --class batch-scoring --as-of 2028-01-01 --witness witnesses
    """
    way = _way({verifying.ENGINES: engines, verifying.REDUNDANCY: redundancy, verifying.SATISFIABLE: classes.asked})
    given = {"--law": law, "--examples": examples, "--seed": seed, "--jobs": jobs, "--database": database}
    given |= {"--no-database": no_database or None, "--pairs": pairs, "--without": without}
    _refuse_what_does_nothing(way, {**given, "--counterexample": counterexample, **classes.given})
    format_ = plain_format(format_, *([] if way == verifying.ENGINES else ["junit"]))
    settings = settings_of({"profile": classes.profile, **trust}, config)
    bundle = selected_bundle(policy, settings, data, select, ignore)
    naming = list(_naming(policy, data))
    chosen = random.SystemRandom().randrange(2**32) if seed is None else seed
    if way == verifying.SATISFIABLE:
        from policyeng.cli.verifying.satisfiable import verify_satisfiable

        return verify_satisfiable(bundle, settings, classes, naming, format_)
    if way == verifying.ENGINES:
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
    if way == verifying.REDUNDANCY:
        from policyeng.cli.verifying.redundancy import verify_redundancy

        return verify_redundancy(bundle, examples=examples or verifying.EXAMPLES, seed=chosen, format_=format_)
    from policyeng.cli.verifying.laws import verify_laws

    return verify_laws(
        bundle,
        naming,
        law=law,
        examples=examples or verifying.EXAMPLES,
        seed=chosen,
        jobs=jobs or 0,
        database=None if no_database else database or verifying.DATABASE,
        counterexample=counterexample,
        format_=format_,
    )


def _way(named: Mapping[str, bool]) -> str:
    """What is asked: the laws where nothing else is.

    Raises:
        UsageError: two things are.
    """
    asked = [way for way, is_named in named.items() if is_named]
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(f'`{way}`' for way in asked)} are two questions", remedy="ask one at a time")
    return asked[0] if asked else verifying.LAWS


def _refuse_what_does_nothing(way: str, given: Mapping[str, object]) -> None:
    """Refuse options of another way of asking.

    Raises:
        UsageError: naming one of them.
    """
    for option, value in given.items():
        ways = verifying.TAKEN_BY.get(option)
        if value is not None and ways and way not in ways:
            what = f"`{option}` does nothing with {f'`{way}`' if way else 'the laws'}"
            belongs = " or ".join(f"`{other}`" if other else "the laws" for other in ways)
            raise UsageError(what, remedy=f"it is for {belongs}: leave one of them out")
    if given["--database"] is not None and given["--no-database"] is not None:
        raise UsageError("`--database` and `--no-database` are both given", remedy="leave one of them out")


def _naming(policy: Sequence[Path] | None, data: Sequence[str] | None) -> Iterator[str]:
    """The options that name the policies, as they were given."""
    for path in policy or ():
        yield from ("--policy", str(path))
    for name in data or ():
        yield from ("--data", name)
