"""`policyeng verify`: verify that a bundle is consistent."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policyeng.cli import options
from policyeng.cli import verify_options as verifying
from policyeng.cli.context import plain_format
from policyeng.cli.evaluation_options import OpaServerOptions, SelectionOptions
from policyeng.cli.files import require_directory
from policyeng.cli.option_groups import with_group, with_options
from policyeng.cli.verify_options import (
    ENGINES,
    LAWS,
    MUTATION,
    REDUNDANCY,
    SATISFIABLE,
    ClassOptions,
    VerifyOptions,
    class_options,
)
from policyeng.errors import UsageError


@dataclass(kw_only=True, repr=False, eq=False)
class VerifyCommandOptions(SelectionOptions, OpaServerOptions):
    """The options of every analysis."""

    redundancy: verifying.Redundancy = False
    examples: verifying.Examples = None
    seed: verifying.Seed = None
    counterexample: verifying.CounterexampleFile = None
    format_: options.VerifyFormat = "text"


@with_group("classes", class_options)
@with_group("mutation", verifying.mutation_options)
@with_group("engines", verifying.engine_options)
@with_group("laws", verifying.law_options)
@with_options(VerifyCommandOptions)
def verify(
    args: VerifyCommandOptions,
    *,
    laws: verifying.LawOptions,
    engines: verifying.EngineOptions,
    classes: ClassOptions,
    mutation: verifying.MutationOptions,
) -> int:
    """Verify that a policy bundle is consistent. Exit codes: 0 consistent, 1 not consistent, 2 undecided.

    By default, the laws (docs/laws.md) are tested on random examples for the bundle, and a violation is reported with
    the smallest snapshot. --engines, --redundancy, --satisfiable and --mutation run other analyses instead.

    Examples:
      policyeng verify --policy my-policies --examples 10000 --seed 7 --counterexample smallest.json
      policyeng verify --law order,total
      policyeng verify --engines --policy my-policies --pairs 10000
      policyeng verify --redundancy --policy my-policies
      policyeng verify --satisfiable --class batch-scoring --as-of 2028-01-01 --witness witnesses
      policyeng verify --mutation --policy my-policies --min-mutation-score 95
    """
    named = {
        ENGINES: engines.requested,
        REDUNDANCY: args.redundancy,
        SATISFIABLE: classes.requested,
        MUTATION: mutation.requested,
    }
    way = _choose_analysis([name for name, is_named in named.items() if is_named])
    given = {"--examples": args.examples, "--seed": args.seed, "--counterexample": args.counterexample}
    _refuse_what_does_nothing(way, {**given, **laws.given, **engines.given, **classes.given, **mutation.given})
    format_ = plain_format(args.format_, *([] if way == ENGINES else ["junit"]))
    require_directory(args.counterexample, "counterexample")
    settings = args.settings(profile=classes.profile)
    bundle = args.bundle(settings)
    bundle.run_python(twins=True)
    seed = _seed(args.seed, way)
    common = VerifyOptions(bundle, args.repeated, args.examples, seed, args.counterexample, format_)
    from policyeng.engines.embedded import checked_types  # loaded by commands that compile

    with checked_types():
        if way == ENGINES:
            from policyeng.cli.verify_modes import verify_engines

            return verify_engines(common, engines, args.opa())
        if way == REDUNDANCY:
            from policyeng.cli.verify_modes import verify_redundancy

            return verify_redundancy(common)
        if way == SATISFIABLE:
            from policyeng.cli.verify_modes import verify_satisfiable

            return verify_satisfiable(common, settings, classes)
        if way == MUTATION:
            from policyeng.cli.verify_modes import verify_mutation

            return verify_mutation(common, mutation)
        from policyeng.cli.verify_modes import verify_laws

        return verify_laws(common, laws)


def _choose_analysis(named: Sequence[str]) -> str:
    """Return the option of the chosen analysis; the laws are the default.

    Raises:
        UsageError: more than one is chosen.
    """
    if len(named) > 1:
        message = f"{' and '.join(f'`{way}`' for way in named)} cannot be combined"
        raise UsageError(message, remedy="run them one at a time")
    return named[0] if named else LAWS


def _refuse_what_does_nothing(way: str, given: Mapping[str, object]) -> None:
    """Refuse options of another analysis.

    Raises:
        UsageError: naming one of them.
    """
    for option, value in given.items():
        ways = verifying.TAKEN_BY[option]
        if value is not None and way not in ways:
            what = f"`{option}` does not apply to {f'`{way}`' if way else 'the laws'}"
            belongs = " or ".join(f"`{other}`" if other else "the laws" for other in ways)
            raise UsageError(what, remedy=f"use it with {belongs}")


def _seed(given: int | None, way: str) -> int:
    """Return the seed of a run: random by default, but fixed for mutation so that its score is reproducible."""
    if given is not None:
        return given
    return 0 if way == MUTATION else random.SystemRandom().randrange(2**32)
