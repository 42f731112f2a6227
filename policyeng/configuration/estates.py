"""What is audited: an estate under a name, where it is read, and when."""

from __future__ import annotations

from datetime import timedelta

from policyeng.frozen import frozen
from policyeng.models import Model


@frozen(kw_only=True)
class EstateSettings(Model):
    """One `[[estates]]` table.

    Attributes:
        name: letters, digits, `-`, `_` and `.`; unique.
        inputs: directories, files and http(s) URLs; those that a configuration file names are relative to it.
        together: the files of each folder directly below an input are one snapshot, and those directly in it another;
            otherwise each file is one.
        subscription, resource_group, workspace: what is read from live Azure instead of inputs.
        cloud: which Azure, by the name that the Azure CLI has for it.
        deadline: how long one document at a URL may take to be fetched.
        cron: when a schedule runs it, as five fields.
        every: how often a schedule runs it; neither this nor `cron`: only when it is asked for.
        timezone: in which `cron` is read.
        jitter: by how much at most a schedule runs it later than it says.
        grace: how late a time that was missed is still made up for.
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
