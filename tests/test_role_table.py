"""The effective actions of each Machine Learning role, worked out by hand from its definition.

`python -m tests.test_role_table` prints the table as the algebra has it.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from policyeng.bundle import load_bundle
from policyeng.facts.permissions import granted
from policyeng.models import JsonObject
from tests.probes import Probe

REAL = Path(__file__).resolve().parents[2] / "shared" / "real" / "rbac"
ML = "Microsoft.MachineLearningServices"
WS = f"{ML}/workspaces"
OPENAI = "Microsoft.CognitiveServices/accounts/OpenAI"

#: The columns, in the groups in which the rows below are written.
ACTIONS = (
    *(f"{WS}/{action}" for action in ("read", "write", "delete", "listKeys/action")),
    *(f"{WS}/computes/{action}" for action in ("read", "write", "delete")),
    *(f"{WS}/computes/{action}/action" for action in ("start", "stop", "restart", "listKeys")),
    *(f"{WS}/jobs/{action}" for action in ("read", "write")),
    *(f"{WS}/onlineEndpoints/{action}" for action in ("write", "score/action", "listKeys/action")),
    *(f"{WS}/{action}" for action in ("datastores/read", "datastores/listSecrets/action", "metadata/secrets/read")),
    *(f"{WS}/metrics/resource/write", f"{ML}/registries/assets/write", "Microsoft.Authorization/roleAssignments/write"),
)
DATA_ACTIONS = (f"{OPENAI}/deployments/chat/completions/action", f"{OPENAI}/fine-tunes-deployments/write")

#: By role, yes (y), no (-) or unknown (?): workspace, computes, jobs, endpoints, secrets, metrics, registry, role
#: assignments, and behind the bar the data plane. Where the result is not plain from the definition, why it is so.
BUILT_IN = {
    # `workspaces/*/read` takes `workspaces/read` in, and `computes/*/write` takes `computes/write` away; what starts
    # and stops a compute is left, and so are the keys of endpoints.
    "AzureML Data Scientist": "y--- y--yyy- yy yyy yyy y--|--",
    "AzureML Compute Operator": "---- yyyyyyy -- --- --- ---|--",
    "AzureML Metrics Writer (preview)": "---- ------- -- --- --- y--|--",
    "AzureML Registry User": "---- ------- -- --- --- -y-|--",
    "Azure Machine Learning Workspace Connection Secrets Reader": "---- ------- -- --- --y ---|--",
    # As the Data Scientist, but nothing takes computes away.
    "Azure AI Developer": "y--- yyyyyyy yy yyy yyy y--|y-",
    "Azure AI Administrator": "yyyy yyyyyyy yy yyy yyy y--|--",
    "Azure AI Safety Evaluator": "---- ------- -- --- --- ---|--",
    "Azure AI Inference Deployment Operator": "---- ------- -- --- --- ---|--",
    "Azure AI Enterprise Network Connection Approver": "y--- ------- -- --- --- ---|--",
    "Azure AI Enterprise Networking Outbound Rules Operator": "---- ------- -- --- --- ---|--",
    "Data Labeling - Labeler": "y--- ------- -- --- --- ---|--",
    "AI Model Scanner Operator": "y--- ------- -- --- y-- ---|--",
    "Foundry User": "---- ------- -- --- --- ---|y-",
    # Its only block carries a condition.
    "Foundry Project Manager": "---- ------- -- --- --- --?|?-",
    "Foundry Owner": "---- ------- -- --- --- --?|??",
}
GENERAL = {
    "Owner": "yyyy yyyyyyy yy yyy yyy yyy|--",
    # `Microsoft.Authorization/*/Write` takes the assignment of roles away.
    "Contributor": "yyyy yyyyyyy yy yyy yyy yy-|--",
    "Reader": "y--- y------ y- --- y-y ---|--",
    "User Access Administrator": "y--- y------ y- --- y-y --y|--",
    "Role Based Access Control Administrator": "y--- y------ y- --- y-y --y|--",
}
#: Roles that Microsoft's documentation gives as examples, by file.
CUSTOM = {
    # `workspaces/*/delete` takes the workspace's own deletion away.
    "custom_role_01": "y--y y--yyyy yy yyy yyy yy-|--",
    "custom_role_02": "y--- y--yyy- yy yyy yyy y--|--",
    "custom_role_03": "y--- y--yyy- y- --- y-y ---|--",
    "custom_role_04": "---- ------- -- --- --- ---|--",
    "custom_role_05": "y--- ------- -- --- y-y ---|--",
    # Only `workspaces/write` is taken away, so it deletes workspaces and assigns roles.
    "custom_role_06": "y-yy yyyyyyy yy yyy yyy y-y|--",
    "custom_role_07": "y--- ------- -- --- --- ---|--",
    "custom_role_08": "y--- ------- -- --- --- ---|--",
}
LETTERS = {True: "y", False: "-", None: "?"}


def shown(permissions: object) -> str:
    """The row of a role, as the table writes it."""
    row = "".join(LETTERS[granted(permissions, action)] for action in ACTIONS)
    cuts = (0, 4, 11, 13, 16, 19, 22)
    groups = " ".join(row[begin:end] for begin, end in itertools.pairwise(cuts))
    return f"{groups}|" + "".join(LETTERS[granted(permissions, action, data_action=True)] for action in DATA_ACTIONS)


def built_in() -> dict[str, JsonObject]:
    """The roles of the catalogue by name."""
    rows: dict[str, JsonObject] = load_bundle().facts.document["roles"]
    return {row["name"]: row for row in rows.values()}


def custom(file: str) -> list[JsonObject]:
    """The permissions of a published role, in either of the two forms that the documentation uses."""
    role = json.loads((REAL / "custom_roles_docs" / f"{file}.json").read_text(encoding="utf-8"))
    blocks: list[JsonObject] = role.get("properties", {}).get("permissions")
    return blocks or [{"actions": role["Actions"], "notActions": role["NotActions"]}]


@pytest.mark.parametrize(("name", "row"), [*BUILT_IN.items(), *GENERAL.items()])
def test_the_catalogues_roles_grant_what_their_definitions_state(name: str, row: str) -> None:
    """The rows were written from the definitions' text, not from results of the algebra."""
    assert shown(built_in()[name]["permissions"]) == row


@pytest.mark.parametrize(("name", "row"), BUILT_IN.items())
def test_the_vendors_own_definitions_give_the_same_rows(name: str, row: str) -> None:
    """Nothing is lost on the way from the vendor's list to the catalogue, conditions included."""
    listed = REAL / "azureml_builtin_roles_extracted.json"
    if not listed.is_file():
        pytest.skip("the vendor's role definitions next to the checkout are missing")
    (role,) = [role for role in json.loads(listed.read_text(encoding="utf-8")) if role["roleName"] == name]

    assert shown(role["permissions"]) == row


@pytest.mark.parametrize(("file", "row"), CUSTOM.items())
def test_published_custom_roles_grant_what_their_definitions_state(file: str, row: str) -> None:
    """The examples of Microsoft's documentation, two of which grant more than their descriptions state."""
    if not REAL.is_dir():
        pytest.skip("the real role definitions next to the checkout are missing")
    assert shown(custom(file)) == row


@pytest.mark.slow
def test_rego_has_the_same_table() -> None:
    """The library decides each action of each role of the catalogue as Python does."""
    grants = (
        "[entry.granted | some role in input.resource.roles; "
        "some entry in permissions.granted(role, input.resource.actions)]"
    )
    roles = [row["permissions"] for row in built_in().values()]
    (rego,) = Probe("permissions", granted=grants)({"id": "/x", "type": "t", "roles": roles, "actions": ACTIONS})[
        "granted"
    ]

    assert rego == [granted(role, action) for role in roles for action in ACTIONS]


def test_letter_case_makes_no_difference_to_any_row() -> None:
    """Azure compares actions without case."""
    for name, role in built_in().items():
        shouted = [
            {
                key: [entry.upper() for entry in value] if isinstance(value, list) else value
                for key, value in block.items()
            }
            for block in role["permissions"]
        ]
        assert shown(shouted) == shown(role["permissions"]), name


def main() -> None:
    """Print the table of all roles that are known here."""
    print("\n".join([*ACTIONS, *DATA_ACTIONS, ""]))  # noqa: T201  # printing is what it is for
    rows = {name: role["permissions"] for name, role in built_in().items()}
    rows |= {file: custom(file) for file in CUSTOM} if REAL.is_dir() else {}
    print("\n".join(f"{shown(permissions)}  {name}" for name, permissions in rows.items()))  # noqa: T201  # as above


if __name__ == "__main__":
    main()
