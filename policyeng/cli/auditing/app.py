"""`policyeng audit`: its commands, each in its own module."""

from __future__ import annotations

import typer

from policyeng.cli.auditing.ahead import ahead
from policyeng.cli.auditing.history import history
from policyeng.cli.auditing.impact import impact
from policyeng.cli.auditing.notify import notify
from policyeng.cli.auditing.prune import prune
from policyeng.cli.auditing.replay import replay
from policyeng.cli.auditing.report import report
from policyeng.cli.auditing.run import run
from policyeng.cli.auditing.runs import runs
from policyeng.cli.auditing.schedule import schedule
from policyeng.cli.auditing.verifying_history import verify_history
from policyeng.cli.command import Command
from policyeng.cli.opa import with_opa
from policyeng.cli.trust import with_trust

audit = typer.Typer(help="Audit estates: collect, judge, keep, compare and tell.", no_args_is_help=True)
audit.command(cls=Command)(with_opa(with_trust(run)))
audit.command(cls=Command)(runs)
audit.command(cls=Command)(report)
audit.command(cls=Command)(with_opa(history))
audit.command(cls=Command)(with_opa(with_trust(ahead)))
audit.command(cls=Command)(with_opa(with_trust(impact)))
audit.command(cls=Command)(with_opa(with_trust(schedule)))
audit.command(cls=Command)(notify)
audit.command(cls=Command)(verify_history)
audit.command(cls=Command)(with_opa(replay))
audit.command(cls=Command)(prune)
