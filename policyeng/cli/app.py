"""The application: every command with its options, as typer sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_type_hints

import typer
from typer.exceptions import TyperException

from policyeng import __version__
from policyeng.cli import check as checking
from policyeng.cli import options
from policyeng.cli.admit import admit
from policyeng.cli.auditing.app import audit
from policyeng.cli.bundle import bundle
from policyeng.cli.check import check
from policyeng.cli.command import CheckCommand, Command
from policyeng.cli.diff import diff, with_earlier
from policyeng.cli.new_policy import new
from policyeng.cli.opa import with_opa
from policyeng.cli.policies import policies
from policyeng.cli.printing import say
from policyeng.cli.serve import serve
from policyeng.cli.serving import with_serving
from policyeng.cli.snapshot import snapshot
from policyeng.cli.test import test
from policyeng.cli.trust import with_trust
from policyeng.cli.verify import verify
from policyeng.cli.verifying.classes import with_classes
from policyeng.cli.verifying.options import with_questions

#: What typer returns for a KeyboardInterrupt, and no command of ours.
_INTERRUPTED = 130

app = typer.Typer(
    name="policyeng",
    help="Judge Azure Machine Learning workspaces with policies written in Rego and Python.",
    epilog="Exit codes: 0 compliant · 1 failures at or above --fail-on · 2 could not decide · 3 usage, configuration.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
# `check` only names its options, so that a plain run of it need not load typer; here they are looked up.
check.__annotations__ = get_type_hints(check, {**vars(checking), "options": options}, include_extras=True)
app.command(cls=CheckCommand)(with_opa(with_trust(check)))
app.command(cls=Command)(with_opa(with_trust(admit)))
app.command(cls=Command)(with_opa(with_trust(with_earlier(diff))))
app.command(cls=Command)(with_trust(test))
app.command(cls=Command)(with_opa(with_trust(with_classes(with_questions(verify)))))
app.command(cls=Command)(with_trust(with_serving(serve)))
policies.command(cls=Command)(new)
app.add_typer(policies, name="policies")
app.add_typer(bundle, name="bundle")
app.add_typer(audit, name="audit")
app.add_typer(snapshot, name="snapshot")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"policyeng {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
    ),
) -> None:
    """Judge Azure Machine Learning workspaces with policies written in Rego and Python."""


def run_typer(arguments: Sequence[str] | None) -> object:
    """Run the application: what the command returns, or the exit code of what typer itself refuses.

    Raises:
        KeyboardInterrupt: the user ended it; typer would make it an exit code without a word.
    """
    try:
        code = app(args=arguments, prog_name="policyeng", standalone_mode=False)
    except TyperException as error:
        if message := error.format_message():
            say(f"policyeng: {message}", error=True)
        return 3
    except typer.Abort:
        raise KeyboardInterrupt from None
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    return code
