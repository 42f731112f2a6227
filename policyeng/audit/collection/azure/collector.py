"""The requests of a collection in order: the scope, its workspaces, and the resources that these refer to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

from policyeng.audit.collection.azure.client import Client, pages
from policyeng.audit.collection.azure.resource_types import (
    ADVICE,
    AT_SCOPE,
    BUDGETS,
    COMPUTES,
    CONNECTIONS,
    DEFINITIONS,
    EVERYWHERE,
    IN_GROUP,
    IN_NAMED,
    IN_SUBSCRIPTION,
    IN_WORKSPACE,
    JOBS,
    METRICS_VERSION,
    ML,
    NETWORKS,
    POLICY_ASSIGNMENTS,
    POLICY_SETS,
    SUBNETS,
    USAGES_VERSION,
    WORKSPACES,
    Listing,
    below_workspaces,
    version_of,
)
from policyeng.audit.collection.azure.snapshot_builder import CollectionScope, Loss, SnapshotBuilder, Task, WorkerPool
from policyeng.errors import InputError
from policyeng.evaluation.pointers import values_at
from policyeng.facts.ids import is_at_or_under, scopes_of, types_of, workspace_of
from policyeng.facts.numbers import parse_whole_number
from policyeng.facts.quotas import LOW_PRIORITY_FAMILY
from policyeng.facts.subnets import subnets_of
from policyeng.facts.times import moment
from policyeng.facts.words import fold, get_inside, squeeze
from policyeng.models import JsonObject, lowered


def read(client: Client, gathered: SnapshotBuilder, wanted: CollectionScope, workspace: str) -> Iterable[Task]:
    """Read pages of jobs, which Azure lists from the newest, up to a page where all are too old."""
    oldest = wanted.taken_at - wanted.jobs_since
    too_old, taken = f"those created before {oldest:%Y-%m-%dT%H:%M:%SZ} were left out", 0
    gathered.request(JOBS, workspace)
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


#: So far back metrics are read.
PERIOD = timedelta(days=30)
_MACHINES = "microsoft.compute/virtualmachines"
_ENDPOINTS = f"{WORKSPACES}/onlineEndpoints"


class _Meaning(NamedTuple):
    """The form of an Azure metric in a snapshot; `turned` if the metric is a free percentage."""

    name: str
    unit: str
    factor: float = 1.0
    turned: bool = False


_OF_COMPUTES: Mapping[str, _Meaning] = {
    "CpuUtilizationPercentage": _Meaning("cpuUtilization", "percent"),
    "CpuMemoryUtilizationPercentage": _Meaning("memoryUtilization", "percent"),
    "GpuUtilizationPercentage": _Meaning("gpuUtilization", "percent"),
    "DiskAvailMegabytes": _Meaning("diskFreeBytes", "bytes", 1e6),
}
_OF_MACHINES: Mapping[str, _Meaning] = {
    "Percentage CPU": _Meaning("cpuUtilization", "percent"),
    "Available Memory Percentage": _Meaning("memoryUtilization", "percent", turned=True),
}
_OF_ENDPOINTS: Mapping[str, _Meaning] = {"RequestsPerMinute": _Meaning("requestsPerMinute", "count")}

#: Returns the id of what a series measures, from the value that the series is split by; None if unknown.
_Measured = Callable[[str], str | None]


def plan_metrics(client: Client, gathered: SnapshotBuilder, wanted: CollectionScope) -> Iterator[Task]:
    """Yield tasks for the metrics of computes (which Azure stores with the workspace), machines and endpoints."""
    read = partial(_read_metrics, client, gathered, wanted)
    by_workspace: dict[str, dict[str, str]] = {}
    for compute in gathered.of_type(COMPUTES):
        identity, target = compute["id"], get_inside(compute, "properties", "resourceId")
        by_workspace.setdefault(workspace_of(identity) or "", {})[lowered(str(compute.get("name")))] = identity
        is_machine = fold(get_inside(compute, "properties", "computeType")) == "virtualmachine"
        if is_machine and isinstance(target, str) and f"/providers/{_MACHINES}/" in lowered(target):
            yield partial(read, target, identity, _OF_MACHINES, "", _always(identity))
    for workspace, by_name in sorted(by_workspace.items()):
        yield partial(read, workspace, workspace, _OF_COMPUTES, "ComputeName eq '*'", partial(_named, by_name))
    for endpoint in gathered.of_type(_ENDPOINTS):
        yield partial(read, endpoint["id"], endpoint["id"], _OF_ENDPOINTS, "", _always(endpoint["id"]))


def _always(identity: str) -> _Measured:
    return lambda _name: identity


def _named(by_name: Mapping[str, str], name: str) -> str | None:
    return by_name.get(lowered(name))


def _read_metrics(
    client: Client,
    gathered: SnapshotBuilder,
    wanted: CollectionScope,
    base: str,
    home: str,
    meanings: Mapping[str, _Meaning],
    split: str,
    measured: _Measured,
) -> Iterable[Task]:
    until = wanted.taken_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    query = {
        "api-version": METRICS_VERSION,
        "metricnames": ",".join(meanings),
        "timespan": f"{_text(until - PERIOD)}/{_text(until)}",
        "interval": "PT1H",
        "aggregation": "Average,Minimum,Maximum",
    } | ({"$filter": split, "top": "1000"} if split else {})
    response = client.get(f"{base}/providers/Microsoft.Insights/metrics", query)
    if isinstance(response, Loss):
        if not response.is_absent:
            gathered.lack("metrics", home, response)
        return ()
    listed = response.get("value")
    samples = [
        sample
        for metric in (listed if isinstance(listed, list) else ())
        if (meaning := meanings.get(str(get_inside(metric, "name", "value"))))
        for series in _listed(metric, "timeseries")
        if (identity := measured(_value_of(series))) and (sample := _sample(identity, meaning, series, until))
    ]
    gathered.state([], samples)
    return ()


def _value_of(series: object) -> str:
    """Return the dimension of a series; empty without one."""
    values = [get_inside(one, "value") for one in _listed(series, "metadatavalues")]
    return next((value for value in values if isinstance(value, str)), "")


def _listed(value: object, key: str) -> Sequence[object]:
    found = get_inside(value, key)
    return found if isinstance(found, list) else ()


def _sample(identity: str, meaning: _Meaning, series: object, until: datetime) -> JsonObject | None:
    """Return a series as a sample from its first point; None without points."""
    points = [point for point in _listed(series, "data") if _number(point, "average") is not None]
    begin = min(filter(None, (moment(get_inside(point, "timeStamp")) for point in points)), default=None)
    if begin is None or begin >= until:
        return None
    low, high = ("maximum", "minimum") if meaning.turned else ("minimum", "maximum")
    averages = [_convert_unit(point, "average", meaning) for point in points]
    highest = sorted(_convert_unit(point, high, meaning) for point in points)
    sample: JsonObject = {
        "resourceId": identity,
        "name": meaning.name,
        "unit": meaning.unit,
        "from": _text(begin),
        "to": _text(until),
        "average": round(sum(averages) / len(averages), 3),
        "minimum": min(_convert_unit(point, low, meaning) for point in points),
        "maximum": highest[-1],
    }
    if meaning.unit == "percent":
        sample["p95"] = highest[-(-95 * len(highest) // 100) - 1]
    return sample


def _convert_unit(point: object, key: str, meaning: _Meaning) -> float:
    """Return a value of a point in the unit of the snapshot; the average if it is missing."""
    value = _number(point, key)
    number = (value if value is not None else _number(point, "average") or 0.0) * meaning.factor
    return round(100 - number if meaning.turned else number, 3)


def _number(point: object, key: str) -> float | None:
    value = get_inside(point, key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


_SCOPE = re.compile(r"/subscriptions/[^/]+(?:/resourceGroups/[^/]+/providers/[^/]+/workspaces/[^/]+)?", re.I)
#: What follows the family in the name of a quota, as Azure Machine Learning spells it.
_BEHIND = re.compile(r"(?<!\s)\s*+Cluster (?:Dedicated )?vCPUs\Z", re.I)
#: The quotas that are none of one family, by a part of their types.
_LOW_PRIORITY, _TOTALS = "/lowprioritycores/", ("/totalcores/", "/dedicatedcores/", "/totaldedicatedcores/")


def plan_quotas(client: Client, gathered: SnapshotBuilder, wanted: CollectionScope) -> Iterator[Task]:
    """Yield tasks for the quotas of the regions with workspaces or computes."""
    stated = [one.get("location") for one in gathered.of_type(WORKSPACES)]
    stated += [get_inside(one, "properties", "computeLocation") for one in gathered.of_type(COMPUTES)]
    for region in sorted({region for place in stated if (region := squeeze(place))}):
        yield partial(_read_quotas, client, gathered, wanted, region)


def _read_quotas(client: Client, gathered: SnapshotBuilder, wanted: CollectionScope, region: str) -> Iterable[Task]:
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


_CLUSTERS = "Microsoft.ContainerService/managedClusters"
#: The JSON Pointers to ids of other resources, by type.
_NAMES = {
    COMPUTES: (
        "/properties/resourceId",
        "/properties/properties/subnet/id",
        "/properties/properties/aksNetworkingConfiguration/subnetId",
    ),
    WORKSPACES: (
        "/properties/hubResourceId",
        "/properties/storageAccount",
        "/properties/keyVault",
        "/properties/containerRegistry",
        "/properties/applicationInsights",
        "/properties/privateEndpointConnections/*/properties/privateEndpoint/id",
    ),
    CONNECTIONS: ("/properties/metadata/ResourceId",),
    JOBS: (
        "/properties/componentId",
        "/properties/environmentId",
        "/properties/jobs/*/componentId",
    ),
    f"{WORKSPACES}/onlineEndpoints/deployments": ("/properties/environmentId",),
    f"{WORKSPACES}/batchEndpoints/deployments": ("/properties/environmentId",),
    POLICY_ASSIGNMENTS: ("/properties/policyDefinitionId",),
    _CLUSTERS: (
        "/properties/agentPoolProfiles/*/vnetSubnetID",
        "/properties/agentPoolProfiles/*/podSubnetID",
    ),
}


def plan_references(
    client: Client,
    gathered: SnapshotBuilder,
    inside: Callable[[str], Iterable[Task]],
    read: Callable[[Listing, str], Iterable[Task]],
) -> Iterator[Task]:
    """Yield tasks for the referenced resources that were not requested yet.

    Missing ones are skipped: policies check for them. `inside` yields the tasks for everything in a hub, because its
    projects use it; `read` reads a list of a resource.
    """
    named = {
        target for kind in _NAMES for resource in gathered.of_type(kind) for target in _find_references(resource, kind)
    }
    for target, kind in sorted(named):
        if lowered(target) not in gathered.resources and gathered.first_time(target):
            yield partial(_request_resource, client, gathered, inside, read, target, kind)


def note_incomplete_clusters(gathered: SnapshotBuilder, root: str) -> None:
    """Note that clusters are incomplete if nodes are in subnets: clusters without references were not requested."""
    if any(subnets_of(one) for kind in (COMPUTES, _CLUSTERS) for one in gathered.of_type(kind)):
        gathered.leave(_CLUSTERS, root, "only those that were named were read")


def _find_references(resource: JsonObject, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the ids that a resource refers to, with their lower-case types; networks instead of subnets."""
    for pointer in _NAMES[kind]:
        for value in values_at(resource, pointer):
            if not isinstance(value, str):
                continue
            identity = value.removesuffix("/")
            kinds = types_of(identity)
            if kinds[:1] == (lowered(SUBNETS),):
                identity, kinds = identity.rpartition("/")[0].rpartition("/")[0], (lowered(NETWORKS),)
            if kind == POLICY_ASSIGNMENTS and kinds[:1] != (lowered(POLICY_SETS),):
                continue  # the id is enough for a single definition
            if kind == CONNECTIONS and not set(kinds[:1]) <= set(IN_NAMED):
                continue  # what a connection leads to need not be of Azure Machine Learning
            if kinds:
                yield lowered(identity), kinds[0]


def _request_resource(
    client: Client,
    gathered: SnapshotBuilder,
    inside: Callable[[str], Iterable[Task]],
    read: Callable[[Listing, str], Iterable[Task]],
    target: str,
    kind: str,
) -> Iterable[Task]:
    version = version_of(kind)
    response = (
        client.get(target, {"api-version": version}) if version else Loss("it is not known how to read this type")
    )
    if not isinstance(response, Loss):
        resource = gathered.take(response, kind, target)
        if resource and kind == lowered(WORKSPACES):
            yield from inside(resource["id"])
        for listing in IN_NAMED.get(kind, ()) if resource else ():
            yield partial(read, listing, target)
        if resource and kind == lowered(NETWORKS):
            gathered.request(kind, resource["id"])
    elif response.is_absent:
        gathered.request(kind, target)
    else:
        gathered.lack(kind, target, response)


#: Called with how many requests are complete, how many are known, and how many resources were read.
Progress = Callable[[int, int, int], None]
_READER = "give the identity that asks the role Reader there"


class CollectionRun:
    """One collection of a scope."""

    def __init__(self, client: Client, wanted: CollectionScope) -> None:
        self._client = client
        self._wanted = wanted
        self.gathered = SnapshotBuilder()

    def make(self, crew: WorkerPool, progress: Progress | None = None) -> SnapshotBuilder:
        """Read everything.

        Raises:
            InputError: the scope does not exist, nothing in it can be read, or there is no token.
        """
        known = self.gathered

        def report(done: int, all_: int) -> None:
            if progress is not None:
                progress(done, all_, len(known.resources))

        is_complete = crew.do(self._at_scope(), report)
        self._require_something()
        while is_complete and (tasks := list(plan_references(self._client, known, self._in_workspace, self._list))):
            is_complete = crew.do(tasks, report)
        note_incomplete_clusters(known, self._wanted.root)
        if not (is_complete and crew.do(self._follow_up(), report)):
            known.close(f"{self._wanted.scope} was not read completely: requests had no answer at the deadline")
        return known

    def _at_scope(self) -> Iterator[Task]:
        wanted = self._wanted
        yield self._workspaces
        for listing in (*AT_SCOPE, *(() if wanted.workspace else IN_GROUP)):
            yield partial(self._list, listing, wanted.scope)
        for listing in IN_SUBSCRIPTION:
            if listing not in AT_SCOPE or wanted.scope != wanted.root:
                yield partial(self._list, listing, wanted.root)
        yield partial(self._list, EVERYWHERE, "")
        yield from self._budgets(wanted.root)

    def _follow_up(self) -> Iterator[Task]:
        """Return the requests that follow from the resources found."""
        known = self.gathered
        above = {scope for one in known.of_type(WORKSPACES) for scope in scopes_of(one["id"])[:2]}
        for home in sorted(above - {lowered(self._wanted.root)}):
            yield from self._budgets(home)
        yield self._advice
        yield from plan_quotas(self._client, known, self._wanted)
        yield from plan_metrics(self._client, known, self._wanted)

    def _budgets(self, home: str) -> Iterator[Task]:
        for kind in BUDGETS:
            yield partial(self._list, Listing(kind, f"/providers/{kind}"), home)

    def _workspaces(self) -> Iterable[Task]:
        wanted = self._wanted
        self.gathered.request(WORKSPACES, wanted.scope)
        if wanted.workspace:
            response = self._client.get(wanted.scope, {"api-version": version_of(WORKSPACES)})
            found: list[JsonObject | Loss] = [response]
        else:
            found = list(self._entries(Listing(WORKSPACES, f"/providers/{WORKSPACES}"), wanted.group))
        for entry in found:
            if isinstance(entry, Loss):
                self._without_workspaces(entry)
            elif workspace := self.gathered.take(entry, WORKSPACES, wanted.scope):
                yield from self._in_workspace(workspace["id"])

    def _without_workspaces(self, loss: Loss) -> None:
        """Note what is unknown without a list of workspaces."""
        if loss.is_absent and not loss.is_unused:
            message, remedy = "there is no such scope, or the identity that asks must not know of it", _READER
            raise InputError(message, place=(self._wanted.scope,), remedy=remedy)
        if not loss.is_unused:
            for kind in (WORKSPACES, *below_workspaces()):
                self.gathered.lack(kind, self._wanted.scope, loss)

    def _in_workspace(self, workspace: str) -> Iterator[Task]:
        for listing in IN_WORKSPACE:
            yield partial(self._list, listing, workspace)
        yield partial(read, self._client, self.gathered, self._wanted, workspace)

    def _list(self, listing: Listing, home: str) -> Iterable[Task]:
        """Read one list, and return the tasks for the lists of its entries."""
        # All roles that can be assigned at a scope are listed there, with ids of the subscription.
        self.gathered.request(listing.kind, self._wanted.root if listing.kind == DEFINITIONS else home or "/")
        for entry in self._entries(listing, home):
            if isinstance(entry, Loss):
                self._lack(listing, home, entry)
                continue
            resource = self.gathered.take(entry, listing.kind, home or "/")
            if resource is None:
                continue
            for below in listing.below:
                yield partial(self._list, below, resource["id"])
            if listing.kind == COMPUTES and not isinstance(get_inside(resource, "properties", "properties"), dict):
                yield partial(self._again, resource)

    def _lack(self, listing: Listing, home: str, loss: Loss) -> None:
        if loss.is_absent or (listing.may_lack and loss.is_unknown):
            return
        where = (workspace_of(home) if listing.newest else home) or "/"  # one line for all models of a workspace
        for kind in (listing.kind, *(below.kind for below in listing.below if below.kind.startswith(listing.kind))):
            self.gathered.lack(kind, where, loss)

    def _entries(self, listing: Listing, home: str) -> Iterator[JsonObject | Loss]:
        query = {"api-version": version_of(listing.kind), **listing.query}
        if listing.newest:
            query |= {"$top": str(listing.newest), "$orderBy": "createdtime desc"}
        for number, page in enumerate(pages(self._client, f"{home}{listing.path}", query)):
            if isinstance(page, Loss):
                yield page
            elif listing.newest and number:
                reason = f"only the newest {listing.newest} of each were read"
                self.gathered.leave(listing.kind, workspace_of(home) or home, reason)
                return
            else:
                yield from page.entries  # type: ignore[misc]  # `take` refuses those that are no objects

    def _again(self, listed: JsonObject) -> Iterable[Task]:
        """Read a compute again, because lists omit its inner properties."""
        response = self._client.get(listed["id"], {"api-version": version_of(COMPUTES)})
        if isinstance(response, Loss):
            self.gathered.lack(COMPUTES, listed["id"], response)
        else:
            self.gathered.replace(response)
        return ()

    def _advice(self) -> Iterable[Task]:
        """Read the advice on the collected resources; Azure lists it for the subscription."""
        wanted, known = self._wanted, frozenset(self.gathered.resources)
        for entry in self._entries(Listing(ADVICE, f"/providers/{ADVICE}"), wanted.root):
            if isinstance(entry, Loss):
                self._lack(Listing(ADVICE, ""), wanted.scope, entry)
            elif lowered(str(get_inside(entry, "id"))).partition(f"/providers/{lowered(ADVICE)}")[0] in known:
                self.gathered.take(entry, ADVICE, wanted.scope)
        return ()

    def _require_something(self) -> None:
        """Check that something could be read, because an empty snapshot would look like an empty scope.

        Raises:
            InputError: nothing could be read.
        """
        known = self.gathered
        read = any(lowered(key).startswith(lowered(self._wanted.root)) for key in known.resources)
        if not read and known.missing:
            first = known.missing[0].partition(": ")[2]
            message = f"nothing of it can be read: {first}"
            remedy = _READER if known.denied else "try again later"
            raise InputError(message, place=(self._wanted.scope,), remedy=remedy)
