"""JSON Patches on the documents of a snapshot."""

from __future__ import annotations

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyeng.models import JsonObject, Snapshot
from policyeng.parsing.json_pointer import escaped
from policyeng.verify.json_patch import GONE, DocumentPatch, Kind, PatchBuilder, apply_edits, document_of
from tests.bundles import snapshot, workspace

PLACE: tuple[Kind, str] = ("resource", str(workspace()["id"]))
ESTATE = snapshot(
    workspace(x=1, none=None),
    approvals=[{"id": "A-1", "scope": "/subscriptions/s", "status": "granted"}],
    workloads=[{"id": "w-1", "target": "aci"}],
)


def properties(edited: Snapshot | None) -> object:
    """Those of the workspace."""
    assert edited is not None
    return edited.resources[0]["properties"]


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        ({"op": "add", "path": "/properties/y", "value": 2}, {"x": 1, "none": None, "y": 2}),
        ({"op": "add", "path": "/properties/a/b/c", "value": 2}, {"x": 1, "none": None, "a": {"b": {"c": 2}}}),
        ({"op": "add", "path": "/properties/none/b", "value": 2}, {"x": 1, "none": {"b": 2}}),
        ({"op": "replace", "path": "/properties/x", "value": 2}, {"x": 2, "none": None}),
        ({"op": "remove", "path": "/properties/x"}, {"none": None}),
    ],
)
def test_an_operation_makes_the_objects_that_it_leads_through(step: JsonObject, wanted: object) -> None:
    """The edit has them as operations of its own, so that any JSON Patch library can perform it."""
    draft = PatchBuilder(ESTATE)

    assert draft.do(PLACE, step)
    assert properties(apply_edits(ESTATE, draft.edits)) == wanted
    assert properties(ESTATE) == {"x": 1, "none": None}


@pytest.mark.parametrize(
    "step",
    [
        {"op": "add", "path": "/properties/x/y", "value": 2},
        {"op": "replace", "path": "/properties/y", "value": 2},
        {"op": "replace", "path": "/properties/a/b", "value": 2},
        {"op": "remove", "path": "/properties/y"},
        {"op": "test", "path": "/properties/x", "value": 2},
        {"op": "test", "path": "/properties/y", "value": None},
    ],
)
def test_impossible_operations_leave_no_edit(step: JsonObject) -> None:
    """A number has no members, a missing value is neither replaced nor removed, and a test fails."""
    draft = PatchBuilder(ESTATE)

    assert not draft.do(PLACE, step)
    assert draft.edits == ()


def test_an_operation_without_effect_is_no_edit() -> None:
    """Setting the current value."""
    draft = PatchBuilder(ESTATE)

    assert draft.do(PLACE, {"op": "replace", "path": "/properties/x", "value": 1})
    assert draft.edits == ()


def test_workloads_and_approvals_are_patched_as_they_are_stated() -> None:
    """Impossible ones do not apply."""
    moved = apply_edits(
        ESTATE, [DocumentPatch("workload", "W-1", ({"op": "replace", "path": "/target", "value": "aks"},))]
    )
    requested = apply_edits(
        ESTATE, [DocumentPatch("approval", "A-1", ({"op": "replace", "path": "/status", "value": "requested"},))]
    )
    wrong = apply_edits(
        ESTATE, [DocumentPatch("workload", "w-1", ({"op": "replace", "path": "/target", "value": "moon"},))]
    )

    assert moved is not None
    assert moved.workloads[0].target == "aks"
    assert requested is not None
    assert requested.approvals[0].status == "requested"
    assert wrong is None


def test_a_resource_is_taken_away_unless_a_declaration_names_it() -> None:
    """Declarations about it would be of nothing."""
    draft = PatchBuilder(ESTATE)
    named = snapshot(*ESTATE.resources, workloads=[{"id": "w", "sourceId": PLACE[1].upper()}])

    assert draft.do(PLACE, {"op": "remove", "path": ""})
    assert draft.edits[0].patch == GONE
    gone = apply_edits(ESTATE, draft.edits)
    assert gone is not None
    assert gone.resources == ()
    assert not PatchBuilder(named).do(PLACE, {"op": "remove", "path": ""})


def test_documents_are_found_without_case() -> None:
    """As ids compare everywhere."""
    assert document_of(ESTATE, "resource", PLACE[1].upper()) == ESTATE.resources[0]
    assert document_of(ESTATE, "approval", "a-1") is not None
    assert document_of(ESTATE, "workload", "w-2") is None


def test_workloads_are_patched_as_their_file_has_them() -> None:
    """A value that is not stated cannot be replaced, so that the patch fits the file, too."""
    assert document_of(ESTATE, "workload", "w-1") == {"id": "w-1", "target": "aci"}
    assert not PatchBuilder(ESTATE).do(("workload", "w-1"), {"op": "replace", "path": "/workspace", "value": "w"})


def places_in(value: object, path: str = "") -> list[str]:
    """The pointers of everything below a value."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inside = [(f"{path}/{escaped(str(key))}", inner) for key, inner in entries]
    return [found for at, inner in inside for found in (at, *places_in(inner, at))]


def without(value: object, gone: set[str], path: str = "") -> object:
    """A value without the values at some pointers, which are all those of the whole value."""
    if isinstance(value, dict):
        paths = {key: f"{path}/{escaped(key)}" for key in value}
        return {key: without(inner, gone, paths[key]) for key, inner in value.items() if paths[key] not in gone}
    if isinstance(value, list):
        kept = [(f"{path}/{index}", inner) for index, inner in enumerate(value)]
        return [without(inner, gone, at) for at, inner in kept if at not in gone]
    return value


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(["a", "b/c", "~", "0"]), st.recursive(st.integers(0, 3), st.lists, max_leaves=20)),
    st.data(),
)
def test_removals_in_one_edit_take_away_what_each_takes_alone(body: JsonObject, data: st.DataObject) -> None:
    """Entries of a list move up when one before them goes; a tool that performs one after the other sees that."""
    estate = snapshot(workspace(**body))
    places = [f"/properties{path}" for path in places_in(body)]
    chosen = data.draw(st.lists(st.sampled_from(places), min_size=1, unique=True)) if places else []
    drafts = [PatchBuilder(estate) for _ in chosen]
    assert all(draft.do(PLACE, {"op": "remove", "path": path}) for draft, path in zip(drafts, chosen, strict=True))

    edits = PatchBuilder.joined(drafts).edits if drafts else ()

    expected = without(estate.resources[0], set(chosen))
    assert properties(apply_edits(estate, edits)) == expected["properties"] if isinstance(expected, dict) else False
    assert all(jsonpatch.apply_patch(estate.resources[0], list(edit.patch)) == expected for edit in edits)


def test_what_one_edit_makes_room_for_the_other_does_not_clear() -> None:
    """Two fields of an object that is not there yet."""
    drafts = [PatchBuilder(ESTATE), PatchBuilder(ESTATE)]
    for draft, name in zip(drafts, "bc", strict=True):
        assert draft.do(PLACE, {"op": "add", "path": f"/properties/a/{name}", "value": name})

    edits = PatchBuilder.joined(drafts).edits

    assert properties(apply_edits(ESTATE, edits)) == {"x": 1, "none": None, "a": {"b": "b", "c": "c"}}
