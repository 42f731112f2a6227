"""Metrics of machines and endpoints from Azure Monitor, in the form of a snapshot.

Azure Monitor has no percentiles. The p95 here is that of the highest value of each hour: at least 95 % of the minutes
are at or below it, and it can be too high but not too low. Source: learn.microsoft.com, "Supported metrics" of
`Microsoft.MachineLearningServices/workspaces`, `.../onlineEndpoints` and `Microsoft.Compute/virtualMachines`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

from policyeng.audit.collection.azure.client import Client, Loss
from policyeng.audit.collection.azure.resource_types import COMPUTES, METRICS_VERSION, WORKSPACES
from policyeng.audit.collection.azure.scope import CollectionScope
from policyeng.audit.collection.azure.snapshot_builder import SnapshotBuilder
from policyeng.audit.collection.azure.workers import Task
from policyeng.facts.ids import workspace_of
from policyeng.facts.times import moment
from policyeng.facts.words import fold, get_inside
from policyeng.models import JsonObject, lowered

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


def tasks(client: Client, gathered: SnapshotBuilder, wanted: CollectionScope) -> Iterator[Task]:
    """Yield tasks for the metrics of computes (which Azure stores with the workspace), machines and endpoints."""
    read = partial(_read, client, gathered, wanted)
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


def _read(
    client: Client,
    gathered: SnapshotBuilder,
    wanted: CollectionScope,
    asked: str,
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
    answer = client.get(f"{asked}/providers/Microsoft.Insights/metrics", query)
    if isinstance(answer, Loss):
        if not answer.is_absent:
            gathered.lack("metrics", home, answer)
        return ()
    listed = answer.get("value")
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
