"""ARM REST responses: resources as they come, lists, and bodies without any."""

from __future__ import annotations

import pytest

from policyeng.facts.ids import types_of
from policyeng.models import JsonObject
from policyeng.sources import arm_rest, native, role_assignments

GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
WORKSPACE = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/ws"
RESOURCE: JsonObject = {
    "id": WORKSPACE,
    "type": "Microsoft.MachineLearningServices/workspaces",
    "properties": {"publicNetworkAccess": "Disabled"},
}
COMPUTE: JsonObject = {
    "id": f"{WORKSPACE}/computes/cpu",
    "type": "microsoft.machinelearningservices/WORKSPACES/computes",
    "properties": {"computeType": "AmlCompute"},
}


@pytest.mark.parametrize(
    ("document", "pointers"),
    [
        (RESOURCE, [""]),
        ([RESOURCE, COMPUTE], ["/0", "/1"]),
        ({"value": [RESOURCE, COMPUTE]}, ["/value/0", "/value/1"]),
        ({"value": [RESOURCE], "nextLink": None}, ["/value/0"]),
        ({"value": []}, []),
        ([], []),
        ({"parameters": {}, "responses": {"200": {"body": RESOURCE}}}, ["/responses/200/body"]),
        (
            {"parameters": {}, "responses": {"201": {"body": 1}, "200": {"body": {"value": [RESOURCE]}}}},
            ["/responses/200/body/value/0"],
        ),
        ({"parameters": {}, "responses": {"202": {}, "201": {"body": RESOURCE}}}, ["/responses/201/body"]),
    ],
)
def test_resources_are_taken_with_their_pointers(document: object, pointers: list[str]) -> None:
    """One resource, a list, a bare list and a file of examples of the API are read; nothing is copied."""
    reading = arm_rest.read(document)

    assert arm_rest.detect(document)
    assert [placed.pointer for placed in reading.resources] == pointers
    assert all(placed.resource in (RESOURCE, COMPUTE) for placed in reading.resources)
    assert (reading.refusals, reading.truncated) == ((), "")


def test_a_next_link_leaves_the_list_incomplete() -> None:
    """A page is not the whole list, and the reading states it."""
    assert "nextLink" in arm_rest.read({"value": [RESOURCE], "nextLink": "https://x"}).truncated


def test_a_missing_type_is_read_off_the_id() -> None:
    """A full ARM id names the type; the document itself is not changed."""
    entry = {key: value for key, value in COMPUTE.items() if key != "type"}
    [placed] = arm_rest.read(entry).resources

    assert placed.resource["type"] == "Microsoft.MachineLearningServices/workspaces/computes"
    assert "type" not in entry


@pytest.mark.parametrize("extra", [{}, {"properties": None}, {"tags": {}, "resourceGroup": "rg-ml", "sku": None}])
def test_missing_properties_are_unreadable(extra: JsonObject) -> None:
    """A listing without `properties` does not mean that the settings are absent."""
    [placed] = arm_rest.read({"id": WORKSPACE, "type": RESOURCE["type"], **extra}).resources

    assert placed.unreadable == {"/properties": "the document lists the resource without its `properties`"}


REFUSED: dict[str, tuple[object, str, str, str, bool]] = {
    "an error response": (
        {"error": {"code": "NotFound"}},
        "",
        "an error response (`NotFound`)",
        "save its response",
        False,
    ),
    "keys": ({"primaryKey": "x"}, "", "a response with keys or tokens", "leave it out", True),
    "a token": (
        {"tokenType": "Bearer", "scope": "x"},
        "",
        "a response with keys or tokens",
        "leave it out",
        True,
    ),
    "an operation": ({"status": "Succeeded"}, "", "the status of an operation", "operation is complete", True),
    "an example without a body": (
        {"parameters": {}, "responses": {}},
        "",
        "responses have no body",
        "with a body",
        True,
    ),
    "a request body": (
        {"name": "ws", "properties": {}},
        "",
        "a request body or a part of a resource",
        "REST API",
        False,
    ),
    "a child cut out": (
        [RESOURCE, {"properties": {}}],
        "/1",
        "a request body or a part of a resource",
        "REST API",
        False,
    ),
    "a placeholder id": ({**RESOURCE, "id": "string"}, "", "`id` or `type` is a placeholder", "with a value", False),
    "a placeholder type": (
        {**RESOURCE, "type": "string"},
        "",
        "`id` or `type` is a placeholder",
        "with a value",
        False,
    ),
    "braces in the id": ({**RESOURCE, "id": WORKSPACE + "{x}"}, "", "is a placeholder", "with a value", False),
    "a short id": (
        {**RESOURCE, "id": "ws"},
        "",
        "`id` is not the full ARM id of a resource: `ws`",
        "give it as",
        False,
    ),
    "an id without slash": ({**RESOURCE, "id": WORKSPACE[1:]}, "", "`id` is not the full ARM id", "give it as", False),
    "an id with a slash too many": (
        {**RESOURCE, "id": WORKSPACE + "/"},
        "",
        "is not the full ARM id",
        "give it",
        False,
    ),
    "id and type that disagree": (
        {**RESOURCE, "type": "workspace/outboundRules"},
        "",
        "`id` has the type `Microsoft.MachineLearningServices/workspaces`, but `type` is `workspace/outboundRules`",
        "correct the one that is wrong",
        False,
    ),
    "a type that is a number": ({**RESOURCE, "type": 1}, "", "but `type` is `1`", "correct the one", False),
    "properties that are text": ({**RESOURCE, "properties": "[x]"}, "", "`properties` is a string", "REST API", False),
    "a flattened listing": (
        [RESOURCE, {"id": COMPUTE["id"], "type": COMPUTE["type"], "vmSize": "x"}],
        "/1",
        "a flattened listing: `vmSize` is next to `id`",
        "REST API",
        False,
    ),
    "an exported list": (
        [{"type": RESOURCE["type"], "apiVersion": "2023-04-01", "ResourceId": WORKSPACE, "properties": {}}],
        "/0",
        "a resource without `id`",
        "rename `ResourceId` to `id`",
        False,
    ),
    "quotas": (
        {"value": [{"id": "/subscriptions/x/quotas/f", "type": "A/quotas", "limit": 1, "unit": "Count"}] * 3},
        "/value/0",
        "a quota or usage entry, not a resource (same for the next 2)",
        "list quotas under `quotas` in a native snapshot",
        True,
    ),
    "sizes": (
        {"value": [{"name": "s", "vCPUs": 2}]},
        "/value/0",
        "neither `id` nor `type`: `name`, `vCPUs`",
        "REST API",
        True,
    ),
    "an entry that is text": ({"value": ["x"]}, "/value/0", "a string where an object should be", "REST API", False),
}


@pytest.mark.parametrize(("document", "pointer", "message", "remedy", "nothing"), REFUSED.values(), ids=REFUSED)
def test_other_documents_than_resources_are_refused(
    document: object, pointer: str, message: str, remedy: str, nothing: bool
) -> None:
    """Each refusal states what was found instead of a resource, and what to do."""
    [refusal] = arm_rest.read(document).refusals

    assert arm_rest.detect(document)
    assert refusal.place == pointer
    assert message in refusal.message
    assert remedy in refusal.remedy
    assert (refusal.kind == "empty") is nothing


COMMAND_OUTPUT: JsonObject = {
    "id": COMPUTE["id"],
    "name": "cpu",
    "type": "amlcompute",
    "min_instances": 0,
    "provisioning_state": "Succeeded",
    "properties": {},
}


@pytest.mark.parametrize(
    "document",
    [
        COMMAND_OUTPUT,
        [COMMAND_OUTPUT],
        {**COMMAND_OUTPUT, "type": RESOURCE["type"]},
        {"$schema": "x", "resources": []},
        {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": []},
        {"data": [RESOURCE], "count": 1, "totalRecords": 1},
        {"nodes": []},
        {"parameters": {}, "responses": {"200": {"body": {"data": [RESOURCE], "totalRecords": 1}}}},
        {},
        [1],
        "text",
        None,
    ],
)
def test_other_content_is_not_taken_for_arm(document: object) -> None:
    """Output of `az ml`, templates, Kubernetes objects and Resource Graph responses are not detected."""
    assert not arm_rest.detect(document)
    assert not native.detect(document)
    assert not role_assignments.detect(document)


def test_insisting_does_not_turn_command_output_into_resources() -> None:
    """Read as ARM nevertheless, output of `az ml` is refused by its keys."""
    [refusal] = arm_rest.read([COMMAND_OUTPUT]).refusals

    assert refusal.message == "not an ARM resource: keys such as `min_instances` are from the output of a command"


@pytest.mark.parametrize(
    ("identity", "types"),
    [
        (WORKSPACE, ("microsoft.machinelearningservices/workspaces",)),
        (f"{WORKSPACE}/computes/c", ("microsoft.machinelearningservices/workspaces/computes",)),
        (f"{WORKSPACE}/providers/Microsoft.Authorization/locks/l", ("microsoft.authorization/locks",)),
        ("/subscriptions/s", ("microsoft.resources/subscriptions",)),
        (GROUP, ("microsoft.resources/resourcegroups", "microsoft.resources/subscriptions/resourcegroups")),
        ("/providers/Microsoft.Management/managementGroups/m", ("microsoft.management/managementgroups",)),
        (f"{WORKSPACE}/computes", ()),
        (f"{GROUP}/providers/Microsoft.X", ()),
        ("/subscriptions//providers/A/b/c", ()),
        ("/subscriptions", ()),
        ("/x/y", ()),
        ("", ()),
        ("/", ()),
    ],
)
def test_an_id_names_its_type(identity: str, types: tuple[str, ...]) -> None:
    """The last provider of a full ARM id decides; anything else has no type."""
    assert types_of(identity) == types
