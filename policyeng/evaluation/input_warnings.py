"""What a snapshot says that no policy will hear, and that a reader should know: words which nothing understands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Set

from policyeng.bundle import Policy, SnapshotView
from policyeng.errors import nearest
from policyeng.facts import Facts
from policyeng.facts.arm_casing import is_respelled
from policyeng.facts.computes import COMPUTE_TYPE
from policyeng.facts.words import CLASSIFICATION_TAG, classifications, folded, inside
from policyeng.models import JsonObject, Problem, lowered
from policyeng.parsing.json_text import shortened

#: The kinds of compute. Source: ARM, Microsoft.MachineLearningServices/workspaces/computes 2025-12-01, `computeType`,
#: and Azure Batch, which the documents list.
_COMPUTE_KINDS = frozenset(
    {"aks", "amlcompute", "batch", "computeinstance", "databricks", "datafactory", "datalakeanalytics", "hdinsight"}
    | {"kubernetes", "synapsespark", "virtualmachine"}
)
_APPROVED = ("vmSeries",)
#: The parameter that names the classifications of regulated work.
_REGULATED = "regulated_classifications"
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


def known_classifications(policies: Iterable[Policy], parameters: Iterable[JsonObject], facts: Facts) -> Set[str]:
    """The words of the tag `data-classification` that are known, in lower case; none where no policy reads it.

    Args:
        policies: those in force; the parameter `regulated_classifications` of any of them names what is regulated.
        parameters: one object for each policy, defaults filled in.
        facts: those of the bundle; they name what is not regulated.
    """
    regulated = {
        word
        for policy, given in zip(policies, parameters, strict=True)
        if _REGULATED in policy.header.parameters
        for entry in given[_REGULATED]
        if (word := folded(entry))
    }
    return regulated | facts.harmless_classifications if regulated and facts.harmless_classifications else set()


def unknown_classifications(resources: Iterable[JsonObject], known: Set[str]) -> Counter[str]:
    """How many resources of Machine Learning have each classification that is not known; none where none is known."""
    if not known:
        return Counter()
    return Counter(
        word
        for resource in resources
        if is_respelled(resource["type"])
        for value in classifications(resource)
        if (word := folded(value)) and word not in known
    )


def of_classifications(words: Iterable[str], known: Set[str]) -> list[Problem]:
    """A warning for each classification that is not known, which makes nothing regulated."""
    return [
        Problem(
            level="warning",
            message=f"`{shortened(word)}` is not a known classification, so work with it is not regulated"
            f"{nearest(word, known)}; if it is, name it in the parameter `{_REGULATED}`",
            place=f"tag `{CLASSIFICATION_TAG}`",
        )
        for word in sorted(words)
    ]


def _misspelt(place: str, key: str, word: str, known: tuple[str, ...]) -> Iterator[Problem]:
    if meant := nearest(word, known):
        yield Problem(level="warning", message=f"no policy reads the {key} `{word}`{meant}", place=place)
