"""`policyeng audit`: its commands, each in its own module."""

from __future__ import annotations

import typer

from policyeng.cli.lazy_commands import Late, group_of

COMMANDS = {
    "run": Late(
        "audit.run:run",
        "Judge every part of estates, and keep what came of it in the store; exits as `check` of all the parts would.",
    ),
    "runs": Late("audit.runs:runs", "List the runs that the store has, the newest last."),
    "report": Late(
        "audit.report:report",
        "Report the newest run of an estate: its findings, since when they stand, and how compliance went.",
    ),
    "history": Late(
        "audit.history:history",
        "Tell the course of estates: per run the counts, both ways of compliance, and what was new, fixed or reopened.",
    ),
    "ahead": Late(
        "audit.ahead:ahead",
        "Say what will fail if nothing changes: exit 0 nothing new, 1 something will, 2 could not decide.",
    ),
    "impact": Late(
        "audit.impact:impact",
        "Try policies and parameters on runs that are stored: what would newly fail, pass or be undecided, and whose.",
    ),
    "schedule": Late(
        "audit.schedule:schedule",
        "Audit each configured estate at its times, until SIGTERM or SIGINT; SIGHUP reads the configuration again.",
    ),
    "notify": Late(
        "audit.notify:notify",
        "Try the targets of notifications, or see and send what waits for them; "
        "exits 2 where something does not arrive.",
    ),
    "verify-history": Late(
        "audit.verify_history:verify_history",
        "Say of every row of the store whether it is the one that was written; exit 2 if not.",
    ),
    "replay": Late(
        "audit.replay:replay",
        "Judge a run again, with its own snapshots, policies, parameters, exemptions, clock and engine.",
    ),
    "prune": Late(
        "audit.prune:prune",
        "Take snapshots, evaluations and policies of old runs away; their headers, hashes and spans stay.",
    ),
}
audit = typer.Typer(
    help="Audit estates: collect, judge, keep, compare and tell.",
    cls=group_of(COMMANDS),
    no_args_is_help=True,
    add_completion=False,
)


@audit.callback()
def _root() -> None:
    """Audit estates: collect, judge, keep, compare and tell."""
