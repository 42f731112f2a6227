"""`policyeng audit schedule`: run audits on schedule."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from policyeng.cli import options
from policyeng.cli.audit.options import StoreUrl, notifying_settings_of
from policyeng.cli.audit.run import Full, Processes
from policyeng.cli.console import print_line
from policyeng.cli.context import require_text
from policyeng.cli.opa_options import with_opa
from policyeng.cli.signature_options import with_trust
from policyeng.configuration import Settings
from policyeng.context import load_resources
from policyeng.engines import OpaOptions
from policyeng.errors import StoreError, UsageError
from policyeng.processes import processors
from policyeng.report.phrases import to_the_second

if TYPE_CHECKING:
    from policyeng.audit.scheduling.planner import PlannedAudit

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


@with_opa
@with_trust
def schedule(
    once: Once = False,
    list_: Listed = False,
    drain_seconds: Drain = 300,
    store: StoreUrl = None,
    policy: options.Policies = None,
    data: options.GivenData = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    exemptions: options.Exemptions = None,
    no_exemptions: options.NoExemptions = False,
    config: options.Config = None,
    profile: options.Profile = None,
    fail_on: options.FailOn = None,
    strict_unknown: options.StrictUnknown = False,
    engine: options.Engine = "embedded",
    jobs: Processes = 1,
    full: Full = False,
    *,
    trust: Mapping[str, object],
    opa: OpaOptions,
) -> int:
    """Run audits of the configured estates on schedule, until SIGTERM or SIGINT; SIGHUP reloads the configuration.

    Each audit is logged as one line on standard error. Findings do not affect the exit code: it is 0, or 2 with --once
    if a due audit could not be completed.

    Examples:
      policyeng audit schedule
      policyeng audit schedule --list
      policyeng audit schedule --once --jobs 2
    """
    _require_extra()
    from policyeng.audit.scheduling.job import Auditing
    from policyeng.audit.scheduling.scheduler import Schedule, audit_due

    require_text(select, ignore)
    _refuse_both(once, list_)
    flags: dict[str, object] = {"select": select, "ignore": ignore, "exemptions": exemptions, "fail_on": fail_on}
    flags |= {"profile": profile, "strict_unknown": strict_unknown, "store": store, **trust}
    settings = notifying_settings_of(flags, config)
    if list_:
        return _print_times(settings)

    hold = partial(load_resources, policy or (), data or (), no_exemptions=no_exemptions)
    auditing = Auditing(hold, _print_line, engine, opa, jobs or processors(), full, os.environ)
    if once:
        return 0 if audit_due(settings, auditing) else 2
    return Schedule(lambda: notifying_settings_of(flags, config), auditing, drain=drain_seconds).run()


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


def _print_line(text: str) -> None:
    """Print a line with the time on standard error; several threads call this."""
    print_line(f"{to_the_second(datetime.now(UTC))} {text}", error=True)


def _print_times(settings: Settings) -> int:
    from policyeng.audit.scheduling.planner import planned
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
