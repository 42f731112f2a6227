"""`policyeng.facts.roles`: which actions an assignment grants at which resource, as yes, no or unknown."""

from __future__ import annotations

import pytest

from policyeng.bundle import load_bundle
from policyeng.facts import roles
from policyeng.models import WORKSPACE_TYPE, JsonObject

FACTS = load_bundle().facts
SUBSCRIPTION = "/subscriptions/11111111-1111-1111-1111-111111111111"
GROUP = f"{SUBSCRIPTION}/resourceGroups/rg-ml"
WORKSPACE = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/ws"
COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"
MANAGEMENT_GROUP = "/providers/Microsoft.Management/managementGroups/mg"
CONTRIBUTOR = "b24988ac-6180-42a0-ab88-20f7382dd24c"


def assignment(scope: object, role: str = CONTRIBUTOR, **properties: object) -> JsonObject:
    """An assignment of a role."""
    body = {"scope": scope, "roleDefinitionId": f"/x/{role}", **properties}
    return {"id": f"{GROUP}/providers/Microsoft.Authorization/roleAssignments/a", "properties": body}


def answers(given: JsonObject, arm_id: str = WORKSPACE, *definitions: JsonObject) -> list[bool | None]:
    """What an assignment grants: starting and reading a compute."""
    by_id = {str(one["id"]).lower(): one for one in definitions}
    by_guid: dict[str, list[str]] = {}
    for key in by_id:
        by_guid.setdefault(roles.guid_of(key), []).append(key)
    assigned = roles.assigned_roles(given, by_id, by_guid, FACTS)
    said = roles.granted_at(given, [f"{COMPUTES}/start/action", f"{COMPUTES}/read"], arm_id, assigned)
    assert list(said) == [f"{COMPUTES}/start/action", f"{COMPUTES}/read"]
    return list(said.values())


@pytest.mark.parametrize(
    ("scope", "arm_id", "reached"),
    [
        ("/", WORKSPACE, True),
        (SUBSCRIPTION, WORKSPACE, True),
        (SUBSCRIPTION[:-1], WORKSPACE, False),
        (GROUP, WORKSPACE, True),
        (f" {GROUP.upper()}/ ", WORKSPACE, True),
        (f"{GROUP}-2", WORKSPACE, False),
        (GROUP[:-1], WORKSPACE, False),
        (WORKSPACE, WORKSPACE, True),
        (f"{WORKSPACE}-2", WORKSPACE, False),
        (WORKSPACE, f"{WORKSPACE}-2", False),
        (f"{WORKSPACE}/computes/c", WORKSPACE, False),
        (WORKSPACE, f"{WORKSPACE}/computes/c", True),
        (f"{WORKSPACE}/computes/c", f"{WORKSPACE}/computes/c", True),
        (MANAGEMENT_GROUP, WORKSPACE, None),
        (MANAGEMENT_GROUP, MANAGEMENT_GROUP, True),
        ("subscriptions", WORKSPACE, None),
        (7, WORKSPACE, None),
        (None, WORKSPACE, True),
        ("", f"{GROUP}/providers/a.b/c/d", True),
    ],
)
def test_an_assignment_reaches_what_is_at_or_under_its_scope(scope: object, arm_id: str, reached: bool | None) -> None:
    """By whole segments; no id tells the members of a management group, and an unreadable scope tells nothing."""
    assert roles.reaches(assignment(scope), arm_id) is reached
    assert answers(assignment(scope), arm_id) == [reached, reached]


def test_what_the_role_does_not_grant_is_granted_nowhere() -> None:
    """A scope that cannot be told leaves open only what the role grants."""
    reader = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
    assert answers(assignment(WORKSPACE, reader)) == [False, True]
    assert answers(assignment(MANAGEMENT_GROUP, reader)) == [False, None]


def test_a_condition_leaves_open_what_is_granted() -> None:
    """It could take it away; it never gives anything."""
    assert answers(assignment(WORKSPACE, condition="@Resource[x]")) == [None, None]
    assert answers(assignment(WORKSPACE, condition=" ")) == [True, True]
    assert answers(assignment(f"{WORKSPACE}-2", condition="@Resource[x]")) == [False, False]


def test_a_role_that_nobody_knows_leaves_everything_open() -> None:
    """But not where it does not reach."""
    assert answers(assignment(WORKSPACE, "nobody")) == [None, None]
    assert answers(assignment(f"{GROUP}-2", "nobody")) == [False, False]


def test_a_role_that_acts_elsewhere_grants_nothing_here() -> None:
    """Known by name alone."""
    role = FACTS.role("Key Vault Administrator")
    assert role is not None
    assert answers(assignment(WORKSPACE, role.guid.upper())) == [False, False]


def test_definitions_of_the_snapshot_go_first_and_all_count() -> None:
    """A role may be defined in several subscriptions."""
    reads = {"id": f"/a/{CONTRIBUTOR}", "properties": {"permissions": [{"actions": ["*/read"]}]}}
    starts = {"id": f"/b/{CONTRIBUTOR.upper()}", "properties": {"permissions": [{"actions": ["*/action"]}]}}
    broken = {"id": f"/c/{CONTRIBUTOR}", "properties": {"permissions": None}}
    assert answers(assignment(WORKSPACE), WORKSPACE, reads) == [False, True]
    assert answers(assignment(WORKSPACE), WORKSPACE, reads, starts) == [True, True]
    assert answers(assignment(WORKSPACE), WORKSPACE, reads, broken) == [None, True]


@pytest.mark.parametrize("workspaces", [[], ["ws"], ["other"], ["other", "ws"]])
@pytest.mark.parametrize("scope", ["/", SUBSCRIPTION, GROUP, f"{GROUP}-2", WORKSPACE, f"{WORKSPACE}/computes/c"])
def test_reaching_a_workspace_is_reaching_one_of_the_snapshot(scope: str, workspaces: list[str]) -> None:
    """Where the snapshot has workspaces, the index says what the ids say."""
    ids = [f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/{name}" for name in workspaces]
    by_scope = {
        above.lower(): {WORKSPACE_TYPE: [arm_id.lower() for arm_id in ids if arm_id.startswith(above)]}
        for above in (SUBSCRIPTION, GROUP, *ids)
        if ids
    }
    by_scope = {above: held for above, held in by_scope.items() if held[WORKSPACE_TYPE]}
    reached = roles.reaches_workspace(assignment(scope), by_scope, {WORKSPACE_TYPE: [{"id": one} for one in ids]})

    if ids or scope in ("/", SUBSCRIPTION, GROUP, WORKSPACE):
        assert reached is (any(roles.reaches(assignment(scope), one) for one in ids) if ids else True)


@pytest.mark.parametrize(
    ("names", "entries", "listed"),
    [
        ([CONTRIBUTOR], [f"/subscriptions/s/x/{CONTRIBUTOR.upper()}"], True),
        ([" owner"], ["OWNER "], True),
        (["", "r"], ["", "/"], False),
        (["owner"], [], False),
    ],
)
def test_a_role_is_listed_by_name_guid_or_id(names: list[str], entries: list[str], listed: bool) -> None:
    """A blank entry lists nobody."""
    assert roles.is_listed(names, entries) is listed
