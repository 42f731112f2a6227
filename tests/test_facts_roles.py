"""`policyeng.facts.roles`: where an assignment reaches, and which actions it grants there, as yes, no or unknown."""

from __future__ import annotations

import pytest

from policyeng.bundle import load_bundle
from policyeng.facts import roles
from policyeng.facts.ids import guid_of, is_at_or_under
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


def granted(given: JsonObject, *definitions: JsonObject) -> list[list[bool | None]]:
    """What each role of an assignment grants: starting and reading a compute."""
    by_id = {str(one["id"]).lower(): one for one in definitions}
    by_guid: dict[str, list[str]] = {}
    for key in by_id:
        by_guid.setdefault(guid_of(key), []).append(key)
    assigned = roles.assigned_roles(given, by_id, by_guid, FACTS)
    actions = (f"{COMPUTES}/start/action", f"{COMPUTES}/read")
    return [[roles.granted_by(given, role, action) for action in actions] for role in assigned]


def parts(arm_id: str) -> tuple[str, ...]:
    """The segments of an id, in lower case."""
    return tuple(arm_id.lower().split("/")[1:])


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("/", ()),
        (SUBSCRIPTION, parts(SUBSCRIPTION)),
        (f" {GROUP.upper()}/ ", parts(GROUP)),
        (MANAGEMENT_GROUP, parts(MANAGEMENT_GROUP)),
        ("subscriptions", None),
        (7, None),
        (None, parts(GROUP)),
        (" ", parts(GROUP)),
    ],
)
def test_the_scope_is_stated_or_precedes_the_assignment(scope: object, expected: tuple[str, ...] | None) -> None:
    """One that cannot be read is none."""
    assert roles.scope_of(assignment(scope)) == expected


def test_a_role_grants_its_permissions() -> None:
    """Of built-in roles the catalogue's."""
    assert granted(assignment(WORKSPACE)) == [[True, True]]
    assert granted(assignment(WORKSPACE, "acdd72a7-3385-48ef-bd42-f606fba81ae7")) == [[False, True]]


def test_a_condition_leaves_open_what_is_granted() -> None:
    """It could take it away; it never gives anything."""
    assert granted(assignment(WORKSPACE, condition="@Resource[x]")) == [[None, None]]
    assert granted(assignment(WORKSPACE, condition=" ")) == [[True, True]]
    reader = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
    assert granted(assignment(WORKSPACE, reader, condition="@Resource[x]")) == [[False, None]]


def test_an_unknown_role_is_none() -> None:
    """What it grants is for the policy to leave open."""
    assert granted(assignment(WORKSPACE, "nobody")) == []


def test_a_role_that_acts_elsewhere_grants_nothing_here() -> None:
    """Known by name alone."""
    role = FACTS.role("Key Vault Administrator")
    assert role is not None
    assert granted(assignment(WORKSPACE, role.guid.upper())) == [[False, False]]


def test_all_definitions_of_a_role_count() -> None:
    """A role may be defined in several subscriptions."""
    reads = {"id": "/a/custom", "properties": {"permissions": [{"actions": ["*/read"]}]}}
    starts = {"id": "/b/CUSTOM", "properties": {"permissions": [{"actions": ["*/action"]}]}}
    broken = {"id": "/c/custom", "properties": {"permissions": None}}
    assert granted(assignment(WORKSPACE, "custom"), reads) == [[False, True]]
    assert granted(assignment(WORKSPACE, "custom"), reads, starts) == [[False, True], [True, False]]
    assert granted(assignment(WORKSPACE, "custom"), reads, broken) == [[False, True], [None, None]]


def test_nobody_defines_a_built_in_role() -> None:
    """What a snapshot says of it changes nothing."""
    reads = {"id": f"/a/{CONTRIBUTOR}", "properties": {"permissions": [{"actions": ["*/read"]}]}}
    assert granted(assignment(WORKSPACE), reads) == granted(assignment(WORKSPACE))


@pytest.mark.parametrize("workspaces", [[], ["ws"], ["other"], ["other", "ws"]])
@pytest.mark.parametrize("scope", ["/", SUBSCRIPTION, GROUP, f"{GROUP}-2", WORKSPACE, f"{WORKSPACE}/computes/c"])
def test_reaching_a_workspace_is_reaching_one_of_the_snapshot(scope: str, workspaces: list[str]) -> None:
    """Where the snapshot has workspaces, the index decides as the ids do."""
    ids = [f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/{name}" for name in workspaces]
    by_scope = {
        above.lower(): {WORKSPACE_TYPE: [arm_id.lower() for arm_id in ids if arm_id.startswith(above)]}
        for above in (SUBSCRIPTION, GROUP, *ids)
        if ids
    }
    by_scope = {above: resources for above, resources in by_scope.items() if resources[WORKSPACE_TYPE]}
    reached = roles.reaches_workspace(assignment(scope), by_scope, {WORKSPACE_TYPE: [{"id": one} for one in ids]})

    if ids or scope in ("/", SUBSCRIPTION, GROUP, WORKSPACE):
        assert reached is (any(is_at_or_under(one, scope) for one in ids) if ids else True)


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
    """A blank entry lists no one."""
    assert roles.is_listed(names, entries) is listed
