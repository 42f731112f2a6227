"""JSON Patches on the documents of a snapshot."""

from __future__ import annotations

import pytest

from policyeng.models import JsonObject, Snapshot
from policyeng.verify.mending.patching import GONE, Draft, Edit, Kind, applied, document_of
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
    draft = Draft(ESTATE)

    assert draft.do(PLACE, step)
    assert properties(applied(ESTATE, draft.edits)) == wanted
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
def test_what_cannot_be_performed_leaves_no_edit(step: JsonObject) -> None:
    """A number holds no members, what is not there is neither replaced nor removed, and a test fails."""
    draft = Draft(ESTATE)

    assert not draft.do(PLACE, step)
    assert draft.edits == ()


def test_what_changes_nothing_is_no_edit() -> None:
    """Setting what stands there."""
    draft = Draft(ESTATE)

    assert draft.do(PLACE, {"op": "replace", "path": "/properties/x", "value": 1})
    assert draft.edits == ()


def test_workloads_and_approvals_are_patched_as_they_are_stated() -> None:
    """What they cannot be does not apply."""
    moved = applied(ESTATE, [Edit("workload", "W-1", ({"op": "replace", "path": "/target", "value": "aks"},))])
    asked = applied(ESTATE, [Edit("approval", "A-1", ({"op": "replace", "path": "/status", "value": "requested"},))])
    wrong = applied(ESTATE, [Edit("workload", "w-1", ({"op": "replace", "path": "/target", "value": "moon"},))])

    assert moved is not None
    assert moved.workloads[0].target == "aks"
    assert asked is not None
    assert asked.approvals[0].status == "requested"
    assert wrong is None


def test_a_resource_is_taken_away_unless_a_declaration_names_it() -> None:
    """What is declared of it would be of nothing."""
    draft = Draft(ESTATE)
    named = snapshot(*ESTATE.resources, workloads=[{"id": "w", "sourceId": PLACE[1].upper()}])

    assert draft.do(PLACE, {"op": "remove", "path": ""})
    assert draft.edits[0].patch == GONE
    gone = applied(ESTATE, draft.edits)
    assert gone is not None
    assert gone.resources == ()
    assert not Draft(named).do(PLACE, {"op": "remove", "path": ""})


def test_documents_are_found_without_case() -> None:
    """As ids compare everywhere."""
    assert document_of(ESTATE, "resource", PLACE[1].upper()) == ESTATE.resources[0]
    assert document_of(ESTATE, "approval", "a-1") is not None
    assert document_of(ESTATE, "workload", "w-2") is None
