"""Quotas: the vCPUs that a subscription and its workspaces can use, by VM family and region."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial

from policyeng.audit.collection.azure.client import Client, Loss, pages
from policyeng.audit.collection.azure.resource_types import COMPUTES, ML, USAGES_VERSION, WORKSPACES
from policyeng.audit.collection.azure.scope import CollectionScope
from policyeng.audit.collection.azure.snapshot_builder import SnapshotBuilder
from policyeng.audit.collection.azure.workers import Task
from policyeng.facts.ids import is_at_or_under
from policyeng.facts.numbers import parse_whole_number
from policyeng.facts.quotas import LOW_PRIORITY_FAMILY
from policyeng.facts.words import fold, get_inside, squeeze
from policyeng.models import JsonObject

_SCOPE = re.compile(r"/subscriptions/[^/]+(?:/resourceGroups/[^/]+/providers/[^/]+/workspaces/[^/]+)?", re.I)
#: What follows the family in the name of a quota, as Azure Machine Learning spells it.
_BEHIND = re.compile(r"(?<!\s)\s*+Cluster (?:Dedicated )?vCPUs\Z", re.I)
#: The quotas that are none of one family, by a part of their types.
_LOW_PRIORITY, _TOTALS = "/lowprioritycores/", ("/totalcores/", "/dedicatedcores/", "/totaldedicatedcores/")


def tasks(client: Client, gathered: SnapshotBuilder, wanted: CollectionScope) -> Iterator[Task]:
    """Yield tasks for the quotas of the regions with workspaces or computes."""
    stated = [one.get("location") for one in gathered.of_type(WORKSPACES)]
    stated += [get_inside(one, "properties", "computeLocation") for one in gathered.of_type(COMPUTES)]
    for region in sorted({region for place in stated if (region := squeeze(place))}):
        yield partial(_read, client, gathered, wanted, region)


def _read(client: Client, gathered: SnapshotBuilder, wanted: CollectionScope, region: str) -> Iterable[Task]:
    """Read the limits of the usages, and those of workspaces.

    Limits of larger scopes than the collected one are skipped, because their other usage is not known.
    """
    home = f"{wanted.root}/providers/{ML}/locations/{region}"
    found: dict[tuple[str, str], JsonObject] = {}
    for name in ("usages", "quotas"):
        for page in pages(client, f"{home}/{name}", {"api-version": USAGES_VERSION}):
            if isinstance(page, Loss):
                gathered.lack("quotas", wanted.root, page._replace(reason=f"{name} in {region}: {page.reason}"))
            else:
                for quota in filter(None, (_quota(entry, region) for entry in page.entries)):
                    found.setdefault((quota["scope"].lower(), quota["family"].lower()), quota)
    gathered.state([quota for _, quota in sorted(found.items()) if is_at_or_under(quota["scope"], wanted.scope)], [])
    return ()


def _quota(entry: object, region: str) -> JsonObject | None:
    """Return a quota in the form of a snapshot; None for totals and without a limit."""
    scope, kind = _SCOPE.match(str(get_inside(entry, "id"))), f"{fold(get_inside(entry, 'type')) or ''}/"
    name, limit = get_inside(entry, "name", "value"), parse_whole_number(get_inside(entry, "limit"))
    if scope is None or not isinstance(name, str) or limit is None or limit < 0 or any(one in kind for one in _TOTALS):
        return None
    family = LOW_PRIORITY_FAMILY if _LOW_PRIORITY in kind else _BEHIND.sub("", name)
    return {"scope": scope[0], "region": region, "family": family, "limitVCpus": limit}
