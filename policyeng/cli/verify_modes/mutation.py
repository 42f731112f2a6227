"""`policyeng verify --mutation`: measure whether test cases and laws detect small faults in policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from policyeng.cli.console import print_line
from policyeng.cli.progress import show_progress
from policyeng.cli.verify_modes.options import MutationOptions, VerifyOptions

if TYPE_CHECKING:
    from policyeng.verify.mutation.run import MutationRun


def verify_mutation(asked: VerifyOptions, options: MutationOptions) -> int:
    """Test the mutants of a bundle's policies and print the results.

    Returns:
        0; 1 if the score is below the minimum or a justified survivor does not survive; 2 if no mutant could be tested,
        or if there is a minimum and a policy has no test cases.

    Raises:
        BundleError: test cases or justified survivors are not well formed, or a test case fails without mutation.
        EngineError: the bundle does not compile.
    """
    from policyeng.verify.laws import LAWS
    from policyeng.verify.mutation import report
    from policyeng.verify.mutation.run import run

    bundle, minimum = asked.bundle, options.minimum
    with show_progress("mutating", "policies", len(bundle.policies)) as advance:
        made = run(bundle, seed=asked.seed, sample=options.sample, laws=LAWS, progress=advance)
    if asked.format == "text":
        typer.echo(report.as_text(made))
        typer.echo(_conclude(made, minimum))
    else:
        typer.echo(report.as_json(made) if asked.format == "json" else report.as_junit(made))
    code = _exit_code(made, minimum)
    if code == 2:
        untried = ", ".join(made.without_cases) or "no mutant of any policy compiles"
        print_line(f"policyeng: not tested: {untried}; add a `cases.yaml` next to each policy", error=True)
    return code


def _exit_code(made: MutationRun, minimum: float | None) -> int:
    if not made.is_tried or (minimum is not None and made.without_cases):
        return 2
    stale = any(tally.stale for tally in made.tallies)
    return int(stale or (minimum is not None and made.score < minimum))


def _conclude(made: MutationRun, minimum: float | None) -> str:
    code = _exit_code(made, minimum)
    if not made.is_tried:
        return f"exit {code}: no mutant could be tested"
    asked = "" if minimum is None else f", minimum {minimum:g} %"
    return f"exit {code}: mutation score {made.score:.2f} %{asked}"
