"""Warnings about values in a snapshot that no policy understands, such as misspelled words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Set

from policyeng.bundle import Policy
from policyeng.errors import suggest_nearest
from policyeng.facts import Facts
from policyeng.facts.computes import COMPUTE_TYPE
from policyeng.facts.words import CLASSIFICATION_TAG, classifications, fold, get_inside
from policyeng.models import JsonObject, Problem, Resource, lowered
from policyeng.parsing.json_text import shortened

#: The kinds of compute. Source: ARM, Microsoft.MachineLearningServices/workspaces/computes 2025-12-01, `computeType`,
#: and Azure Batch, which the documents list.
_COMPUTE_KINDS = frozenset(
    {"aks", "amlcompute", "batch", "computeinstance", "databricks", "datafactory", "datalakeanalytics", "hdinsight"}
    | {"kubernetes", "synapsespark", "virtualmachine"}
)
_MACHINE_LEARNING = "microsoft.machinelearningservices/"
_APPROVED = ("vmSeries", "model")
#: The parameter that names the classifications of regulated work.
_REGULATED = "regulated_classifications"
_METRICS = (
    *("cpuUtilization", "memoryUtilization", "gpuUtilization", "diskFreeBytes"),
    *("requestsPerMinute", "lastActivity"),
)


def list_warnings(subjects: Iterable[Resource], document: JsonObject, facts: Facts) -> Iterator[Problem]:
    """Yield warnings about unknown kinds of compute, and about probable misspellings in the organization's facts.

    Custom policies can read approvals and metrics that the built-in policies do not, so an unknown name is reported
    only if it is similar to a known one.

    Args:
        subjects: resources in their order.
        document: the value of `input.snapshot`.
        facts: the facts of the bundle.
    """
    for subject in subjects:
        if subject.target_type == COMPUTE_TYPE:
            yield from of_compute(subject.document, subject.unreadable)
    for approval in document["approvals"]:
        kind, series, place = approval["kind"], approval["series"], f"approval {approval['id']}"
        if fold(kind) == "model":
            if fold(approval["model"]) is None:
                message = "an approval of the kind `model` without `model` has no effect; give the id of the version"
                yield Problem(level="warning", message=message, place=place)
        elif fold(kind) != "vmseries":
            yield from _find_misspellings(place, "kind", kind, _APPROVED)
        elif "vm_sizes" in facts.document and not (facts.series(series) or facts.sizes_of(series)):
            meant = suggest_nearest(series, facts.document.get("vm_series", ())) or "; name one, such as `NCsv3`"
            message = f"`{series}` is not a VM series of the catalog, so the approval has no effect{meant}"
            yield Problem(level="warning", message=message, place=place)
    for name in sorted({metric["name"] for metric in document["metrics"]} - {*_METRICS}):
        yield from _find_misspellings("metrics", "name", name, _METRICS)


def of_compute(compute: JsonObject, unreadable: Collection[str]) -> Iterator[Problem]:
    """Yield a warning about a compute of unknown kind, unless `unreadable` contains the pointer to its kind."""
    kind = get_inside(compute, "properties", "computeType")
    if fold(kind) in _COMPUTE_KINDS or not {"", "/properties", "/properties/computeType"}.isdisjoint(unreadable):
        return
    reason = "is missing" if kind is None else "is not a known kind of compute"
    message = f"its `computeType` {reason}, so policies for one kind of compute do not check it"
    yield Problem(level="warning", message=message, place=compute["id"])


def list_classifications(policies: Iterable[Policy], parameters: Iterable[JsonObject], facts: Facts) -> Set[str]:
    """Return the known values of the tag `data-classification` in lower case; none if no policy reads it.

    Args:
        policies: the policies; their parameter `regulated_classifications` lists the regulated values.
        parameters: one object for each policy, with defaults.
        facts: the facts of the bundle; they list the values that are not regulated.
    """
    regulated = {
        word
        for policy, values in zip(policies, parameters, strict=True)
        if _REGULATED in policy.header.parameters
        for entry in values[_REGULATED]
        if (word := fold(entry))
    }
    return regulated | facts.harmless_classifications if regulated and facts.harmless_classifications else set()


def unknown_classifications(resources: Iterable[JsonObject], known: Set[str]) -> Counter[str]:
    """Count the Azure Machine Learning resources with each unknown classification; empty if none is known."""
    if not known:
        return Counter()
    return Counter(
        word
        for resource in resources
        if lowered(resource["type"]).startswith(_MACHINE_LEARNING)
        for value in classifications(resource)
        if (word := fold(value)) and word not in known
    )


def of_classifications(words: Iterable[str], known: Set[str]) -> list[Problem]:
    """Return a warning for each unknown classification."""
    return [
        Problem(
            level="warning",
            message=f"`{shortened(word)}` is not a known classification, so it is not treated as regulated"
            f"{suggest_nearest(word, known)}; if it is regulated, add it to the parameter `{_REGULATED}`",
            place=f"tag `{CLASSIFICATION_TAG}`",
        )
        for word in sorted(words)
    ]


def _find_misspellings(place: str, key: str, word: str, known: tuple[str, ...]) -> Iterator[Problem]:
    if meant := suggest_nearest(word, known):
        yield Problem(level="warning", message=f"no policy reads the {key} `{word}`{meant}", place=place)
