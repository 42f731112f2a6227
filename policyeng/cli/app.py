"""The typer application with all commands."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from policyeng.cli.commands import CONTEXT, CheckCommand, Late, group_of
from policyeng.cli.console import print_line
from policyeng.cli.fast_path import print_version

COMMANDS = {
    "check": Late(
        "check_options:check",
        "Check workspace snapshots and report violations with their location, reason and fix.",
        CheckCommand,
    ),
    "report": Late(
        "report:report", "Convert a JSON report of `check` to other formats, without evaluating anything again."
    ),
    "admit": Late(
        "admit:admit",
        "Decide whether a change to a snapshot is allowed. Exit codes: 0 allowed, 1 denied, 2 undecided.",
    ),
    "explain": Late(
        "explain:explain",
        "Explain findings: which conditions of a policy were true, false or not known, with the values that it read.",
    ),
    "eval": Late(
        "explain:evaluate",
        "Evaluate a Rego query with the policies, their libraries and facts, and print its value.",
    ),
    "diff": Late(
        "diff:diff",
        "Compare the findings of two snapshots. Exit codes: 0 no new failures, 1 new failures, 2 undecided.",
    ),
    "test": Late(
        "test:test",
        "Run the test cases of every policy, the generated tests for absent fields and the Rego unit tests.",
    ),
    "verify": Late(
        "verify:verify",
        "Verify that a policy bundle is consistent. Exit codes: 0 consistent, 1 not consistent, 2 undecided.",
    ),
    "serve": Late(
        "serve:serve",
        "Run an HTTP server that checks documents and decides whether changes are allowed (docs/server.md).",
    ),
    "policies": Late("policies:policies", "List policies, show a policy, or create one."),
    "frameworks": Late(
        "frameworks:frameworks", "List frameworks, or show the controls of one and the policies that test them."
    ),
    "azure-policy": Late("azure_policy:azure_policy", "Show what of Azure Policy definitions is evaluated."),
    "bundle": Late("bundle:bundle", "Build, sign or verify a policy bundle."),
    "audit": Late("audit.app:audit", "Run, store, compare and report on audits."),
    "init": Late("init:init", "Write a commented policyeng.toml to the current directory."),
    "schema": Late("schema:schema", "Print the JSON Schema of a document, for editors, validators and OPA."),
    "snapshot": Late("snapshot:snapshot", "Collect a snapshot from live Azure resources."),
}

#: What typer returns for a KeyboardInterrupt; no command returns it.
_INTERRUPTED = 130

app = typer.Typer(
    name="policyeng",
    cls=group_of(COMMANDS),
    help="Check Azure Machine Learning workspaces against policies written in Rego and Python.",
    epilog="Exit codes: 0 compliant · 1 failures at or above --fail-on · 2 undecided · 3 usage or configuration error.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_version()
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", "-V", help="Print the version and exit.", callback=_print_version, is_eager=True
    ),
) -> None:
    """Check Azure Machine Learning workspaces against policies written in Rego and Python."""


def run_typer(arguments: Sequence[str] | None) -> object:
    """Run the application and return the command's result, or exit code 3 for a usage error that typer finds.

    Raises:
        KeyboardInterrupt: the user interrupted it; typer would silently turn it into an exit code.
    """
    try:
        code = app(args=arguments, prog_name="policyeng", standalone_mode=False)
    except TyperException as error:
        if message := error.format_message():
            path = context.command_path if (context := getattr(error, "ctx", None)) else "policyeng"
            line = f"{message[0].lower()}{message[1:]}".rstrip(".").replace("'", "`")
            print_line(f"policyeng: {line}; try `{path} --help`", error=True)
        return 3
    except typer.Abort:
        raise KeyboardInterrupt from None
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    return code
