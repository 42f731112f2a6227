"""`policyeng audit schedule`: run audits on schedule."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from policyeng.cli.audit.options import StoreUrl, require_expandable_urls
from policyeng.cli.audit.run import Full, Processes
from policyeng.cli.console import print_line
from policyeng.cli.context import require_text
from policyeng.cli.evaluation_options import CriteriaOptions, RegoEngineOptions
from policyeng.cli.logs import LogOptions
from policyeng.cli.option_groups import with_options
from policyeng.configuration import Settings
from policyeng.errors import StoreError, UsageError
from policyeng.processes import processors, require_posix
from policyeng.report.phrases import to_the_second

if TYPE_CHECKING:
    from policyeng.audit.scheduler import PlannedAudit

Once = Annotated[bool, typer.Option("--once", help="Run the audits that are due now, then exit.")]
Listed = Annotated[bool, typer.Option("--list", help="Print the next audit of each estate, then exit.")]
Drain = Annotated[
    float,
    typer.Option(
        "--drain-seconds",
        metavar="SECONDS",
        min=0,
        help="How long to wait for a running audit after SIGTERM or SIGINT.",
    ),
]


@dataclass(kw_only=True, repr=False, eq=False)
class ScheduleOptions(CriteriaOptions, RegoEngineOptions, LogOptions):
    """The options of `policyeng audit schedule`."""

    once: Once = False
    list_: Listed = False
    drain_seconds: Drain = 300
    store: StoreUrl = None
    jobs: Processes = 1
    full: Full = False

    SETTINGS = tuple[str, ...]((*CriteriaOptions.SETTINGS, "store"))


@with_options(ScheduleOptions)
def schedule(args: ScheduleOptions) -> int:
    """Run audits of the configured estates on schedule, until SIGTERM or SIGINT; SIGHUP reloads the configuration.

    Each audit is logged on standard error. Findings do not affect the exit code: it is 0, or 2 with --once
    if a due audit could not be completed.

    Examples:
      policyeng audit schedule
      policyeng audit schedule --list
      policyeng audit schedule --once --jobs 2
    """
    require_posix("`policyeng audit schedule`", "start `policyeng audit run` with the task scheduler of the system")
    _require_extra()
    from policyeng.audit.scheduler import Auditing, Schedule, audit_due

    require_text(args.select, args.ignore)
    _refuse_both(args.once, args.list_)
    settings = require_expandable_urls(args.settings())
    if args.list_:
        return _print_times(settings)

    args.start_logging()
    engine, opa = args.rego_engine()
    jobs = args.jobs or processors()
    auditing = Auditing(args.setup, engine, opa, jobs, args.full, os.environ)
    if args.once:
        return 0 if audit_due(settings, auditing) else 2
    return Schedule(lambda: require_expandable_urls(args.settings()), auditing, drain=args.drain_seconds).run()


def _refuse_both(once: bool, list_: bool) -> None:
    if once and list_:
        raise UsageError("`--once` and `--list` cannot be combined", remedy="remove one of them")


def _require_extra() -> None:
    """Check that the optional dependency is installed.

    Raises:
        UsageError: with the command that installs it.
    """
    from importlib.util import find_spec

    if find_spec("cronsim") is None:
        message = "`policyeng audit schedule` requires `cronsim`, which is not installed"
        raise UsageError(message, remedy="run `pip install 'policyeng[audit]'`")


def _print_times(settings: Settings) -> int:
    from policyeng.audit.scheduler import planned
    from policyeng.audit.store import open_store

    try:
        with open_store(settings.store) as store:
            plans = planned(settings.estates, store)
    except StoreError as error:  # there is no store before the first audit
        print_line(f"policyeng: no runs yet: {error}", error=True)
        plans = planned(settings.estates, None)
    now = datetime.now(UTC)
    for name in [estate.name for estate in settings.estates]:
        print_line(
            f"{name}  {_next(plans[name], now)}"
            if name in plans
            else f"{name}  not scheduled; run `policyeng audit run`"
        )
    return 0


def _next(plan: PlannedAudit, now: datetime) -> str:
    last = f"last {to_the_second(plan.last)}" if plan.last else "never audited"
    if plan.due(now):
        return f"due now; {last}"
    following = plan.following(now)
    local = following.astimezone(plan.times.zone).isoformat(timespec="seconds")
    return f"next {to_the_second(following)} ({local} {plan.estate.timezone}); {last}"
