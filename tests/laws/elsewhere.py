"""An estate once more in another subscription."""

from __future__ import annotations

import json
import re

from policyeng.models import JsonObject, Snapshot

_SUBSCRIPTION = re.compile(r'(?i)(/subscriptions/[^/"]+)')
_STATED = ("approvals", "workloads", "quotas", "metrics")


def with_its_copy(snapshot: Snapshot) -> Snapshot:
    """A snapshot with everything in it a second time, in subscriptions of other names.

    What has no subscription cannot lie in another one and is not copied; nor are principals, which subscriptions share.
    """
    resources = [resource for resource in snapshot.resources if _SUBSCRIPTION.match(str(resource.get("id")))]
    copies: list[JsonObject] = json.loads(_renamed(json.dumps(resources)))
    model = type(snapshot)
    stated = {
        name: [_own(entry.model_dump(mode="json", by_alias=True), name) for entry in getattr(snapshot, name)]
        for name in _STATED
    }
    copied = model.model_validate(json.loads(_renamed(json.dumps(stated))))
    further = {name: (*getattr(snapshot, name), *getattr(copied, name)) for name in _STATED}
    return snapshot.model_copy(update={"resources": (*snapshot.resources, *copies), **further})


def _own(entry: JsonObject, name: str) -> JsonObject:
    """A stated entry with an id that the first does not have."""
    return {**entry, "id": f"{entry['id']}-copy"} if name in ("approvals", "workloads") else entry


def _renamed(text: str) -> str:
    return _SUBSCRIPTION.sub(r"\1-copy", text)
