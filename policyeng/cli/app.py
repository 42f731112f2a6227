"""The application: every command, as typer sees it."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from policyeng.cli.console import say
from policyeng.cli.fast_path import print_version
from policyeng.cli.lazy_commands import Late, group_of
from policyeng.cli.strict_command import CheckCommand

COMMANDS = {
    "check": Late(
        "check_options:check",
        "Judge snapshots of workspaces and report what fails, where, why and how to mend it.",
        CheckCommand,
    ),
    "admit": Late(
        "admit:admit",
        "Decide whether a change of what a snapshot holds may be made: exit 0 allowed, 1 denied, 2 could not decide.",
    ),
    "diff": Late(
        "diff:diff",
        "Compare two snapshots: exit 0 nothing new fails, 1 something new fails, 2 could not decide.",
    ),
    "test": Late(
        "test:test",
        "Run the cases of every policy, the tests of the fields that are absent, and the Rego unit tests.",
    ),
    "verify": Late(
        "verify:verify",
        "Prove that a bundle is consistent: exit 0 when it is, 1 when it is not, 2 when it could not be decided.",
    ),
    "serve": Late(
        "serve:serve",
        "Answer over HTTP what `check` says of a document, and whether a change may be made (docs/server.md).",
    ),
    "policies": Late("policies:policies", "List policies, show one, or begin a new one."),
    "bundle": Late("bundle:bundle", "Build an archive of policies, sign it, or verify one."),
    "audit": Late("audit.app:audit", "Audit estates: collect, judge, keep, compare and tell."),
    "snapshot": Late("snapshot:snapshot", "Make snapshots: collect one from live Azure."),
}

#: What typer returns for a KeyboardInterrupt, and no command of ours.
_INTERRUPTED = 130

app = typer.Typer(
    name="policyeng",
    cls=group_of(COMMANDS),
    help="Judge Azure Machine Learning workspaces with policies written in Rego and Python.",
    epilog="Exit codes: 0 compliant · 1 failures at or above --fail-on · 2 could not decide · 3 usage, configuration.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_version()
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
