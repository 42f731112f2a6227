"""`policyeng audit impact`: evaluate stored runs with other policies or parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from policyeng.cli.audit.ahead import FORMATS, TableFormat
from policyeng.cli.audit.estate_argument import EstateName, estates_of
from policyeng.cli.audit.options import StoreUrl, store_of
from policyeng.cli.console import detect_terminal, print_line
from policyeng.cli.context import find_known
from policyeng.cli.opa_options import OpaServerOptions
from policyeng.cli.option_groups import with_options
from policyeng.cli.policy_options import SetupOptions
from policyeng.cli.progress import show_progress
from policyeng.frozen import frozen
from policyeng.ownership import OWNER_TAG

if TYPE_CHECKING:
    from policyeng.audit.diff.impact import Impact

Runs = Annotated[int, typer.Option(metavar="N", min=1, help="Number of runs per estate to evaluate, newest first.")]
MaxNew = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Exit 1 if a run would have more new failures than this.")
]
OwnerTag = Annotated[str, typer.Option(metavar="TAG", help="Tag that contains the owner of a resource.")]


@frozen(kw_only=True)
class ImpactOptions(SetupOptions, OpaServerOptions):
    """The options of `policyeng audit impact`."""

    estate: EstateName = None
    runs: Runs = 1
    max_new_failures: MaxNew = None
    owner_tag: OwnerTag = OWNER_TAG
    format_: TableFormat = "text"
    store: StoreUrl = None


@with_options(ImpactOptions)
def impact(asked: ImpactOptions) -> int:
    """Evaluate stored runs with other policies or parameters: which findings would change, and their owners.

    The snapshots, clock and engine are those of each run, and so are the exemptions unless others are given.
    Exit codes: 0, 1 for more new failures than --max-new-failures, 2 if something could not be evaluated.

    Examples:
      policyeng audit impact production --policy policies-1.1/ --max-new-failures 10
      policyeng audit impact --profile strict --runs 5 --format csv
    """
    format_ = find_known(asked.format_, FORMATS, "format")
    held = asked.setup(asked.settings())

    from policyeng.audit.diff.impact import Proposed, evaluate_impact, exceeds

    theirs = held.exemptions if asked.exemptions or asked.no_exemptions else None
    proposed = Proposed(held.bundle, held.parameters, theirs, asked.owner_tag, asked.opa())
    with store_of(asked.store, asked.config) as kept:
        chosen_runs = [run for name in estates_of(kept, asked.estate) for run in kept.runs(name, last=asked.runs)]
        impacts = []
        for run in chosen_runs:
            with show_progress(f"re-evaluating run {run.number}"):
                impacts.append(evaluate_impact(kept, run, proposed))
    for problem in held.problems:
        print_line(f"policyeng: {problem.place}: {problem.message}", error=True)
    _print(impacts, format_)
    if any(problem.level == "error" for problem in (*held.problems, *(p for one in impacts for p in one.problems))):
        return 2
    return int(exceeds(impacts, asked.max_new_failures))


def _print(impacts: Sequence[Impact], format_: str) -> None:
    from policyeng.audit.diff.impact import FORMS, text

    color, width = detect_terminal()
    is_text = format_ == "text"
    rendered = text(impacts, color=color, width=width) if is_text else FORMS[format_](impacts)
    print_line(rendered.rstrip("\n"))
