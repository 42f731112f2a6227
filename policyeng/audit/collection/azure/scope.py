"""The scope of a collection: a subscription or a part of it, and the limits on jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from policyeng.audit.collection.azure.resource_types import WORKSPACES
from policyeng.errors import UsageError

_SUBSCRIPTION = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
#: Names of resource groups and workspaces: no slash and nothing that an address would be cut off at.
_NAME = re.compile(r"[\w.()-]{1,90}")

JOBS_SINCE = timedelta(days=30)
MAX_JOBS = 1000


@dataclass(frozen=True, slots=True)
class CollectionScope:
    """The scope of a collection.

    Attributes:
        subscription: its id.
        resource_group, workspace: names that narrow the scope; empty for all. A workspace needs its group.
        taken_at: the moment of the snapshot.
        jobs_since: the largest age of jobs.
        max_jobs: the largest number of jobs of a workspace; the newest are read.
    """

    subscription: str
    taken_at: datetime
    resource_group: str = ""
    workspace: str = ""
    jobs_since: timedelta = JOBS_SINCE
    max_jobs: int = MAX_JOBS

    def __post_init__(self) -> None:
        """Check the id and the names, which become parts of addresses.

        Raises:
            UsageError: one of them is invalid.
        """
        if not _SUBSCRIPTION.fullmatch(self.subscription):
            remedy = "`az account list --output table` prints the ids of subscriptions"
            raise UsageError(f"`{self.subscription}` is no id of a subscription", remedy=remedy)
        for what, name in (("resource group", self.resource_group), ("workspace", self.workspace)):
            if name and not _NAME.fullmatch(name):
                raise UsageError(f"`{name}` is no name of a {what}", remedy="give the name alone, not the id")
        if self.workspace and not self.resource_group:
            remedy = "name it with --resource-group"
            raise UsageError(f"the workspace `{self.workspace}` lacks its resource group", remedy=remedy)

    @property
    def root(self) -> str:
        """The id of the subscription."""
        return f"/subscriptions/{self.subscription}"

    @property
    def group(self) -> str:
        """The id of the resource group, else of the subscription."""
        return f"{self.root}/resourceGroups/{self.resource_group}" if self.resource_group else self.root

    @property
    def scope(self) -> str:
        """The id of the scope."""
        return f"{self.group}/providers/{WORKSPACES}/{self.workspace}" if self.workspace else self.group
