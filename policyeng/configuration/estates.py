"""The `[[estates]]` tables: names, sources and schedules of estates."""

from __future__ import annotations

from datetime import timedelta

from policyeng.frozen import frozen
from policyeng.models import Model


@frozen(kw_only=True)
class EstateSettings(Model):
    """One `[[estates]]` table.

    Attributes:
        name: letters, digits, `-`, `_` and `.`; unique.
        inputs: directories, files and http(s) URLs; relative to the configuration file.
        together: whether the files of each direct subdirectory of an input form one snapshot, and the files directly in
            the input another; otherwise each file is a snapshot.
        subscription, resource_group, workspace: what to read from live Azure instead of inputs.
        cloud: the Azure cloud, by its name in the Azure CLI.
        deadline: the timeout for fetching one document from a URL.
        cron: the schedule, as five fields.
        every: the interval of the schedule; without it and `cron`, the estate is not scheduled.
        timezone: the time zone of `cron`.
        jitter: the maximum random delay of a scheduled run.
        grace: how late a missed run is still started.
    """

    name: str
    inputs: tuple[str, ...] = ()
    together: bool = False
    subscription: str = ""
    resource_group: str = ""
    workspace: str = ""
    cloud: str = "AzureCloud"
    deadline: timedelta = timedelta(minutes=5)
    cron: str = ""
    every: timedelta | None = None
    timezone: str = "UTC"
    jitter: timedelta = timedelta(0)
    grace: timedelta = timedelta(hours=1)
