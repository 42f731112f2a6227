"""The newest jobs of a workspace, up to a number and an age, because there can be hundreds of thousands."""

from __future__ import annotations

from collections.abc import Iterable

from policyeng.audit.collection.azure.client import Client, Loss, pages
from policyeng.audit.collection.azure.resource_types import JOBS, version_of
from policyeng.audit.collection.azure.scope import CollectionScope
from policyeng.audit.collection.azure.snapshot_builder import SnapshotBuilder
from policyeng.audit.collection.azure.workers import Task
from policyeng.facts.times import moment
from policyeng.facts.words import get_inside


def read(client: Client, gathered: SnapshotBuilder, wanted: CollectionScope, workspace: str) -> Iterable[Task]:
    """Read pages of jobs, which Azure lists from the newest, up to a page where all are too old."""
    oldest = wanted.taken_at - wanted.jobs_since
    too_old, taken = f"those created before {oldest:%Y-%m-%dT%H:%M:%SZ} were left out", 0
    gathered.ask(JOBS, workspace)
    for page in pages(client, f"{workspace}/jobs", {"api-version": version_of(JOBS)}):
        if isinstance(page, Loss):
            if not page.is_absent:
                gathered.lack(JOBS, workspace, page)
            break
        young = [entry for entry in page.entries if not _is_before(entry, oldest.isoformat())]
        if len(young) < len(page.entries):
            gathered.leave(JOBS, workspace, too_old)
        for entry in young[: wanted.max_jobs - taken]:
            gathered.take(entry, JOBS, workspace)
        taken += len(young)
        if taken > wanted.max_jobs:
            gathered.lack(JOBS, workspace, Loss(f"there are more than the {wanted.max_jobs} that were read"))
        if taken > wanted.max_jobs or (page.entries and not young):
            break
    return ()


def _is_before(entry: object, oldest: str) -> bool:
    """Check whether a job is known to be older than a moment."""
    created, bound = moment(get_inside(entry, "systemData", "createdAt")), moment(oldest)
    return created is not None and bound is not None and created < bound
