"""`policyeng snapshot`: make a snapshot of live Azure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import orjson
import typer

from policyeng.audit.collecting import azure
from policyeng.cli.azure_options import Asking, with_asking
from policyeng.cli.command import Command
from policyeng.cli.printing import is_terminal, say
from policyeng.cli.writing import require_directory, write

snapshot = typer.Typer(help="Make snapshots: collect one from live Azure.", no_args_is_help=True, add_completion=False)

Output = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the snapshot there instead of printing it.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing of the progress and of what is missing.")]


@snapshot.callback()
def _root() -> None:
    """Make snapshots: collect one from live Azure."""


@snapshot.command(cls=Command)
@with_asking
def collect(output: Output = None, quiet: Quiet = False, *, asking: Asking) -> int:
    """Read a subscription of Azure, or less of it, as a snapshot that `check` judges.

    Who asks is what azure-identity finds: variables of the environment, a managed identity, `az login`. Exit 0 also
    where something could not be read: the snapshot says so under `incomplete`, and policies that need it are unknown.

    Examples:
      policyeng snapshot collect --subscription 11111111-1111-1111-1111-111111111111 --output snapshot.json
      policyeng snapshot collect --subscription 11111111-1111-1111-1111-111111111111 | policyeng check -
    """
    wanted, cloud, concurrency, patience = asking
    azure.require_libraries()
    require_directory(output, "snapshot")
    with _progress(quiet=quiet) as progress:
        document = azure.collect(wanted, cloud, concurrency=concurrency, patience=patience, progress=progress)
    content = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if output is None:
        typer.echo(content, nl=False)
    else:
        write(output, content, "snapshot")
    if not quiet:
        say(f"policyeng: read {len(document['resources'])} resources of {wanted.scope}", error=True)
        for line in document.get("incomplete", []):
            say(f"policyeng: incomplete: {line}", error=True)
    return 0


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[int, int, int], None] | None]:
    """Show on a terminal's stderr how far the work is; silent elsewhere."""
    if quiet or not is_terminal(sys.stderr):
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("asking Azure …") as status:
        yield lambda done, known, read: status.update(
            f"asking Azure: {done} of {known} questions answered, {read} resources read"
        )
