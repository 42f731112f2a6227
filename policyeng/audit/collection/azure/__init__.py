"""Collection of snapshots of live Azure.

Everything is read with GET through the pipeline of azure-core. This works for all types and does not change the
bodies, including fields of preview versions. Keys and secrets are not requested, and values that look like one are
masked.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from policyeng.audit.collection.azure.clouds import Cloud
from policyeng.audit.collection.azure.snapshot_builder import MAX_JOBS, CollectionScope
from policyeng.errors import UsageError
from policyeng.models import JsonObject
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential

    from policyeng.audit.collection.azure.snapshot_builder import SnapshotBuilder

__all__ = ["CONCURRENCY", "ENDPOINT_VARIABLE", "MAX_JOBS", "CollectionScope", "collect", "require_libraries"]

#: Names the address of a resource manager that is none of the clouds'.
ENDPOINT_VARIABLE = "AZURE_RESOURCE_MANAGER_ENDPOINT"
CONCURRENCY = 8
PATIENCE = 120.0
#: Maximum seconds between two reads of a response.
READ_TIMEOUT = 60.0
#: Maximum bytes of one answer, unpacked, and of all answers of one collection.
MAX_BYTES = DEFAULT_MAX_BYTES
MAX_BYTES_IN_ALL = 4 * DEFAULT_MAX_BYTES
#: Maximum seconds of one collection.
DEADLINE = 3600.0


def collect(
    wanted: CollectionScope,
    cloud: Cloud,
    *,
    credential: TokenCredential | None = None,
    concurrency: int = CONCURRENCY,
    patience: float = PATIENCE,
    deadline: float = DEADLINE,
    clock: Callable[[], float] = time.monotonic,
    progress: Callable[[int, int, int], None] | None = None,
) -> JsonObject:
    """Read a scope as a native snapshot. The same responses give the same document.

    Args:
        wanted: the scope.
        cloud: the cloud.
        credential: the credential; by default the one that azure-identity finds.
        concurrency: the number of concurrent requests.
        patience: the seconds for which a request is retried, including the waits that Azure demands.
        deadline: the seconds for everything; what was not read by then is stated as incomplete.
        clock: tells the time for the deadline, in seconds.
        progress: called with the numbers of finished requests, known requests and read resources.

    Raises:
        UsageError: the libraries for Azure are not installed.
        InputError: the scope does not exist, nothing in it can be read, or there is no token.
    """
    require_libraries()
    from policyeng.audit.collection.azure.client import Client, CollectionLimits
    from policyeng.audit.collection.azure.collector import CollectionRun
    from policyeng.audit.collection.azure.snapshot_builder import WorkerPool

    stopped = threading.Event()
    used_credential = credential or _credential(cloud)
    limits = CollectionLimits(deadline, clock, max_bytes=MAX_BYTES, max_bytes_in_all=MAX_BYTES_IN_ALL)
    with Client(
        cloud, used_credential, stopped=stopped, limits=limits, patience=patience, read_timeout=READ_TIMEOUT
    ) as client:
        pool = WorkerPool(concurrency, stopped, lambda: limits.is_over)
        return _document(wanted, CollectionRun(client, wanted).make(pool, progress))


def require_libraries() -> None:
    """Check whether the libraries for Azure are installed.

    Raises:
        UsageError: they are not installed.
    """
    if not all(find_spec(name) for name in ("azure", "requests")) or not find_spec("azure.identity"):
        raise UsageError("the libraries that read Azure are not installed", remedy="install `policyeng[azure]`")


def _credential(cloud: Cloud) -> TokenCredential:
    from azure.identity import DefaultAzureCredential  # takes a while to load

    logging.getLogger("azure").setLevel(logging.CRITICAL)  # the error of a failed sign-in has all of it
    return DefaultAzureCredential(authority=os.environ.get("AZURE_AUTHORITY_HOST") or cloud.authority)


def _document(wanted: CollectionScope, gathered: SnapshotBuilder) -> JsonObject:
    document: JsonObject = {
        "snapshotVersion": 1,
        "scope": wanted.scope,
        "takenAt": f"{wanted.taken_at:%Y-%m-%dT%H:%M:%SZ}",
        "resources": [resource for _, resource in sorted(gathered.resources.items())],
        "quotas": sorted(gathered.quotas, key=lambda one: (one["region"], one["scope"].lower(), one["family"].lower())),
        "metrics": sorted(gathered.metrics, key=lambda one: (one["resourceId"].lower(), one["name"], one["from"])),
        "covers": gathered.covers,
        "incomplete": gathered.missing,
    }
    return {key: value for key, value in document.items() if value or key in ("resources", "covers")}
