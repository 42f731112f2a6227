"""What a snapshot says that no policy will hear, and that a reader should know: words which nothing understands."""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.errors import nearest
from policyeng.facts import Facts
from policyeng.facts.computes import COMPUTE_TYPE
from policyeng.facts.words import folded, inside
from policyeng.models import Problem, Snapshot, lowered

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


def remarks(snapshot: Snapshot, facts: Facts) -> Iterator[Problem]:
    """Warnings about computes of no known kind, and about what is probably misspelt in the organisation's own facts.

    Policies of others may read approvals and metrics that ours do not, so those are only named where they are close to
    one that ours do read.
    """
    for resource in snapshot.resources:
        if lowered(str(resource.get("type"))) == COMPUTE_TYPE:
            yield from _compute(str(resource.get("id")), inside(resource, "properties", "computeType"), snapshot)
    for approval in snapshot.approvals:
        if folded(approval.kind) != "vmseries":
            yield from _misspelt(f"approval {approval.id}", "kind", approval.kind, _APPROVED)
        elif "vm_sizes" in facts.document and not (facts.series(approval.series) or facts.sizes_of(approval.series)):
            meant = nearest(approval.series, facts.document.get("vm_series", ())) or "; name one, such as `NCsv3`"
            message = f"`{approval.series}` is no VM series of the catalogue, so nothing is approved{meant}"
            yield Problem(level="warning", message=message, place=f"approval {approval.id}")
    for name in sorted({metric.name for metric in snapshot.metrics} - {*_METRICS}):
        yield from _misspelt("metrics", "name", name, _METRICS)


def _compute(identity: str, kind: object, snapshot: Snapshot) -> Iterator[Problem]:
    unreadable = snapshot.unreadable.get(lowered(identity), {})
    if folded(kind) in _COMPUTE_KINDS or any("/properties/computeType".startswith(pointer) for pointer in unreadable):
        return
    said = "is absent" if kind is None else "is no kind of compute"
    message = f"its `computeType` {said}, so policies for one kind of compute do not judge it"
    yield Problem(level="warning", message=message, place=identity)


def _misspelt(place: str, key: str, word: str, known: tuple[str, ...]) -> Iterator[Problem]:
    if meant := nearest(word, known):
        yield Problem(level="warning", message=f"no policy reads the {key} `{word}`{meant}", place=place)
