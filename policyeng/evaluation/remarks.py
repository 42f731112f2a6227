"""What a snapshot says that no policy will hear, and that a reader should know: words which nothing understands."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from policyeng.bundle import SnapshotView
from policyeng.errors import nearest
from policyeng.facts import Facts
from policyeng.facts.computes import COMPUTE_TYPE
from policyeng.facts.words import folded, inside
from policyeng.models import JsonObject, Problem, lowered

#: The kinds of compute. Source: ARM, Microsoft.MachineLearningServices/workspaces/computes 2025-12-01, `computeType`,
#: and Azure Batch, which the documents list.
_COMPUTE_KINDS = frozenset(
    {"aks", "amlcompute", "batch", "computeinstance", "databricks", "datafactory", "datalakeanalytics", "hdinsight"}
    | {"kubernetes", "synapsespark", "virtualmachine"}
)
_APPROVED = ("vmSeries",)
_METRICS = (
    *("cpuUtilization", "memoryUtilization", "gpuUtilization", "diskFreeBytes"),
    *("requestsPerMinute", "lastActivity"),
)


def remarks(view: SnapshotView, unreadable: Mapping[str, Mapping[str, str]], facts: Facts) -> Iterator[Problem]:
    """Warnings about computes of no known kind, and about what is probably misspelt in the organisation's own facts.

    Policies of others may read approvals and metrics that ours do not, so those are only named where they are close to
    one that ours do read. `unreadable` is that of the snapshot. The order is the view's, whatever the snapshot's was.
    """
    for compute in view.by_type.get(COMPUTE_TYPE, ()):
        yield from of_compute(compute, unreadable.get(lowered(compute["id"]), {}))
    for approval in view.approvals:
        kind, series, place = approval["kind"], approval["series"], f"approval {approval['id']}"
        if folded(kind) != "vmseries":
            yield from _misspelt(place, "kind", kind, _APPROVED)
        elif "vm_sizes" in facts.document and not (facts.series(series) or facts.sizes_of(series)):
            meant = nearest(series, facts.document.get("vm_series", ())) or "; name one, such as `NCsv3`"
            message = f"`{series}` is no VM series of the catalogue, so nothing is approved{meant}"
            yield Problem(level="warning", message=message, place=place)
    for name in sorted({metric["name"] for metric in view.metrics} - {*_METRICS}):
        yield from _misspelt("metrics", "name", name, _METRICS)


def of_compute(compute: JsonObject, unreadable: Collection[str]) -> Iterator[Problem]:
    """A warning about a compute of no known kind; `unreadable` are the JSON Pointers that its format cannot carry."""
    kind = inside(compute, "properties", "computeType")
    if folded(kind) in _COMPUTE_KINDS or not {"", "/properties", "/properties/computeType"}.isdisjoint(unreadable):
        return
    said = "is absent" if kind is None else "is no kind of compute"
    message = f"its `computeType` {said}, so policies for one kind of compute do not judge it"
    yield Problem(level="warning", message=message, place=compute["id"])


def _misspelt(place: str, key: str, word: str, known: tuple[str, ...]) -> Iterator[Problem]:
    if meant := nearest(word, known):
        yield Problem(level="warning", message=f"no policy reads the {key} `{word}`{meant}", place=place)
