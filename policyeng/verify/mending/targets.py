"""Which places an edit may change to mend a finding: those that are declared, and none that decides what applies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from policyeng.bundle import Policy
from policyeng.bundle.header_parts import WORKSPACE
from policyeng.bundle.remediation import is_at_or_below
from policyeng.evaluation.places import NEIGHBOUR
from policyeng.models import Denial, Finding, JsonObject, Snapshot, lowered
from policyeng.strict.json_pointer import escaped, keys_of, member
from policyeng.verify.mending.patching import document_of
from policyeng.verify.mending.subjects import Judged, Place
from policyeng.verify.observing import Observed

#: What says which resource it is, where it is, and of which kind: changing it is another resource.
_IDENTITY = frozenset({"/id", "/type", "/name", "/location", "/kind", "/properties/resourceid"})
#: What makes work regulated; taking it away would hide what fails.
_CLASSIFYING = frozenset({"hbiworkspace", "data-classification", "dataclassification"})
_TAGS = frozenset({"tags", "kvtags"})
#: Who may do what is people's to decide, and advice is Azure's; only what a header says is proposed.
_DECIDED = ("microsoft.authorization/", "microsoft.advisor/")
#: What a declaration chooses; the rest states what the work is.
_CHOSEN = ("/target", "/accelerator")
_RESOURCES = "microsoft.machinelearningservices/workspaces/"
_COMPUTE = ("/target", "/computeId", "/runs")
#: By the type that a workload is derived from: where it states what a field of the workload is made of.
_SOURCES: dict[str, dict[str, str]] = {
    f"{_RESOURCES}jobs": {
        **dict.fromkeys(_COMPUTE, "/properties/computeId"),
        "/runs/0/concurrentTrials": "/properties/limits/maxConcurrentTrials",
    },
    f"{_RESOURCES}batchendpoints/deployments": dict.fromkeys(_COMPUTE, "/properties/compute"),
    f"{_RESOURCES}services": {
        "/memoryGiB": "/properties/containerResourceRequirements/memoryInGB",
        "/accelerator": "/properties/containerResourceRequirements/gpu",
    },
}
#: No more members of a list or an object are looked at for one `*`.
_MOST_MEMBERS = 8


@dataclass(frozen=True, slots=True)
class Target:
    """A place that an edit may change.

    Attributes:
        place: of which document.
        pointer: a JSON Pointer into it.
        denial: the denial that speaks of the place, or the first one.
        named: whether the denial names the very place.
        is_tag: whether it is a tag, whose value only the workspace can tell.
        is_compute: whether it names the compute that work runs on.
    """

    place: Place
    pointer: str
    denial: Denial
    named: bool = True
    is_tag: bool = False
    is_compute: bool = False


def targets(policy: Policy, read: Observed, finding: Finding, judged: Judged, snapshot: Snapshot) -> Iterator[Target]:
    """The places, those that denials name first; each once. `read` is what the evaluation of the finding reads."""
    kind = lowered(str(judged.document.get("type", "")))
    if judged.place[0] == "approval" or kind.startswith(_DECIDED):
        return
    seen: set[tuple[Place, str]] = set()
    for found in (*_named(read, finding, judged, snapshot), *_inspected(read, finding, judged, snapshot)):
        if (found.place, found.pointer) not in seen and not _is_hiding(policy, found, judged):
            seen.add((found.place, found.pointer))
            yield found


def _named(read: Observed, finding: Finding, judged: Judged, snapshot: Snapshot) -> Iterator[Target]:
    for denial in finding.denials:
        if judged.derived and not denial.path.startswith(WORKSPACE):
            yield from _source(denial, judged)
            continue
        place, pointer = _placed(denial.path, judged, snapshot)
        if place is not None and pointer.startswith("/") and _is_read(read, denial.path):
            yield Target(place, pointer, denial, is_tag=_is_tag(pointer))


def _source(denial: Denial, judged: Judged) -> Iterator[Target]:
    """Where the resource that a workload was derived from states what is denied."""
    places = _SOURCES.get(lowered(str(judged.document.get("type"))), {})
    above = "/runs" if denial.path.startswith("/runs/") else denial.path
    for pointer in dict.fromkeys(places[path] for path in (denial.path, above) if path in places):
        yield Target(
            judged.place, pointer, denial, is_compute=pointer in ("/properties/computeId", "/properties/compute")
        )


def _inspected(read: Observed, finding: Finding, judged: Judged, snapshot: Snapshot) -> Iterator[Target]:
    """What the policy reads besides what it denies; of derived work its fields are not those of a resource."""
    for pointer in read.pointers:
        place, inside = _placed(pointer, judged, snapshot)
        own = not (judged.derived or judged.place[0] == "workload") or pointer.startswith(WORKSPACE)
        document = document_of(snapshot, *place) if place and own else None
        if place is not None and document is not None:
            for concrete in islice(_concrete(document, inside), _MOST_MEMBERS):
                if not _is_tag(concrete):
                    yield Target(place, concrete, finding.denials[0], named=False)


def _concrete(document: object, pointer: str) -> Iterator[str]:
    """The pointers that one with `*` stands for in a document."""
    found: list[tuple[str, object]] = [("", document)]
    for key in keys_of(pointer):
        found = [(f"{path}/{escaped(name)}", inner) for path, value in found for name, inner in _members(value, key)]
    yield from (path for path, _ in found)


def _members(value: object, key: str) -> Iterable[tuple[object, object]]:
    if key != "*":
        return [(key, member(value, key))]
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _placed(path: str, judged: Judged, snapshot: Snapshot) -> tuple[Place | None, str]:
    """The document that a path of a policy leads into, and the pointer in it."""
    if path.startswith(WORKSPACE):
        return judged.workspace, path.removeprefix(WORKSPACE)
    if NEIGHBOUR in path:
        identity, _, pointer = path.partition(NEIGHBOUR)
        found: JsonObject | None = document_of(snapshot, "resource", identity)
        return (("resource", str(found["id"])) if found else None), f"/{pointer}"
    return judged.place, path


def _is_read(read: Observed, path: str) -> bool:
    if NEIGHBOUR in path and not path.startswith(WORKSPACE):
        inside = f"/{path.partition(NEIGHBOUR)[2]}"
        return any(is_at_or_below(inside, one) for pointers in read.others.values() for one in pointers)
    return any(is_at_or_below(path, one) for one in read.pointers)


def _is_tag(pointer: str) -> bool:
    return any(lowered(key) in _TAGS for key in keys_of(pointer)[:2])


def _is_hiding(policy: Policy, target: Target, judged: Judged) -> bool:
    """Whether changing a place decides what a policy applies to, rather than what it finds."""
    keys = [lowered(key) for key in keys_of(target.pointer)]
    if lowered(target.pointer) in _IDENTITY or (_CLASSIFYING.intersection(keys) and not target.is_tag):
        return True
    if target.is_tag:
        return not target.named or "data-classification" in keys
    if target.place[0] == "workload":
        return target.pointer not in _CHOSEN
    narrowing = {pointer for judges in policy.header.judges for pointer in judges.where}
    return target.place == judged.place and target.pointer in narrowing and not target.named
