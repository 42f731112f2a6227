"""Declared workloads: more facts about work that ARM knows, or work that ARM does not know."""

from __future__ import annotations

from collections.abc import Sequence

from policyeng.facts.ids import name_of
from policyeng.models import DeclaredWorkload, JsonObject, read_only
from policyeng.named import NamedTuple
from policyeng.workloads.builder import FEATURES, NO_FEATURES, Tags, WorkloadDraft, as_one_run, documents_of
from policyeng.workloads.lookup import ResourceLookup, find_workspace
from policyeng.workloads.resolved import ABSENT, ResolvedValue, joined, undecided


class Workload(NamedTuple):
    """What runs where, in the form that policies judge.

    Attributes:
        document: the workload as a JSON object; a field that cannot be decided is null.
        reported_id: the ARM id of the resource it derives from, or the declared id.
        unreadable: reason by JSON Pointer into `document`, for each field that cannot be decided.
        possible: the only values that such a field may turn out to have, where that is known.
    """

    document: JsonObject
    reported_id: str
    unreadable: dict[str, str]
    possible: dict[str, frozenset[object]]


def derived_workload(draft: WorkloadDraft, additions: Sequence[DeclaredWorkload]) -> Workload:
    """Return the workload of an ARM resource, with what is declared about it.

    A declared fact counts where ARM does not say; where both say and differ the field is undecided. Features add up.
    Declared tags do not: a declaration must not loosen what the tags of a resource and its workspace decide.
    """
    source = draft.source
    answers: dict[str, ResolvedValue[object]] = {
        "/purpose": joined(draft.purpose, [one.purpose for one in additions], "purpose"),
        "/target": joined(draft.target, [one.target for one in additions], "target"),
        "/features": _features(draft.features, additions),
        "/accelerator": joined(draft.accelerator, [one.accelerator for one in additions], "accelerator"),
        "/memoryGiB": draft.memory_gib,
        "/computeId": draft.compute_id,
        **_list_stated_only(additions),
    }
    workspace_id = find_workspace(source.id)
    runs = draft.runs or (as_one_run(draft.target, draft.compute_id, draft.features),)
    return _workload(
        {
            "id": source.id,
            "sourceType": source.body.get("type"),
            "workspaceId": workspace_id,
            "name": name_of(source.id),
            "sourceId": source.id,
            "runs": documents_of(runs, additions),
        },
        answers | {"/workspaceId": ResolvedValue(workspace_id).or_reason("the id lies in no workspace")},
        draft.tags,
    )


def declared_workload(one: DeclaredWorkload, estate: ResourceLookup) -> Workload:
    """Return a workload that stands alone; what it does not say is undecided, never assumed."""
    source = estate.find(one.source_id) if one.source_id else None
    lost = bool(one.source_id) and source is None
    silent = "the declared workload does not say"
    where = f"its source `{one.source_id}` is not in the snapshot" if lost else ""
    why = f"{silent} and {where}" if lost else silent
    workspace_id = one.workspace_id or find_workspace(one.source_id or "")
    answers: dict[str, ResolvedValue[object]] = {
        "/purpose": ResolvedValue(one.purpose).or_reason(why),
        "/target": ResolvedValue(one.target).or_reason(why),
        "/features": _features(NO_FEATURES, [one]),
        "/accelerator": ResolvedValue(one.accelerator).or_reason(why),
        "/memoryGiB": ABSENT,
        "/computeId": ResolvedValue(reason=where),
        "/workspaceId": ResolvedValue(workspace_id).or_reason("the declared workload names no workspace"),
        "/sourceId": ResolvedValue(one.source_id if source else None, where),
        **_list_stated_only([one]),
    }
    fixed = {
        "id": one.id,
        "sourceType": source.body.get("type") if source else None,
        "name": one.id,
        "runs": documents_of(
            [as_one_run(ResolvedValue(one.target).or_reason(why), ABSENT, ResolvedValue(one.features))], []
        ),
    }
    return _workload(fixed, answers, Tags(ResolvedValue(dict(one.tags))))


def _list_stated_only(additions: Sequence[DeclaredWorkload]) -> dict[str, ResolvedValue[object]]:
    """Return the fields that ARM has no word for."""
    models = [one.model for one in additions if one.model]
    return {
        "/cadence": joined(ABSENT, [one.cadence for one in additions], "cadence"),
        "/model/sizeGiB": joined(ABSENT, [model.size_gib for model in models], "model size"),
        "/model/memoryGiB": joined(ABSENT, [model.memory_gib for model in models], "model memory"),
    }


def _features(known: ResolvedValue[tuple[str, ...]], additions: Sequence[DeclaredWorkload]) -> ResolvedValue[object]:
    if known.value is None:
        return undecided(known.reason)
    named = {*known.value, *(feature for one in additions for feature in one.features)}
    return ResolvedValue([feature for feature in FEATURES if feature in named])


def _workload(fixed: JsonObject, answers: dict[str, ResolvedValue[object]], tags: Tags) -> Workload:
    document: JsonObject = {"type": "workload", **fixed, "model": {}, "tags": tags.written.value}
    for pointer, answer in answers.items():
        parent, _, key = pointer[1:].rpartition("/")
        (document[parent] if parent else document)[key] = answer.value
    unreadable = {pointer: answer.reason for pointer, answer in answers.items() if answer.reason}
    if tags.written.reason:
        unreadable["/tags"] = tags.written.reason
    unreadable |= {f"/tags{pointer}": reason for pointer, reason in tags.gaps.items()}
    possible = {pointer: answer.among for pointer, answer in answers.items() if answer.among}
    return Workload(read_only(document), str(fixed["id"]), dict(sorted(unreadable.items())), possible)
