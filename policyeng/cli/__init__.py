"""The command line: parse, call, print, exit."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from policyeng import __version__
from policyeng.cli.bundle import bundle
from policyeng.cli.check import check
from policyeng.cli.opa import with_opa
from policyeng.cli.policies import policies
from policyeng.cli.test import test
from policyeng.cli.verify import verify
from policyeng.errors import PolicyengError

app = typer.Typer(
    name="policyeng",
    help="Judge Azure Machine Learning workspaces with policies written in Rego and Python.",
    epilog="Exit codes: 0 compliant · 1 failures at or above --fail-on · 2 could not decide · 3 usage, configuration.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(with_opa(check))
app.command()(test)
app.command()(with_opa(verify))
app.add_typer(policies, name="policies")
app.add_typer(bundle, name="bundle")


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


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; nothing is raised and no traceback is printed."""
    try:
        code = app(args=arguments, prog_name="policyeng", standalone_mode=False)
    except PolicyengError as error:
        typer.echo(f"policyeng: {error}", err=True)
        return error.exit_code
    except TyperException as error:
        if message := error.format_message():
            typer.echo(f"policyeng: {message}", err=True)
        return 3
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("policyeng: interrupted", err=True)
        return 130
    except BrokenPipeError:  # the reader of our output, such as `head`, went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at exit
        return 2
    except OSError as error:  # a full disk, a closed terminal: what a report meets when it is printed
        typer.echo(f"policyeng: {(error.strerror or str(error)).lower()}", err=True)
        return 2
    except Exception as error:
        if os.environ.get("POLICYENG_TRACEBACK"):
            raise
        typer.echo(f"policyeng: internal error: {type(error).__name__}: {error}", err=True)
        typer.echo("policyeng: please report it with the output of a run under POLICYENG_TRACEBACK=1", err=True)
        return 2
    return code if isinstance(code, int) else 0


def main() -> None:
    """The console script."""
    sys.exit(run())
