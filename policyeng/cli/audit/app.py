"""The commands of `policyeng audit`, each in its own module."""

from __future__ import annotations

import typer

from policyeng.cli.commands import Late, group_of

COMMANDS = {
    "run": Late(
        "audit.run:run",
        "Evaluate estates and store the results. Exit codes as for `check`.",
    ),
    "runs": Late("audit.store:runs", "List the stored runs, newest last."),
    "report": Late(
        "audit.report:report",
        "Report the newest run of an estate: findings, when they were first seen, and the compliance trend.",
    ),
    "history": Late(
        "audit.history:history",
        "Show compliance over time: counts, compliance rates, and new, fixed and reopened findings per run.",
    ),
    "ahead": Late(
        "audit.ahead:ahead",
        "Forecast failures if nothing changes. Exit codes: 0 no new failures, 1 new failures, 2 undecided.",
    ),
    "impact": Late(
        "audit.ahead:impact",
        "Evaluate stored runs with other policies or parameters: which findings would change, and their owners.",
    ),
    "schedule": Late(
        "audit.schedule:schedule",
        "Run audits of the configured estates on schedule, until SIGTERM or SIGINT; SIGHUP reloads the configuration.",
    ),
    "notify": Late(
        "audit.notify:notify",
        "Test notification targets, or list and resend pending notifications. Exit code 2 if a delivery fails.",
    ),
    "verify-history": Late(
        "audit.store:verify_history",
        "Verify that no row of the audit store was altered; exit code 2 if one was.",
    ),
    "replay": Late(
        "audit.store:replay",
        "Re-evaluate a run with its own snapshots, policies, parameters, exemptions, clock and engine.",
    ),
    "evidence": Late(
        "audit.store:evidence",
        "Pack the reports, snapshots, policies and hashes of a run for an auditor, or verify such a pack.",
    ),
    "prune": Late(
        "audit.store:prune",
        "Delete snapshots, evaluations and policies of old runs; headers, hashes and finding history remain.",
    ),
}
audit = typer.Typer(
    help="Run, store, compare and report on audits.",
    cls=group_of(COMMANDS),
    no_args_is_help=True,
    add_completion=False,
)


@audit.callback()
def _root() -> None:
    """Run, store, compare and report on audits."""
