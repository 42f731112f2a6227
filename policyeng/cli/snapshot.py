"""`policyeng snapshot`: make a snapshot of live Azure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, NamedTuple

import orjson
import typer
from pydantic import TypeAdapter, ValidationError

from policyeng.audit.collection import azure
from policyeng.audit.collection.azure.clouds import Cloud, cloud_of
from policyeng.cli.console import is_terminal, say
from policyeng.cli.files import require_directory, write
from policyeng.cli.option_groups import with_group
from policyeng.cli.strict_command import Command
from policyeng.errors import UsageError

Subscription = Annotated[
    str, typer.Option(metavar="ID", envvar="AZURE_SUBSCRIPTION_ID", help="The subscription to read.")
]
Group = Annotated[str, typer.Option(metavar="NAME", help="Only this resource group of it.")]
Workspace = Annotated[str, typer.Option(metavar="NAME", help="Only this workspace of the resource group.")]
CloudName = Annotated[str, typer.Option(metavar="NAME", help="AzureCloud, AzureUSGovernment or AzureChinaCloud.")]
Endpoint = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar=azure.ENDPOINT_VARIABLE,
        help="Where the resource manager answers, where that is not the cloud's.",
    ),
]
JobsSince = Annotated[str, typer.Option(metavar="DURATION", help="Leave out jobs that are older, in ISO 8601.")]
MaxJobs = Annotated[int, typer.Option(min=0, metavar="N", help="Read so many jobs of a workspace at most, the newest.")]
Concurrency = Annotated[int, typer.Option(min=1, max=32, metavar="N", help="Ask so many questions at once.")]
Patience = Annotated[
    str, typer.Option(metavar="DURATION", help="Wait so long in all for an answer that Azure puts off.")
]


class CollectionOptions(NamedTuple):
    """What is read, where, with how many questions at once, and for how many seconds each may be put off."""

    wanted: azure.CollectionScope
    cloud: Cloud
    concurrency: int
    patience: float


def with_asking(command: Callable[..., int]) -> Callable[..., int]:
    """A command with the options, which it takes as its argument `asking`."""
    return with_group(command, "asking", _asking)


def _asking(
    subscription: Subscription = "",
    resource_group: Group = "",
    workspace: Workspace = "",
    cloud: CloudName = "AzureCloud",
    endpoint: Endpoint = "",
    jobs_since: JobsSince = "P30D",
    max_jobs: MaxJobs = azure.MAX_JOBS,
    concurrency: Concurrency = azure.CONCURRENCY,
    patience: Patience = "PT2M",
) -> CollectionOptions:
    if not subscription:
        raise UsageError("no subscription is named", remedy="add `--subscription ID`, or set AZURE_SUBSCRIPTION_ID")
    wanted = azure.CollectionScope(
        subscription=subscription,
        taken_at=datetime.now(UTC),
        resource_group=resource_group,
        workspace=workspace,
        jobs_since=_duration("--jobs-since", jobs_since),
        max_jobs=max_jobs,
    )
    return CollectionOptions(
        wanted, cloud_of(cloud, endpoint), concurrency, _duration("--patience", patience).total_seconds()
    )


def _duration(option: str, text: str) -> timedelta:
    """A duration as ISO 8601 writes it.

    Raises:
        UsageError: it is none, or too long.
    """
    try:
        duration = TypeAdapter(timedelta).validate_strings(text) if text[:1] == "P" else None
    except ValidationError:
        duration = None
    if duration is None or not timedelta(0) <= duration <= timedelta(days=36500):
        raise UsageError(f"`{text}` of {option} is no duration", remedy="write, for example, P30D or PT90S")
    return duration


snapshot = typer.Typer(help="Make snapshots: collect one from live Azure.", no_args_is_help=True, add_completion=False)

Output = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the snapshot there instead of printing it.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing of the progress and of what is missing.")]


@snapshot.callback()
def _root() -> None:
    """Make snapshots: collect one from live Azure."""


@snapshot.command(cls=Command)
@with_asking
def collect(output: Output = None, quiet: Quiet = False, *, asking: CollectionOptions) -> int:
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
