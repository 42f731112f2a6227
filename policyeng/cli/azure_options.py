"""The options that say what to read of Azure, where, and with how much patience."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple

import typer
from pydantic import TypeAdapter, ValidationError

from policyeng.audit.collecting import azure
from policyeng.audit.collecting.azure.clouds import Cloud, cloud_of
from policyeng.cli.groups import with_group
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


class Asking(NamedTuple):
    """What is read, where, with how many questions at once, and for how many seconds each may be put off."""

    wanted: azure.Wanted
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
) -> Asking:
    if not subscription:
        raise UsageError("no subscription is named", remedy="add `--subscription ID`, or set AZURE_SUBSCRIPTION_ID")
    wanted = azure.Wanted(
        subscription=subscription,
        taken_at=datetime.now(UTC),
        resource_group=resource_group,
        workspace=workspace,
        jobs_since=_duration("--jobs-since", jobs_since),
        max_jobs=max_jobs,
    )
    return Asking(wanted, cloud_of(cloud, endpoint), concurrency, _duration("--patience", patience).total_seconds())


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
