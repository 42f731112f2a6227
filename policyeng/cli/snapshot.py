"""`policyeng snapshot`: collect a snapshot from live Azure."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, NamedTuple

import orjson
import typer
from pydantic import TypeAdapter, ValidationError

from policyeng.audit.collection import azure
from policyeng.audit.collection.azure.clouds import Cloud, find_cloud
from policyeng.cli.commands import Command, Group
from policyeng.cli.console import print_line, show_progress
from policyeng.cli.files import require_directory, write
from policyeng.cli.option_groups import with_group
from policyeng.errors import UsageError

Subscription = Annotated[str, typer.Option(metavar="ID", envvar="AZURE_SUBSCRIPTION_ID", help="Subscription to read.")]
ResourceGroup = Annotated[str, typer.Option(metavar="NAME", help="Read only this resource group.")]
Workspace = Annotated[str, typer.Option(metavar="NAME", help="Read only this workspace of the resource group.")]
CloudName = Annotated[
    str, typer.Option(metavar="NAME", help="Cloud: AzureCloud, AzureUSGovernment or AzureChinaCloud.")
]
Endpoint = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar=azure.ENDPOINT_VARIABLE,
        help="Resource Manager endpoint. Default: the endpoint of the cloud.",
    ),
]
JobsSince = Annotated[str, typer.Option(metavar="DURATION", help="Skip jobs older than this (ISO 8601 duration).")]
MaxJobs = Annotated[
    int, typer.Option(min=0, metavar="N", help="Maximum number of jobs to read per workspace, newest first.")
]
Concurrency = Annotated[int, typer.Option(min=1, max=32, metavar="N", help="Number of concurrent requests.")]
Patience = Annotated[
    str, typer.Option(metavar="DURATION", help="Total time to wait for a throttled request (ISO 8601 duration).")
]

Deadline = Annotated[
    str, typer.Option(metavar="DURATION", help="Total time of the collection (ISO 8601 duration). Default: one hour.")
]


class CollectionOptions(NamedTuple):
    """What to read and from which cloud, the number of concurrent requests, and the seconds for each and for all."""

    wanted: azure.CollectionScope
    cloud: Cloud
    concurrency: int
    patience: float
    deadline: float


def _show_requests(
    subscription: Subscription = "",
    resource_group: ResourceGroup = "",
    workspace: Workspace = "",
    cloud: CloudName = "AzureCloud",
    endpoint: Endpoint = "",
    jobs_since: JobsSince = "P30D",
    max_jobs: MaxJobs = azure.MAX_JOBS,
    concurrency: Concurrency = azure.CONCURRENCY,
    patience: Patience = "PT2M",
    deadline: Deadline = "PT1H",
) -> CollectionOptions:
    if not subscription:
        raise UsageError("no subscription is given", remedy="add `--subscription ID`, or set AZURE_SUBSCRIPTION_ID")
    wanted = azure.CollectionScope(
        subscription=subscription,
        taken_at=datetime.now(UTC),
        resource_group=resource_group,
        workspace=workspace,
        jobs_since=_duration("--jobs-since", jobs_since),
        max_jobs=max_jobs,
    )
    return CollectionOptions(
        wanted,
        find_cloud(cloud, endpoint),
        concurrency,
        _duration("--patience", patience).total_seconds(),
        _duration("--deadline", deadline).total_seconds(),
    )


def _duration(option: str, text: str) -> timedelta:
    """Parse an ISO 8601 duration.

    Raises:
        UsageError: the text is not a duration, or it is too long.
    """
    try:
        duration = TypeAdapter(timedelta).validate_strings(text) if text[:1] == "P" else None
    except ValidationError:
        duration = None
    if duration is None or not timedelta(0) <= duration <= timedelta(days=36500):
        raise UsageError(f"`{text}` is not a duration for {option}", remedy="use ISO 8601, such as P30D or PT90S")
    return duration


snapshot = typer.Typer(
    cls=Group, help="Collect a snapshot from live Azure resources.", no_args_is_help=True, add_completion=False
)

Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="File to write the snapshot to. Default: print it."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not print progress and warnings about missing data.")]


@snapshot.callback()
def _root() -> None:
    """Collect a snapshot from live Azure resources."""


@snapshot.command(cls=Command)
@with_group("options", _show_requests)
def collect(output: Output = None, quiet: Quiet = False, *, options: CollectionOptions) -> int:
    """Collect the resources of an Azure subscription into a snapshot for `check`.

    Credentials come from azure-identity: environment variables, a managed identity or `az login`. The exit code is 0
    even if some resources could not be read; the snapshot lists them under `incomplete`, and policies that need them
    return unknown.

    Examples:
      policyeng snapshot collect --subscription 11111111-1111-1111-1111-111111111111 --output snapshot.json
      policyeng snapshot collect --subscription 11111111-1111-1111-1111-111111111111 | policyeng check -
    """
    wanted = options.wanted
    azure.require_libraries()
    require_directory(output, "snapshot")
    with nullcontext(None) if quiet else show_progress("collecting from Azure", "requests") as show:
        progress = None if show is None else lambda done, known, _read: show(done, known)
        document = azure.collect(
            wanted,
            options.cloud,
            concurrency=options.concurrency,
            patience=options.patience,
            deadline=options.deadline,
            progress=progress,
        )
    content = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if output is None:
        typer.echo(content, nl=False)
    else:
        write(output, content, "snapshot")
    if not quiet:
        print_line(f"policyeng: read {len(document['resources'])} resources from {wanted.scope}", error=True)
        for line in document.get("incomplete", []):
            print_line(f"policyeng: incomplete: {line}", error=True)
    return 0
