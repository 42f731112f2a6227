"""Role assignments and definitions: every form is brought into ARM's own."""

from __future__ import annotations

import pytest

from policyeng.models import JsonObject
from policyeng.sources import FORMATS, arm_rest, role_assignments
from policyeng.sources.parsed import Placed

SUBSCRIPTION = "/subscriptions/11111111-1111-1111-1111-111111111111"
ROLE = "f6c7c914-8db3-469d-8ca1-694a8f32e121"
ASSIGNMENT: JsonObject = {
    "canDelegate": None,
    "condition": None,
    "id": f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleAssignments/22222222-2222-2222-2222-222222222222",
    "name": "22222222-2222-2222-2222-222222222222",
    "principalId": "p",
    "principalName": "a@example.com",
    "principalType": "User",
    "roleDefinitionId": f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{ROLE}",
    "roleDefinitionName": "AzureML Data Scientist",
    "scope": SUBSCRIPTION,
    "type": "Microsoft.Authorization/roleAssignments",
}
DEFINITION: JsonObject = {
    "assignableScopes": ["/"],
    "description": "d",
    "id": f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{ROLE}",
    "name": ROLE,
    "permissions": [{"actions": ["*/read"], "condition": None, "dataActions": [], "notActions": None}],
    "roleName": "Reader of things",
    "roleType": "BuiltInRole",
    "type": "Microsoft.Authorization/roleDefinitions",
}
WRITTEN: JsonObject = {
    "Name": "Data Scientist Custom",
    "IsCustom": True,
    "Description": "d",
    "Actions": ["*"],
    "NotActions": ["Microsoft.Authorization/*/write"],
    "AssignableScopes": [f"{SUBSCRIPTION}/resourceGroups/rg"],
}


def only(document: object) -> Placed:
    """The one resource of a document that detection gives to this format."""
    assert next(name for name, reader in FORMATS.items() if reader.detect(document)) == "role-access"
    reading = role_assignments.read(document)
    assert reading.refusals == ()
    [placed] = reading.resources
    return placed


def test_a_listed_assignment_is_brought_into_arm_shape() -> None:
    """Flat members of `az role assignment list` are under `properties`; names that ARM has not are left out."""
    placed = only([ASSIGNMENT])

    assert placed == Placed(
        {
            "id": ASSIGNMENT["id"],
            "name": ASSIGNMENT["name"],
            "type": "Microsoft.Authorization/roleAssignments",
            "properties": {
                "roleDefinitionId": ASSIGNMENT["roleDefinitionId"],
                "principalId": "p",
                "scope": SUBSCRIPTION,
                "principalType": "User",
            },
        },
        "/0",
        {},
    )


def test_a_condition_is_kept() -> None:
    """A condition narrows an assignment, so it is never dropped."""
    assert only([{**ASSIGNMENT, "condition": "@x"}]).resource["properties"]["condition"] == "@x"


def test_a_missing_principal_type_is_unreadable() -> None:
    """Old lists do not state the type of the principal; that is not the same as having none."""
    entry = {key: value for key, value in ASSIGNMENT.items() if key != "principalType"}

    assert only([entry]).unreadable == {
        "/properties/principalType": "the list does not state the type of the principal"
    }


def test_a_listed_definition_is_brought_into_arm_shape() -> None:
    """The flat members that `az role definition list` prints are under `properties`, with all four lists of actions."""
    assert only({"value": [DEFINITION]}) == Placed(
        {
            "id": DEFINITION["id"],
            "name": ROLE,
            "type": "Microsoft.Authorization/roleDefinitions",
            "properties": {
                "roleName": "Reader of things",
                "type": "BuiltInRole",
                "description": "d",
                "assignableScopes": ["/"],
                "permissions": [{"actions": ["*/read"], "notActions": [], "dataActions": [], "notDataActions": []}],
            },
        },
        "/value/0",
        {},
    )


@pytest.mark.parametrize(
    ("change", "identity"),
    [
        (
            {},
            f"{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Authorization/roleDefinitions/Data Scientist Custom",
        ),
        ({"AssignableScopes": ["/"]}, "/providers/Microsoft.Authorization/roleDefinitions/Data Scientist Custom"),
        ({"Id": ROLE, "AssignableScopes": ["/"]}, f"/providers/Microsoft.Authorization/roleDefinitions/{ROLE}"),
        ({"Name": "a/b", "AssignableScopes": ["/"]}, "/providers/Microsoft.Authorization/roleDefinitions/a-b"),
    ],
)
def test_a_written_role_gets_an_id_that_names_its_origin(change: JsonObject, identity: str) -> None:
    """Its first assignable scope, then its GUID where it has one, else its name."""
    assert only({**WRITTEN, **change}).resource["id"] == identity


def test_a_written_role_is_brought_into_arm_shape() -> None:
    """Keys of any case are read, and an omitted one is an empty list."""
    folded = {key[0].lower() + key[1:]: value for key, value in WRITTEN.items()}

    assert only(folded) == only(WRITTEN)
    assert only(WRITTEN).resource["properties"] == {
        "roleName": "Data Scientist Custom",
        "type": "CustomRole",
        "description": "d",
        "assignableScopes": WRITTEN["AssignableScopes"],
        "permissions": [
            {
                "actions": ["*"],
                "notActions": ["Microsoft.Authorization/*/write"],
                "dataActions": [],
                "notDataActions": [],
            }
        ],
    }


def test_a_role_that_states_it_is_built_in_is() -> None:
    """`IsCustom: false` is what PowerShell prints for Azure's own roles."""
    assert only({**WRITTEN, "IsCustom": False}).resource["properties"]["type"] == "BuiltInRole"


def test_a_request_body_of_a_role_is_a_custom_role() -> None:
    """`properties` with a role name and permissions is how a role is created through REST."""
    properties = {"roleName": "r", "assignableScopes": [SUBSCRIPTION], "permissions": [{"actions": ["a"]}]}
    placed = only({"properties": properties})

    assert placed.resource["id"] == f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/r"
    assert placed.resource["properties"]["type"] == "CustomRole"


def test_a_placeholder_scope_leaves_the_rest_readable() -> None:
    """A role is written before it has a scope; its permissions can be evaluated, its scopes cannot."""
    placed = only({**WRITTEN, "AssignableScopes": ["/subscriptions/<id>"]})

    assert placed.unreadable == {"/properties/assignableScopes": "`/subscriptions/<id>` contains a placeholder"}


def test_arm_form_is_read_with_the_others() -> None:
    """Alone it is an ARM response; in one list with flat entries it is taken as it is."""
    in_arm_form = only([ASSIGNMENT]).resource

    assert arm_rest.detect([in_arm_form])
    assert not role_assignments.detect([in_arm_form])
    assert [placed.resource for placed in role_assignments.read([DEFINITION, in_arm_form]).resources][1] is in_arm_form


REFUSED: dict[str, tuple[JsonObject, str, str]] = {
    "an assignment without scope": (
        {**ASSIGNMENT, "scope": None},
        "a role assignment without `scope`",
        "add `scope`",
    ),
    "an assignment without id": (
        {key: value for key, value in ASSIGNMENT.items() if key != "id"},
        "a role assignment without `id`",
        "add `id` as a string",
    ),
    "an assignment with the id of a definition": (
        {**ASSIGNMENT, "id": DEFINITION["id"]},
        "`id` has the type `Microsoft.Authorization/roleDefinitions`",
        "correct the one that is wrong",
    ),
    "a role without name": ({**WRITTEN, "Name": ""}, "a role definition without a role name", "give it a name"),
    "a role without scopes": ({**WRITTEN, "AssignableScopes": []}, "has no list of assignable scopes", "as a list of"),
    "a role with text for actions": (
        {**WRITTEN, "Actions": "*"},
        "has actions that are not lists of strings",
        "as lists",
    ),
    "permissions that are no list": ({**DEFINITION, "permissions": {}}, "has actions that are not lists", "as lists"),
    "a permission that is text": ({**DEFINITION, "permissions": ["*"]}, "has actions that are not lists", "as lists"),
    "a definition with a short id": ({**DEFINITION, "id": ROLE}, "`id` is not the full ARM id", "give it as"),
    "something else": ({"properties": {}}, "a request body or a part of a resource", "REST API"),
}


@pytest.mark.parametrize(("entry", "message", "remedy"), REFUSED.values(), ids=REFUSED)
def test_faulty_entries_are_refused(entry: JsonObject, message: str, remedy: str) -> None:
    """One entry that is wrong is refused with its pointer; its neighbour is read."""
    reading = role_assignments.read([ASSIGNMENT, entry])
    [refusal] = reading.refusals

    assert len(reading.resources) == 1
    assert refusal.place == "/1"
    assert message in refusal.message
    assert remedy in refusal.remedy
