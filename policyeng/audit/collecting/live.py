"""Live Azure as a part of an estate: what was asked for is one snapshot, because policies look beyond a workspace."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import orjson

from policyeng.audit.collecting import azure
from policyeng.audit.collecting.azure.clouds import cloud_of
from policyeng.configuration.estates import EstateSettings

_SCHEME = "azure://"


def live_address(estate: EstateSettings) -> str:
    """Where the part of an estate in live Azure is read: `azure://CLOUD/subscriptions/...`, the cloud and an ARM id.

    Raises:
        UsageError: what the configuration says is no subscription, name or cloud, or the libraries are not installed.
    """
    azure.require_libraries()
    wanted = azure.Wanted(
        subscription=estate.subscription,
        taken_at=datetime.now(UTC),
        resource_group=estate.resource_group,
        workspace=estate.workspace,
    )
    return f"{_SCHEME}{cloud_of(estate.cloud).name}{wanted.scope}"


def is_live(address: str) -> bool:
    """Whether a part is read from live Azure."""
    return address.startswith(_SCHEME)


def part_name(address: str) -> str:
    """The ARM id that a part in live Azure is named by."""
    return "/" + address.removeprefix(_SCHEME).partition("/")[2]


def collected(address: str) -> bytes:
    """The native snapshot of what stands at an address of `live_address`.

    Raises:
        InputError: it is not there, nothing of it can be read, or there is no token to ask with.
        UsageError: the address of the resource manager in the environment is none.
    """
    cloud, *scope = address.removeprefix(_SCHEME).split("/")
    named = dict(zip(scope[::2], scope[1::2], strict=True))
    wanted = azure.Wanted(
        subscription=named["subscriptions"],
        taken_at=datetime.now(UTC),
        resource_group=named.get("resourceGroups", ""),
        workspace=named.get("workspaces", ""),
    )
    where = cloud_of(cloud, os.environ.get(azure.ENDPOINT_VARIABLE, ""))
    return orjson.dumps(azure.collect(wanted, where))
