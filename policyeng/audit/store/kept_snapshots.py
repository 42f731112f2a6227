"""Snapshots as contents: a frame that names its resources by their digests, and each resource once for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import orjson

from policyeng.audit.store.digests import canonical, digest_of
from policyeng.errors import InputError, StoreError
from policyeng.models import Snapshot

_REMEDY = "write numbers within 64 bits, or text, and text without halves of surrogate pairs"


class KeptSnapshot(NamedTuple):
    """A snapshot as it is kept: `contents` are the frame and the resources, by digest."""

    digest: str
    contents: Mapping[str, bytes]


def kept_snapshot(snapshot: Snapshot) -> KeptSnapshot:
    """The contents of a snapshot; where its fields stand in files is no part of it.

    Raises:
        InputError: it holds what JSON cannot.
    """
    try:
        resources = [canonical(resource) for resource in snapshot.resources]
        digests = [digest_of(resource) for resource in resources]
        frame = snapshot.model_dump(mode="json", by_alias=True, exclude={"resources"}, exclude_defaults=True)
        content = canonical({"frame": frame, "resources": digests})
    except (TypeError, ValueError) as error:
        raise InputError(f"holds what JSON cannot: {str(error).lower()}", remedy=_REMEDY) from None
    digest = digest_of(content)
    return KeptSnapshot(digest, {digest: content, **dict(zip(digests, resources, strict=True))})


def resources_of(frame: bytes) -> list[str]:
    """The digests of the resources that a frame names, in their order."""
    digests: list[str] = orjson.loads(frame)["resources"]
    return digests


def snapshot_of(frame: bytes, contents: Mapping[str, bytes]) -> Snapshot:
    """The snapshot of a frame, its resources as they were but for the order of keys.

    Raises:
        StoreError: a resource is not there.
    """
    document = orjson.loads(frame)
    try:
        resources = tuple(orjson.loads(contents[digest]) for digest in document["resources"])
    except KeyError as error:
        raise StoreError(
            f"the content {str(error)[:14]}`".replace("'", "`") + " is gone", place=("contents",)
        ) from None
    snapshot = Snapshot.model_validate(document["frame"])
    return snapshot.model_copy(update={"resources": resources})
