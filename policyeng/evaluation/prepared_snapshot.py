"""Prepare a snapshot for evaluation: sort it, index it, and derive its workloads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from types import MappingProxyType, NoneType
from typing import Any, NamedTuple, TypeVar

import orjson

from policyeng.bundle import SnapshotView
from policyeng.bundle.policy_types import sort_keys
from policyeng.errors import InputError
from policyeng.evaluation.coverage import Gap, gaps_in, list_bounded, list_untyped_gaps
from policyeng.evaluation.input_warnings import list_warnings
from policyeng.evaluation.normalization import approval_read, resource_read, tags_read, unreadable_read
from policyeng.facts import Facts
from policyeng.facts.computes import CLUSTER_TYPE, COMPUTE_TYPE
from policyeng.facts.coverage import EVERYTHING, is_whole
from policyeng.facts.ids import ArmPlace, fold_id, guid_of, place_in_arm
from policyeng.facts.subnets import subnets_of
from policyeng.facts.words import fold, get_inside
from policyeng.models import (
    NOWHERE,
    WORKSPACE_TYPE,
    Approval,
    Carried,
    DeclaredWorkload,
    Document,
    Evidence,
    JsonObject,
    Location,
    Model,
    Origin,
    Problem,
    Resource,
    Snapshot,
    lowered,
    to_bytes,
)
from policyeng.parsing.json_text import MAX_DEPTH, is_within, require_readable
from policyeng.redaction import masked_message
from policyeng.workloads import Derivation, Workload
from policyeng.workloads import derivation as derivation_of

ROLE_DEFINITION_TYPE = "microsoft.authorization/roledefinitions"


#: The indices of resources: each maps one or two keys to a list of ids.
OF_RESOURCES = ("by_scope", "by_extended", "by_host", "by_subnet", "by_guid")

#: The place of an id in the indices of resources: the name of an index, and the keys in it.
Path = tuple[str, ...]
#: How often an id is in an entry before and after a change, by id.
Moves = dict[str, tuple[int, int]]


def indices_of(
    resources: Iterable[tuple[str, JsonObject, ArmPlace]], stated: Mapping[str, Sequence[JsonObject]]
) -> dict[str, dict[str, Any]]:
    """Return the indices of a snapshot by name, as in `SnapshotView`, from its resources in the order of their ids.

    Keys and ids are in lower case, and lists have the order of the indexed entries: resources and approvals that of
    their ids; metrics, principals and quotas (which have no index) that of their text as JSON. The keys of the indices
    of resources are sorted.
    """
    indices: dict[str, dict[str, Any]] = {name: {} for name in OF_RESOURCES}
    for key, resource, place in resources:
        for *above, last in paths_of(key, resource, place):
            index: dict[str, Any] = indices
            for step in above:
                index = index.setdefault(step, {})
            index.setdefault(last, []).append(key)
    for name in OF_RESOURCES:
        indices[name] = sort_keys(name, indices[name])
    return {
        **indices,
        "by_series": _positions(stated["approvals"], _series_of),
        "by_measured": _positions(stated["metrics"], lambda metric: fold_id(metric["resourceId"])),
        "by_principal": _positions(stated["principals"], lambda principal: fold(principal["id"])),
    }


def paths_of(key: str, resource: JsonObject, place: ArmPlace) -> Iterator[Path]:
    """Yield each place of a resource's lower-case id in the indices of resources, repeated as often as it occurs."""
    kind = lowered(resource["type"])
    for scope in place.scopes or ("/",):
        yield "by_scope", scope, kind
    if place.extended:
        yield "by_extended", place.extended, kind
    if kind in (COMPUTE_TYPE, CLUSTER_TYPE):
        for subnet in subnets_of(resource):
            yield "by_subnet", subnet
    if kind == COMPUTE_TYPE:
        host = get_inside(resource, "properties", "resourceId")
        if isinstance(host, str):
            yield "by_host", fold_id(host)
    elif kind == ROLE_DEFINITION_TYPE and (guid := guid_of(key)):
        yield "by_guid", guid


def list_index_changes(
    changes: Iterable[tuple[str, JsonObject | None, JsonObject | None]],
) -> Iterator[tuple[Path, Moves]]:
    """Yield the entries of the indices of resources that a change affects.

    Args:
        changes: lower-case ids with the resources before and after the change, None if there is none.
    """
    found: dict[Path, Moves] = {}
    for key, *sides in changes:
        place = place_in_arm(key)
        old, new = (list(paths_of(key, side, place)) if side is not None else [] for side in sides)
        for path in {*old, *new} if old != new else ():
            was, now = old.count(path), new.count(path)
            if was != now:
                found.setdefault(path, {})[key] = was, now
    yield from sorted(found.items())


def _positions(entries: Iterable[JsonObject], key_of: Callable[[JsonObject], str | None]) -> dict[str, list[int]]:
    """Return the positions of the entries by key; entries without a key are ignored."""
    found: dict[str, list[int]] = {}
    for position, entry in enumerate(entries):
        key = key_of(entry)
        if key is not None:
            found.setdefault(key, []).append(position)
    return found


def _series_of(approval: JsonObject) -> str | None:
    return fold(approval.get("series")) if fold(approval.get("kind")) == "vmseries" else None


def documents_of(snapshot: Snapshot) -> tuple[list[tuple[Document, bytes]], list[Problem]]:
    """Return the documents with their canonical JSON, and a problem for each that cannot be evaluated."""
    ready: list[tuple[Document, bytes]] = []
    problems: list[Problem] = []
    names: set[str] = set()
    for document in snapshot.documents:
        if document.name in names:
            message = "two documents have this name; remove one of them"
            problems.append(Problem(level="error", message=message, place=document.name))
            continue
        names.add(document.name)
        try:
            text = orjson.dumps(document.content, option=orjson.OPT_SORT_KEYS)
            require_readable(document.content, text, document.name)
        except (TypeError, InputError) as error:
            message = f"the document cannot be evaluated: {error}"
            problems.append(Problem(level="error", message=message, place=document.name))
        else:
            ready.append((document, text))
    return ready, problems


_Stated = TypeVar("_Stated", Approval, DeclaredWorkload, Evidence)


def deduplicate(entries: Sequence[_Stated], plural: str) -> tuple[tuple[_Stated, ...], list[Problem]]:
    """Return the entries with each id once; which duplicate is used does not depend on the order."""
    by_id: dict[str, list[_Stated]] = {}
    for entry in entries:
        by_id.setdefault(lowered(entry.id), []).append(entry)
    if len(by_id) == len(entries):
        return tuple(entries), []
    chosen = {key: min(alike, key=to_bytes) for key, alike in by_id.items()}
    problems = [refuse_duplicate(plural, chosen[key].id) for key, alike in by_id.items() for _ in alike[1:]]
    return tuple(chosen.values()), sorted(problems, key=lambda problem: problem.place)


def refuse_duplicate(plural: str, identity: str) -> Problem:
    """Return the error for two entries with the same id."""
    return Problem(level="error", message=f"two {plural} have this id; remove one of them", place=identity)


@dataclass(frozen=True)
class PreparedSnapshot:
    """The subjects of a snapshot with the data that they share.

    Attributes:
        subjects: resources sorted by lower-case id, workloads, approvals, documents and gaps.
        document: the value of `input.snapshot`, as plain objects and lists that must not be changed; policies in Rego
            and in Python read the same.
        derivation: the derivation of its workloads.
        gaps: the incomplete lists of resources.
        covers: as in `Snapshot`, with the lists that count as complete because no more was requested.
    """

    subjects: list[Resource]
    document: JsonObject
    digest: str
    problems: tuple[Problem, ...]
    derivation: Derivation
    gaps: tuple[Gap, ...] = ()
    covers: tuple[str, ...] | None = None

    @cached_property
    def documents(self) -> list[JsonObject]:
        """The documents of the subjects, in the same order."""
        return [subject.document for subject in self.subjects]

    @cached_property
    def view(self) -> SnapshotView:
        """The same as `document`, for policies in Python."""
        return SnapshotView.from_document(self.document)


def estate_of(snapshot: Snapshot, facts: Facts) -> PreparedSnapshot:
    """Prepare a snapshot; the result does not depend on the order of its resources."""
    subjects, texts, problems = _read_resources(snapshot)
    resources = [subject.document for subject in subjects]
    position = {subject.key: index for index, subject in enumerate(subjects)}
    places = [place_in_arm(key) for key in position]
    for subject, place in zip(subjects, places, strict=True):
        subject.workspace = find_position(subject, place, position)
    approved, approved_twice = deduplicate(snapshot.approvals, "approvals")
    evidence, evidence_twice = deduplicate(snapshot.evidence, "entries of evidence")
    workloads_stated, stated_twice = deduplicate(snapshot.workloads, "declared workloads")
    workloads_stated = tuple(map(_with_tags_read, workloads_stated))
    sorted_snapshot = snapshot.model_copy(update={"resources": tuple(resources), "workloads": workloads_stated})
    derivation = derivation_of(sorted_snapshot, facts)
    derived = derivation.workloads()
    approvals_read = sorted(
        (approval_read(_plain(entry)) for entry in approved), key=lambda entry: str(entry.document["id"])
    )
    approvals = [entry.document for entry in approvals_read]
    problems += (problem for entry in approvals_read for problem in entry.problems)
    stated: dict[str, Any] = {
        "scope": snapshot.scope,
        "takenAt": snapshot.taken_at.isoformat().replace("+00:00", "Z") if snapshot.taken_at else None,
        "approvals": [{**entry, "type": "approval"} for entry in approvals],
        "quotas": sorted((_plain(entry) for entry in snapshot.quotas), key=orjson.dumps),
        "metrics": sorted((_plain(entry) for entry in snapshot.metrics), key=orjson.dumps),
        "principals": sorted((_plain(entry) for entry in snapshot.principals), key=orjson.dumps),
        "evidence": sorted((_plain(entry) for entry in evidence), key=lambda entry: lowered(entry["id"])),
        "incomplete": list_untyped_gaps(snapshot.incomplete),
    }
    declared = sorted((_plain(entry) for entry in workloads_stated), key=lambda entry: str(entry["id"]))
    unread = {"incomplete": list(snapshot.incomplete), "unreadable": snapshot.unreadable}
    digested = {**stated, **unread, "workloads": declared, "resources": list(map(orjson.Fragment, texts))}
    if not evidence:  # nor does the digest depend on this without any
        del digested["evidence"]
    digested["approvals"] = [_without_absent_model(entry) for entry in stated["approvals"]]
    if further := set(snapshot.covers or ()) - (set(EVERYTHING) if is_whole(snapshot.covers) else set()):
        digested["covers"] = sorted(further)
    if snapshot.carried:
        digested["carried"] = {key: _plain(entry) for key, entry in snapshot.carried.items()}
    documents, unreadable_documents = documents_of(snapshot)
    if documents:  # the digest of a snapshot without documents does not depend on this
        digested["documents"] = [[entry.name, orjson.Fragment(text)] for entry, text in documents]
    document = {
        **stated,
        "workloads": [workload.document for workload in derived],
        "resources": resources,
        "by_id": dict(zip(position, resources, strict=True)),
        "by_type": group_by_type(resources),
        **indices_of(zip(position, resources, places, strict=True), stated),
    }
    if documents:
        document["documents"] = [orjson.loads(text) for _, text in documents]
    gaps = gaps_in(snapshot.incomplete)
    return PreparedSnapshot(
        subjects=[
            *subjects,
            *_other_subjects(snapshot, derived, document, position),
            *(
                _document_subject(entry, content)
                for (entry, _), content in zip(documents, document.get("documents", ()), strict=True)
            ),
            *(_gap_subject(gap) for gap in gaps if not gap.is_stated),
        ],
        document=document,
        digest=hashlib.sha256(orjson.dumps(digested, option=orjson.OPT_SORT_KEYS)).hexdigest(),
        problems=(
            *problems,
            *approved_twice,
            *stated_twice,
            *evidence_twice,
            *unreadable_documents,
            *list_warnings(subjects, document, facts),
        ),
        derivation=derivation,
        gaps=gaps,
        covers=None if snapshot.covers is None else (*snapshot.covers, *list_bounded(snapshot.incomplete)),
    )


def _read_resources(snapshot: Snapshot) -> tuple[list[Resource], list[bytes], list[Problem]]:
    """Return the well-formed resources, sorted, with each id once, their canonical JSON, and problems."""
    rows: list[tuple[Resource, bytes]] = []
    problems: list[Problem] = []
    for resource in snapshot.resources:
        identity, kind = resource.get("id"), resource.get("type")
        if not (isinstance(identity, str) and identity and isinstance(kind, str) and kind):
            problems.append(Problem(level="error", message="a resource has no string `id` and `type`; add both"))
            continue
        key = lowered(identity)
        try:
            text = orjson.dumps(resource, option=orjson.OPT_SORT_KEYS)
            read = resource_read(resource, text)
            if read.document is not resource:
                text = orjson.dumps(read.document, option=orjson.OPT_SORT_KEYS)
            document = read.document if has_json_types(read.document) else orjson.loads(text)
            rows.append((resource_subject(key, document, Notes.of(snapshot, key), read.problems), text))
        except TypeError as error:
            problems.append(_not_evaluated(identity, error))
    if not is_within([subject.document for subject, _ in rows], MAX_DEPTH + 1):
        rows = [row for row in rows if _is_readable(*row, problems)]
    rows.sort(key=lambda row: (row[0].key, row[1]))
    unique: dict[str, Resource] = {}
    texts: list[bytes] = []
    for subject, text in rows:
        if unique.setdefault(subject.key, subject) is subject:
            texts.append(text)
        else:
            problems.append(refuse_duplicate("resources", unique[subject.key].reported_id))
    problems += (problem for subject in unique.values() for problem in subject.remarks)
    return list(unique.values()), texts, problems


def _is_readable(subject: Resource, text: bytes, problems: list[Problem]) -> bool:
    """Check whether a resource alone is JSON that a reader accepts; add a problem if it is not."""
    try:
        require_readable(subject.document, text, subject.reported_id)
    except InputError as error:
        problems.append(_not_evaluated(subject.reported_id, error))
        return False
    return True


def _not_evaluated(identity: str, error: Exception) -> Problem:
    return Problem(level="error", message=f"the resource cannot be evaluated: {error}", place=identity)


def has_json_types(value: object) -> bool:
    """Check whether a value has only types that a JSON parser gives; a program can use others."""
    values = [value]
    for each in values:
        kind = type(each)
        if kind is dict:
            values += each.values()  # type: ignore[attr-defined]  # as its type says
        elif kind is list:
            values += each  # type: ignore[arg-type]  # as its type says
        elif kind not in _SCALARS and not (kind is float and isfinite(each)):  # type: ignore[arg-type]  # as its type says
            return False
    return True


_SCALARS = frozenset((str, int, bool, NoneType))


def group_by_type(resources: Iterable[JsonObject]) -> dict[str, list[JsonObject]]:
    """Return resources by lower-case type, sorted by type."""
    by_type: dict[str, list[JsonObject]] = {}
    for resource in resources:
        by_type.setdefault(lowered(resource["type"]), []).append(resource)
    return dict(sorted(by_type.items()))


class Notes(NamedTuple):
    """The data about a resource that a snapshot contains in addition to it; the attributes are those of `Snapshot`."""

    unreadable: Mapping[str, str] = MappingProxyType({})
    carried: Carried | None = None
    origin: Origin | None = None

    @classmethod
    def of(cls, snapshot: Snapshot, key: str) -> Notes:
        """Return the notes of the resource with a lower-case id."""
        return cls(snapshot.unreadable.get(key, {}), snapshot.carried.get(key), snapshot.origins.get(key))


class Becomes(NamedTuple):
    """The later state of a resource, with its notes and problems; `resource` is None if it is removed."""

    resource: JsonObject | None
    notes: Notes = Notes()
    remarks: tuple[Problem, ...] = ()

    def read(self) -> Becomes:
        """Return the same with the resource as policies see it."""
        if self.resource is None:
            return self
        folded = resource_read(self.resource, orjson.dumps(self.resource))
        return self._replace(resource=folded.document, remarks=folded.problems)


def find_position(resource: Resource, place: ArmPlace, position: Mapping[str, int]) -> int:
    """Return the position of the workspace of a resource; `position` has those of resources by lower-case id."""
    return position[resource.key] if resource.target_type == WORKSPACE_TYPE else position.get(place.workspace or "", -1)


def resource_subject(key: str, document: JsonObject, notes: Notes, remarks: tuple[Problem, ...]) -> Resource:
    """Return a resource as a subject whose workspace is not known yet; `key` is its lower-case id."""
    return Resource(
        key=key,
        document=document,
        target_type=lowered(document["type"]),
        reported_id=document["id"],
        reported_type=document["type"],
        home=document["id"],
        unreadable=unreadable_read(notes.unreadable),
        location=_location(notes.origin),
        carried=notes.carried,
        remarks=remarks,
    )


def workload_subject(workload: Workload, position: Mapping[str, int], origin: Origin | None) -> Resource:
    """Return a workload as a subject; `position` has the positions of resources by lower-case id."""
    workspace = workload.document.get("workspaceId") or ""
    return Resource(
        key=lowered(workload.reported_id),
        document=workload.document,
        target_type="workload",
        reported_id=workload.reported_id,
        reported_type=workload.document.get("sourceType") or "workload",
        home=workload.reported_id if workload.reported_id.startswith("/") else workspace,
        workspace=position.get(lowered(workspace), -1),
        unreadable=unreadable_read(workload.unreadable),
        location=_location(origin),
        possible=workload.possible,
    )


def _document_subject(document: Document, content: Any) -> Resource:
    location = Location(file=document.file, line=document.line)
    return Resource(lowered(document.name), content, "document", document.name, "document", location=location)


def _gap_subject(gap: Gap) -> Resource:
    document, unread = {"id": gap.scope, "type": gap.kind}, f"not all of the type could be read: {gap.reason}"
    return Resource(
        key=lowered(gap.scope),
        document=document,
        target_type=lowered(gap.kind),
        reported_id=gap.scope,
        reported_type=gap.kind,
        home=gap.scope,
        unreadable={"": unread},
        is_gap=True,
    )


def _other_subjects(
    snapshot: Snapshot, derived: Iterable[Workload], document: JsonObject, position: Mapping[str, int]
) -> Iterator[Resource]:
    """Yield workloads, then approvals, in the order of the document of the snapshot."""
    origins = snapshot.origins
    for workload in derived:
        yield workload_subject(workload, position, origins.get(lowered(workload.reported_id)))
    for approval in document["approvals"]:
        key = lowered(approval["id"])
        location = _location(origins.get(key))
        yield Resource(key, approval, "approval", approval["id"], "approval", approval["scope"], location=location)


def _with_tags_read(workload: DeclaredWorkload) -> DeclaredWorkload:
    tags = tags_read(workload.tags)
    return workload if tags == workload.tags else workload.model_copy(update={"tags": tags})


def _location(origin: Origin | None) -> Location:
    if origin is None:
        return NOWHERE
    file = masked_message(origin.file) if "://" in origin.file else origin.file  # a URL can contain a password
    return Location(file=file, line=origin.line, column=origin.column, address=origin.names.address, fields={})


def _without_absent_model(approval: JsonObject) -> JsonObject:
    """Return an approval without `model` if it is not for one, so that digests of earlier versions stay the same."""
    return {key: value for key, value in approval.items() if key != "model" or value is not None}


def _plain(entry: Model) -> JsonObject:
    plain: JsonObject = orjson.loads(to_bytes(entry))
    return plain
