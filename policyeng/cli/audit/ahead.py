"""`policyeng audit ahead` and `audit impact`: failures at later times and with other policies or parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policyeng.audit.diff.inputs import State
from policyeng.cli.audit.options import EstateName, StoreUrl, estates_of, store_of
from policyeng.cli.console import print_form, print_line, show_progress
from policyeng.cli.context import find_known, moment_of
from policyeng.cli.evaluation_options import CriteriaOptions, OpaServerOptions, RegoEngineOptions, SetupOptions
from policyeng.cli.option_groups import with_options
from policyeng.configuration import Settings
from policyeng.configuration.audit_sections import input_of
from policyeng.configuration.settings import EstateSettings
from policyeng.context import EvaluationSetup, walk_of
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError
from policyeng.ownership import OWNER_TAG

if TYPE_CHECKING:
    from policyeng.audit.diff.forecast import Outlook, Ready

FORMATS = ("text", "json", "csv", "markdown")
_DAYS = 90

Given = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="INPUT", help="Directory, file or URL to read instead of the store; repeatable."),
]
Days = Annotated[
    int | None, typer.Option(metavar="N", min=1, max=36500, help=f"Number of days to look ahead. Default: {_DAYS}.")
]
Until = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="Look ahead to this time (ISO 8601) instead of --days.")
]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="Start at this time (ISO 8601). Default: now.")]
TableFormat = Annotated[str, typer.Option("--format", metavar="FORMAT", help=f"Output format: {', '.join(FORMATS)}.")]


@dataclass(kw_only=True, repr=False, eq=False)
class AheadOptions(CriteriaOptions, RegoEngineOptions):
    """The options of `policyeng audit ahead`."""

    estate: EstateName = None
    input_: Given = None
    days: Days = None
    until: Until = None
    since: Since = None
    format_: TableFormat = "text"
    store: StoreUrl = None


@with_options(AheadOptions)
def ahead(args: AheadOptions) -> int:
    """Forecast failures if nothing changes. Exit codes: 0 no new failures, 1 new failures, 2 undecided.

    The snapshots of the newest run are evaluated with the policies, parameters and exemptions of that run, at every
    time at which a result may change. With --input, the inputs are read now and evaluated as by `check`.

    Examples:
      policyeng audit ahead production --days 90
      policyeng audit ahead --input snapshots/ --exemptions exemptions.yaml --as-of 2027-01-01
    """
    format_, begins = find_known(args.format_, FORMATS, "format"), moment_of(args.since, "--since", starts=True)
    ends = _until(begins, args.days, args.until)
    settings = args.settings()
    looking = _Looking(settings, begins, ends, *args.rego_engine())
    if args.input_:
        if args.estate is not None:
            raise UsageError("`--input` and an estate cannot be combined", remedy="remove one of them")
        outlooks = [looking.at_inputs(args.input_, args.setup(settings))]
    else:
        _refuse_input_options(args)
        outlooks = looking.at_store(args.store, args.config, args.estate)
    from policyeng.audit.diff import forecast

    print_form(forecast.FORMS[format_], outlooks, format_)
    return max(one.exit_code for one in outlooks)


def _refuse_input_options(args: AheadOptions) -> None:
    """Refuse options that only apply to --input.

    Raises:
        UsageError: one of them is given.
    """
    given = (args.policy, args.data, args.select, args.ignore, args.exemptions, args.no_exemptions, args.profile)
    if any(given):
        remedy = "add --input, or remove --policy, --data, --select, --ignore, --exemptions and --profile"
        raise UsageError("a stored run is evaluated with its own policies and exemptions", remedy=remedy)


def _until(begins: datetime, days: int | None, until: str | None) -> datetime:
    """Return the end of the forecast.

    Raises:
        UsageError: it is given twice, is not after the start, or is out of range.
    """
    if until is not None and days is not None:
        raise UsageError("`--days` and `--as-of` cannot be combined", remedy="remove one of them")
    try:
        ends = moment_of(until) if until is not None else begins + timedelta(days=days or _DAYS)
    except OverflowError:
        raise UsageError("`--days` is out of range", remedy="use fewer days") from None
    if ends <= begins:
        raise UsageError("the end of the forecast is not after its start", remedy="use a later --as-of")
    return ends


class _Looking:
    """A forecast up to a given time."""

    def __init__(self, settings: Settings, begins: datetime, ends: datetime, engine: str, opa: OpaOptions) -> None:
        self._settings = settings
        self._begins, self._ends = begins, ends
        self._engine, self._opa = engine, opa

    def at_inputs(self, inputs: Sequence[str], setup: EvaluationSetup) -> Outlook:
        """Forecast the given inputs."""
        from policyeng.audit.collection.parts import parts_of

        named = tuple(input_of(given, Path.cwd(), "flag --input") for given in inputs)
        estate = EstateSettings(name=", ".join(inputs), inputs=named)
        options = setup.options(self._begins, self._engine, self._opa)

        def ready() -> Iterator[Ready]:
            from policyeng.audit.diff.forecast import Ready

            for part in parts_of(estate, setup.bundle.wanted, walk_of(setup.settings)):
                state = None
                if part.snapshot is not None:
                    state = State(setup.bundle, part.snapshot, options)
                yield Ready(part.name, state, part.remarks)
            yield from (Ready(problem.place, None, (problem,)) for problem in setup.problems)

        return self._outlook(ready(), estate.name, None)

    def at_store(self, store: str | None, config: Path | None, estate: str | None) -> list[Outlook]:
        """Forecast the newest run of each estate."""
        from policyeng.audit.diff.forecast import stored_parts

        with store_of(store, config) as kept:
            found = []
            for name in estates_of(kept, estate):
                (run,) = kept.runs(name, last=1)
                found.append(self._outlook(stored_parts(kept, run, self._begins, self._opa), name, run.number))
        return found

    def _outlook(self, parts: Iterator[Ready], estate: str, run: int | None) -> Outlook:
        from policyeng.audit.diff.forecast import forecast_parts

        with show_progress(f"forecasting {estate}"):
            return forecast_parts(parts, estate, self._begins, self._ends, self._settings, run)


Runs = Annotated[int, typer.Option(metavar="N", min=1, help="Number of runs per estate to evaluate, newest first.")]
MaxNew = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Exit 1 if a run would have more new failures than this.")
]
OwnerTag = Annotated[str, typer.Option(metavar="TAG", help="Tag that contains the owner of a resource.")]


@dataclass(kw_only=True, repr=False, eq=False)
class ImpactOptions(SetupOptions, OpaServerOptions):
    """The options of `policyeng audit impact`."""

    estate: EstateName = None
    runs: Runs = 1
    max_new_failures: MaxNew = None
    owner_tag: OwnerTag = OWNER_TAG
    format_: TableFormat = "text"
    store: StoreUrl = None


@with_options(ImpactOptions)
def impact(args: ImpactOptions) -> int:
    """Evaluate stored runs with other policies or parameters: which findings would change, and their owners.

    The snapshots, clock and engine are those of each run, and so are the exemptions unless others are given.
    Exit codes: 0, 1 for more new failures than --max-new-failures, 2 if something could not be evaluated.

    Examples:
      policyeng audit impact production --policy policies-1.1/ --max-new-failures 10
      policyeng audit impact --profile strict --runs 5 --format csv
    """
    format_ = find_known(args.format_, FORMATS, "format")
    setup = args.setup(args.settings())

    from policyeng.audit.diff import impact as analysis

    theirs = setup.exemptions if args.exemptions or args.no_exemptions else None
    proposed = analysis.Proposed(setup.bundle, setup.parameters, theirs, args.owner_tag, args.opa())
    with store_of(args.store, args.config) as kept:
        chosen_runs = [run for name in estates_of(kept, args.estate) for run in kept.runs(name, last=args.runs)]
        impacts = []
        for run in chosen_runs:
            with show_progress(f"re-evaluating run {run.number}"):
                impacts.append(analysis.evaluate_impact(kept, run, proposed))
    for problem in setup.problems:
        print_line(f"policyeng: {problem.place}: {problem.message}", error=True)
    print_form(analysis.FORMS[format_], impacts, format_)
    if any(problem.level == "error" for problem in (*setup.problems, *(p for one in impacts for p in one.problems))):
        return 2
    return int(analysis.exceeds(impacts, args.max_new_failures))
