"""Terraform plans: values known only after apply, their sources, sensitive values; and the azapi provider."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyeng.models import JsonObject
from policyeng.sources import terraform
from policyeng.sources.parsed import ALONE, Placed, Surroundings
from policyeng.sources.terraform.resolution import KINDS
from policyeng.sources.terraform.resource_types import BlockPresence
from tests.terraform_parts import (
    CLUSTER,
    HERE,
    INSTANCE,
    ML,
    SCOPE,
    SUBNET_ID,
    SUBSCRIPTION,
    WORKSPACE,
    WORKSPACE_ID,
    at,
    change,
    configured,
    plan,
    read,
    refers,
    resource,
    state,
    state_file,
)

C = "/properties/properties"
WS, CPU, CI = f"{ML}_workspace", f"{ML}_compute_cluster", f"{ML}_compute_instance"
API = "Microsoft.MachineLearningServices/workspaces/computes@2024-10-01"


def without(values: JsonObject, *names: str) -> JsonObject:
    """Attributes as a plan has them when some are known only after apply: those are left out."""
    return {name: value for name, value in values.items() if name not in names}


def made(kind: str, values: JsonObject, unknown: JsonObject, expressions: JsonObject | None) -> Placed:
    """The reading of one resource that is created with unknown attributes."""
    entry = resource(kind, without(values, *unknown))
    configuration = [] if expressions is None else [configured(kind, expressions)]
    [placed] = read(plan([entry], [change(entry, {"id": True, **unknown})], configuration)).resources
    return placed


def of_workspace(
    expression: JsonObject, others: list[JsonObject] | None = None, more: JsonObject | None = None
) -> Placed:
    """The cluster whose workspace comes from an expression, next to a workspace `this` and other resources."""
    cluster = resource(CPU, without(CLUSTER, "machine_learning_workspace_id"))
    workspace = resource(WS, WORKSPACE)
    every = [workspace, *(others or []), cluster]
    changes = [change(cluster, {"id": True, "machine_learning_workspace_id": True}), change(workspace, {"id": True})]
    configuration = configured(CPU, {"machine_learning_workspace_id": expression}) | (more or {})
    return read(plan(every, changes, [configuration, configured(WS, {})])).resources[-1]


def test_unknown_attributes_are_unreadable_with_the_reason() -> None:
    """They are left out, and the reason names the attribute."""
    placed = made(CPU, CLUSTER, {"vm_size": True, "tags": True}, {"vm_size": refers("random_shuffle.size.result")})

    assert (at(placed, f"{C}/vmSize"), at(placed, "/tags")) == (..., ...)
    assert placed.unreadable[f"{C}/vmSize"].startswith("`vm_size` is known only after apply")
    assert "/tags" in placed.unreadable


def test_a_part_of_a_block_and_one_tag_can_be_unknown() -> None:
    """Its siblings stay readable."""
    values = {**CLUSTER, "tags": {"owner": "me"}, "scale_settings": [{"max_node_count": 4}]}
    placed = made(CPU, values, {}, {})
    entry = resource(CPU, values)
    marks = {"id": True, "tags": {"stage": True}, "scale_settings": [{"min_node_count": True}]}
    [placed] = read(plan([entry], [change(entry, marks)])).resources

    assert at(placed, "/tags") == {"owner": "me"}
    assert at(placed, f"{C}/scaleSettings") == {"maxNodeCount": 4}
    assert {"/tags/stage", f"{C}/scaleSettings/minNodeCount"} <= placed.unreadable.keys()
    assert "/tags" not in placed.unreadable


@pytest.mark.parametrize(
    ("kind", "values", "marks", "expected", "unreadable"),
    [
        (
            "azurerm_container_group",
            {"container": [{"memory": 4}]},
            {"container": [{"image": True, "commands": True}]},
            {"containers": [{"properties": {"resources": {"requests": {"memoryInGB": 4}}}}]},
            {"/properties/containers/0/properties/image"},
        ),
        (
            "azurerm_container_group",
            {"container": [{"image": "x"}]},
            {"container": [{"memory": True}]},
            {"containers": [{"properties": {"image": "x"}}]},
            {"/properties/containers/0/properties/resources/requests/memoryInGB"},
        ),
        (
            "azurerm_consumption_budget_subscription",
            {"subscription_id": SUBSCRIPTION, "notification": [{"threshold": 90}]},
            {"notification": [{"contact_groups": True}]},
            {"category": "Cost", "notifications": {"1": {"enabled": True, "threshold": 90}}},
            {"/properties/notifications/1/contactGroups"},
        ),
        (
            "azurerm_container_group",
            {},
            {"container": True},
            None,
            {"/properties/containers"},
        ),
    ],
)
def test_blocks_are_read_part_by_part(
    kind: str, values: JsonObject, marks: JsonObject, expected: object, unreadable: set[str]
) -> None:
    """Unknown values of one block leave the rest of it; what no policy evaluates is no gap."""
    entry = resource(kind, {"name": "x", "resource_group_name": "rg-ml", **values})
    [placed] = read(plan([entry], [change(entry, {"id": True, **marks})])).resources

    assert placed.resource.get("properties") == expected
    assert placed.unreadable.keys() == unreadable


@pytest.mark.parametrize(
    ("values", "expressions", "is_open"),
    [
        (WORKSPACE, {"name": {"constant_value": "ws"}}, False),
        (WORKSPACE, {"high_business_impact": refers("var.hbi")}, False),
        (WORKSPACE, {"high_business_impact": refers("var.unheard")}, True),
        (WORKSPACE, {"high_business_impact": refers("local.hbi")}, True),
        (WORKSPACE, {"high_business_impact": refers("azurerm_x.y.hbi", "azurerm_x.y")}, True),
        (WORKSPACE, None, True),
        ({**WORKSPACE, "encryption": [{"key_vault_id": "/kv", "key_id": "k"}]}, {}, True),
    ],
)
def test_what_is_not_stated_is_left_to_azure(values: JsonObject, expressions: JsonObject | None, is_open: bool) -> None:
    """`high_business_impact` is computed when it is not stated; with a key of the customer Azure decides it."""
    entry = resource(WS, values)
    other = resource("azurerm_x", {}, "y")
    configuration = [] if expressions is None else [configured(WS, expressions)]
    document = plan([entry, other], [change(entry, {"id": True, "high_business_impact": True})], configuration)
    [placed] = read({**document, "variables": {"hbi": {}}}).resources

    assert ("/properties/hbiWorkspace" in placed.unreadable) is is_open
    assert at(placed, "/properties/hbiWorkspace") is ...


def test_the_provider_closes_ssh_that_is_not_stated() -> None:
    """It requests `Disabled` although Azure's own default is another."""
    placed = made(CPU, CLUSTER, {"ssh_public_access_enabled": True}, {})

    assert at(placed, f"{C}/remoteLoginPortPublicAccess") == "Disabled"


def test_values_that_stay_on_an_update_are_as_before() -> None:
    """A computed attribute that is not stated keeps its value; the id is known."""
    entry = resource(WS, without({**WORKSPACE, "id": WORKSPACE_ID}, "high_business_impact"))
    before = {"id": WORKSPACE_ID, "high_business_impact": True}
    planned = change(entry, {"high_business_impact": True}, before=before, actions=["update"])
    [placed] = read(plan([entry], [planned], [configured(WS, {})]), ALONE).resources

    assert at(placed, "/properties/hbiWorkspace") is True
    assert (placed.resource["id"], "/id" in placed.unreadable) == (WORKSPACE_ID, False)


def test_a_replaced_resource_keeps_nothing_but_the_subscription() -> None:
    """The new one is made up below the subscription of the old one."""
    entry = resource(WS, WORKSPACE)
    before = {"id": WORKSPACE_ID, "high_business_impact": True}
    marks = {"id": True, "high_business_impact": True}
    planned = change(entry, marks, before=before, actions=["delete", "create"])
    [placed] = read(plan([entry], [planned], [configured(WS, {})]), ALONE).resources

    assert at(placed, "/properties/hbiWorkspace") is ...
    assert (placed.resource["id"], "/id" in placed.unreadable) == (WORKSPACE_ID, False)


def test_an_old_copy_that_goes_does_not_speak_for_the_new_one() -> None:
    """A deposed object has the address of its successor."""
    entry = resource(CPU, CLUSTER)
    old = {**change(entry, {"vm_size": True}), "deposed": "abcd1234"}
    [placed] = read(plan([entry], [change(entry, {"id": True}), old])).resources

    assert at(placed, f"{C}/vmSize") == "Standard_D4s_v3"


SENSITIVE = [
    plan([resource(CPU, CLUSTER)], [change(resource(CPU, CLUSTER), sensitive={"vm_size": True})]),
    state([{**resource(CPU, CLUSTER), "sensitive_values": {"vm_size": True}}]),
    state_file(CPU, CLUSTER, sensitive_attributes=[[{"type": "get_attr", "value": "vm_size"}]]),
]


@pytest.mark.parametrize("document", SENSITIVE)
def test_sensitive_values_are_in_nothing_that_is_read(document: JsonObject) -> None:
    """They are left out, and no reason quotes them."""
    [placed] = read(document).resources

    assert placed.unreadable[f"{C}/vmSize"].startswith("`vm_size` is marked sensitive")
    assert "Standard_D4s_v3" not in repr(placed)


def test_passwords_are_left_out_without_a_word() -> None:
    """No policy needs them, so that is no gap; an empty sensitive value is none either."""
    values = {**CLUSTER, "ssh": [{"admin_username": "me", "admin_password": "hidden"}], "vm_size": None}
    entry = resource(CPU, values)
    marks = {"ssh": [{"admin_password": True}], "vm_size": True}
    [placed] = read(plan([entry], [change(entry, {"id": True}, marks)])).resources

    assert "hidden" not in repr(placed)
    assert placed.unreadable == {}


REFERENCES: list[tuple[JsonObject, list[JsonObject], bool]] = [
    (refers(f"{WS}.this.id", f"{WS}.this"), [], True),
    (refers(f"{WS}.this"), [], True),
    (refers(f"{WS}.this[0].id", f"{WS}.this[0]", f"{WS}.this"), [], False),
    (refers(f"{WS}.other.id", f"{WS}.other"), [], False),
    (refers(f"{WS}.this.id", f"{WS}.this", "var.flag"), [], False),
    (refers(f"{WS}.this.id", f"{WS}.this", "local.flag"), [], False),
    (refers(f"{WS}.this.id", f"{WS}.this", "count.index"), [], True),
    (refers(f"{WS}.this.id", f"{WS}.this", "each.value"), [], False),
    (refers("azurerm_subnet.this.id", "azurerm_subnet.this"), [resource("azurerm_subnet", {"name": "s"})], False),
    (refers(f"{WS}.this.id", f"{WS}.two.id"), [resource(WS, {**WORKSPACE, "name": "two"}, "two")], False),
    (refers(f"{WS}.this.id", f"{WS}.gone[0].id"), [], True),
    (refers("local.workspace"), [], False),
    ({"constant_value": "x"}, [], False),
]


@pytest.mark.parametrize(("expression", "others", "resolves"), REFERENCES)
def test_a_reference_to_one_resource_is_its_id(
    expression: JsonObject, others: list[JsonObject], resolves: bool
) -> None:
    """To no one, to several, to another type or through a local it leads nowhere, and the workspace is not known."""
    placed = of_workspace(expression, others)

    expected = f"{WORKSPACE_ID}/computes/cpu" if resolves else f"{HERE.workspace}/computes/cpu"
    assert placed.resource["id"] == expected
    assert ("/id" in placed.unreadable) is not resolves


def test_a_compute_whose_workspace_is_unknown_leaves_the_reading_incomplete() -> None:
    """Any workspace may have it, so nothing that needs all computes may pass."""
    cluster = resource(CPU, without(CLUSTER, "machine_learning_workspace_id"))
    reading = read(plan([cluster], [change(cluster, {"id": True, "machine_learning_workspace_id": True})]))

    assert reading.incomplete == ("plan.json: the workspace of `cpu` is known only after apply",)
    assert "pass `--workspace`" in reading.resources[0].unreadable["/id"]
    home = Surroundings(scope=SCOPE, workspace=WORKSPACE_ID)
    assert read(plan([cluster]), home).resources[0].resource["id"] == f"{WORKSPACE_ID}/computes/cpu"


def test_the_same_key_of_for_each_chooses_among_several() -> None:
    """`azurerm_x.this[each.key].id` is that of the same key."""
    spaces = [resource(WS, {**WORKSPACE, "name": f"ws-{key}"}, index=key) for key in ("a", "b")]
    clusters = [resource(CPU, without(CLUSTER, "machine_learning_workspace_id"), index=key) for key in ("a", "b", "c")]
    changes = [change(entry, {"id": True, "machine_learning_workspace_id": True}) for entry in clusters]
    configuration = configured(CPU, {"machine_learning_workspace_id": refers(f"{WS}.this", "each.key")})
    _, _, *placed = read(plan([*spaces, *clusters], changes, [configuration])).resources

    names = [one.resource["id"].split("/")[8] for one in placed]
    assert names == ["ws-a", "ws-b", "{workspace}"]


def test_values_of_for_each_are_followed() -> None:
    """A map whose value is the one workspace."""
    each = {"for_each_expression": refers(f"{WS}.this.id", f"{WS}.this")}
    placed = of_workspace(refers("each.value.workspace", "each.value"), more=each)

    assert placed.resource["id"] == f"{WORKSPACE_ID}/computes/cpu"


def modules(output: JsonObject, given: JsonObject, inside: JsonObject) -> JsonObject:
    """A plan with a workspace in one module and a cluster in another, and their configuration."""
    space = resource(WS, WORKSPACE, module="module.space")
    cluster = resource(CPU, without(CLUSTER, "machine_learning_workspace_id"), module="module.nodes[0]")
    document = plan(
        [], [change(space, {"id": True}), change(cluster, {"id": True, "machine_learning_workspace_id": True})]
    )
    document["planned_values"]["root_module"] = {
        "child_modules": [
            {"address": "module.space", "resources": [space]},
            {"address": "module.nodes[0]", "resources": [cluster]},
        ]
    }
    document["configuration"]["root_module"] = {
        "module_calls": {
            "space": {
                "module": {"resources": [configured(WS, {})], "outputs": {"id": {"expression": output}}},
            },
            "nodes": {
                "expressions": {"workspace_id": given},
                "module": {"resources": [configured(CPU, {"machine_learning_workspace_id": inside})]},
            },
        }
    }
    return document


@pytest.mark.parametrize(
    ("output", "given", "inside", "resolves"),
    [
        (
            refers(f"{WS}.this.id", f"{WS}.this"),
            refers("module.space.id", "module.space"),
            refers("var.workspace_id"),
            True,
        ),
        (refers(f"{WS}.this.id"), refers("module.space[0].id", "module.space[0]"), refers("var.workspace_id"), False),
        (refers("local.id"), refers("module.space.id", "module.space"), refers("var.workspace_id"), False),
        (refers(f"{WS}.this.id"), refers("module.space.other"), refers("var.workspace_id"), False),
        (refers(f"{WS}.this.id"), refers("module.space.id"), refers("var.other"), False),
        (refers(f"{WS}.this.id"), refers("module.gone.id"), refers("var.workspace_id"), False),
    ],
)
def test_references_are_followed_through_modules(
    output: JsonObject, given: JsonObject, inside: JsonObject, resolves: bool
) -> None:
    """An input of one module that is an output of another."""
    _, placed = read(modules(output, given, inside)).resources

    assert (placed.resource["id"] == f"{WORKSPACE_ID}/computes/cpu") is resolves


def test_names_and_groups_that_are_unknown_keep_resources_apart() -> None:
    """A random suffix: the id contains the address, references still lead there, and the remedy is named."""
    space = resource(WS, without(WORKSPACE, "name", "resource_group_name"))
    group = resource("azurerm_resource_group", {"location": "westeurope"}, "rg")
    cluster = resource(CPU, without(CLUSTER, "machine_learning_workspace_id"))
    changes = [
        change(space, {"id": True, "name": True, "resource_group_name": True}),
        change(group, {"id": True, "name": True}),
        change(cluster, {"id": True, "machine_learning_workspace_id": True}),
    ]
    configuration = [
        configured(WS, {"resource_group_name": refers("azurerm_resource_group.rg.name", "azurerm_resource_group.rg")}),
        configured(CPU, {"machine_learning_workspace_id": refers(f"{WS}.this.id", f"{WS}.this")}),
    ]
    document = plan([space, group, cluster], changes, configuration)
    alone, nodes = read(document, ALONE).resources
    assert alone.resource["id"].startswith("/subscriptions/{subscription}/resourceGroups/{resource-group}/")
    assert nodes.resource["id"] == f"{alone.resource['id']}/computes/cpu"
    assert "name" not in alone.resource

    here, _ = read(document).resources
    assert here.resource["id"] == f"{SCOPE}/providers/Microsoft.MachineLearningServices/workspaces/{{{WS}.this}}"
    assert "its name" in here.unreadable["/id"]
    assert read(document).incomplete == ()


@pytest.mark.parametrize(
    ("more", "known"),
    [
        ({}, False),
        (
            {
                "provider_config": {
                    "azurerm": {"name": "azurerm", "expressions": {"subscription_id": {"constant_value": "s1"}}}
                }
            },
            True,
        ),
        (
            {
                "provider_config": {
                    "azurerm": {"name": "azurerm", "expressions": {"subscription_id": {"constant_value": "s1"}}},
                    "azurerm.hub": {"name": "azurerm", "alias": "hub"},
                }
            },
            False,
        ),
    ],
)
def test_the_subscription_may_be_in_the_configuration(more: JsonObject, known: bool) -> None:
    """With a second provider it is open which one a resource has."""
    entry = resource(WS, WORKSPACE)
    document = plan([entry], [change(entry, {"id": True})])
    document["configuration"] |= more
    [placed] = read(document, ALONE).resources

    assert ("/id" in placed.unreadable) is not known
    assert placed.resource["id"].startswith("/subscriptions/s1/resourceGroups/rg-ml/") is known


def test_the_subscription_may_be_looked_up() -> None:
    """`azurerm_client_config` of the prior state is that of the provider."""
    entry = resource(WS, WORKSPACE)
    client = resource("azurerm_client_config", {"subscription_id": "s2"}, mode="data")
    prior = {"format_version": "1.0", "values": {"root_module": {"resources": [client]}}}
    [placed] = read(plan([entry], [change(entry, {"id": True})], prior_state=prior), ALONE).resources

    assert placed.resource["id"].startswith("/subscriptions/s2/resourceGroups/rg-ml/")
    assert read(plan([entry]), HERE).movable == f"{SUBSCRIPTION}/resourceGroups/{{resource-group}}"
    assert read(plan([entry]), ALONE).movable == "/subscriptions/{subscription}"


def test_a_subnet_of_the_plan_is_the_subnet_of_the_compute() -> None:
    """Without a scope it is in some network that cannot be compared with others."""
    subnet = resource(
        "azurerm_subnet", {"name": "train", "resource_group_name": "rg-ml", "virtual_network_name": "net"}
    )
    entry = resource(CI, without(INSTANCE, "subnet_resource_id"))
    changes = [change(entry, {"id": True, "subnet_resource_id": True})]
    configuration = [configured(CI, {"subnet_resource_id": refers("azurerm_subnet.this.id", "azurerm_subnet.this")})]
    document = plan([subnet, entry], changes, configuration)

    placed = read(document).resources[1]
    assert at(placed, f"{C}/subnet/id") == SUBNET_ID
    assert not any("subnet" in pointer for pointer in placed.unreadable)
    alone = read(document, ALONE).resources
    assert at(alone[1], f"{C}/subnet/id") == alone[0].resource["id"]
    assert f"{C}/subnet/subscription" in alone[1].unreadable


PRESENT = [
    pytest.param(kind, row.source, row.target, row.bring.present, id=f"{kind}{row.source}")
    for kind, terraform_type in KINDS.items()
    for row in terraform_type.table
    if isinstance(row.bring, BlockPresence)
]


@pytest.mark.parametrize(("kind", "source", "target", "value"), PRESENT)
def test_a_block_is_present_whatever_of_it_is_known(kind: str, source: str, target: str, value: str) -> None:
    """All of its attributes are known only after apply, or the plan does not say whether there is a block."""
    name = source.split("/")[1]
    entry = resource(kind, {"name": "a", "resource_group_name": "rg-ml", name: [{}]})
    inside = {"a": True, "port": True, "key_id": True}
    [placed] = read(plan([entry], [change(entry, {"id": True, name: [inside]})])).resources
    bare = resource(kind, {"name": "a", "resource_group_name": "rg-ml"})
    [unknown] = read(plan([bare], [change(bare, {"id": True, name: True})])).resources

    assert at(placed, target) == value
    assert not any(f"{pointer}/".startswith(f"{target}/") for pointer in placed.unreadable)
    assert target in unknown.unreadable


def test_blocks_count_by_presence_somewhere() -> None:
    """The table above has rows."""
    assert {case.id for case in PRESENT} == {f"{CI}/ssh", f"{WS}/encryption/0", "azurerm_ai_foundry/encryption/0"}


def test_an_identity_of_the_plan_is_one_before_its_id_is_known() -> None:
    """As a subnet is; of several references each leads to one."""
    identity = resource("azurerm_user_assigned_identity", {"name": "id", "resource_group_name": "rg-ml"})
    entry = resource(WS, {**WORKSPACE, "identity": [{"type": "UserAssigned"}]})
    changes = [change(entry, {"id": True, "identity": [{"identity_ids": True}]})]
    name = "azurerm_user_assigned_identity.this"
    configuration = [configured(WS, {"identity": [{"identity_ids": refers(f"{name}.id", name)}]})]

    placed = read(plan([identity, entry], changes, configuration)).resources[-1]
    identities: JsonObject = {f"{SCOPE}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/id": {}}
    assert at(placed, "/identity/userAssignedIdentities") == identities


def azapi(values: JsonObject, unknown: JsonObject | None = None, kind: str = "azapi_resource") -> Placed:
    """The reading of an azapi resource."""
    entry = resource(kind, values)
    reading = read(plan([entry], [change(entry, {"id": True, **(unknown or {})})]))
    assert reading.refusals == ()
    return reading.resources[-1]


BODY: JsonObject = {"properties": {"computeType": "AmlCompute", "properties": {"vmSize": "Standard_D4s_v3"}}}


@pytest.mark.parametrize("body", [BODY, json.dumps(BODY)])
def test_azapi_bodies_are_arm(body: object) -> None:
    """As an object (version 2) and as a JSON string (version 1)."""
    identity = [{"type": "SystemAssigned, UserAssigned", "identity_ids": ["/id"]}]
    placed = azapi(
        {
            "type": API,
            "name": "cpu",
            "parent_id": WORKSPACE_ID,
            "body": body,
            "location": "eastus",
            "identity": identity,
        }
    )

    assert placed.resource == {
        "id": f"{WORKSPACE_ID}/computes/cpu",
        "type": "Microsoft.MachineLearningServices/workspaces/computes",
        "name": "cpu",
        "location": "eastus",
        "identity": {"type": "SystemAssigned,UserAssigned", "userAssignedIdentities": {"/id": {}}},
        "properties": {**BODY["properties"], "isAttachedCompute": False},
    }
    assert placed.carried is None
    assert f"{C}/state" in placed.unreadable
    place = "/planned_values/root_module/resources/0/values/body"
    assert placed.fields["/properties"] == (place if isinstance(body, str) else f"{place}/properties")


def test_unknown_parts_of_a_body_are_unreadable() -> None:
    """A part, or all of it."""
    values = {"type": API, "name": "cpu", "parent_id": WORKSPACE_ID, "body": BODY}
    part = azapi(values, {"body": {"properties": {"properties": {"subnet": {"id": True}}}}})
    assert at(part, f"{C}/vmSize") == "Standard_D4s_v3"
    assert f"{C}/subnet/id" in part.unreadable

    whole = azapi(without(values, "body"), {"body": True})
    assert {"/properties", "/kind", "/sku"} <= whole.unreadable.keys()
    hidden = azapi({**values, "sensitive_body": {"properties": {}}})
    assert "`sensitive_body`" in hidden.unreadable["/properties"]


@pytest.mark.parametrize("change_of", [{"type": "x"}, {"type": None}, {"body": "{"}, {"body": [1]}, {"body": 3}])
def test_azapi_resources_without_a_type_or_a_body_are_refused(change_of: JsonObject) -> None:
    """The others are not touched by them."""
    entry = resource("azapi_resource", {"type": API, "name": "c", "parent_id": WORKSPACE_ID, "body": {}, **change_of})
    reading = read(plan([entry, resource(WS, WORKSPACE)]))

    assert (len(reading.resources), len(reading.refusals)) == (1, 1)


def test_an_update_is_merged_over_its_target() -> None:
    """Azapi sets what azurerm cannot express; for a resource outside the plan it stays a part."""
    update = {"type": API, "body": {"properties": {"properties": {"idleTimeBeforeShutdown": "PT30M"}}}}
    here = resource("azapi_update_resource", {**update, "resource_id": f"{WORKSPACE_ID}/computes/notebook"})
    there = resource("azapi_update_resource", {**update, "name": "far", "parent_id": WORKSPACE_ID}, "far")
    merged, alone = read(plan([here, there, resource(CI, INSTANCE)])).resources

    assert at(merged, f"{C}/idleTimeBeforeShutdown") == "PT30M"
    assert at(merged, f"{C}/vmSize") == "Standard_DS3_v2"
    assert merged.carried is not None
    assert f"{C}/idleTimeBeforeShutdown" in merged.carried.pointers
    place = "/resources/0/values/body/properties/properties/idleTimeBeforeShutdown"
    assert merged.fields[f"{C}/idleTimeBeforeShutdown"].endswith(place)
    assert alone.resource["id"] == f"{WORKSPACE_ID}/computes/far"
    assert alone.carried is not None
    assert "states only its changes" in alone.carried.reason


def test_null_in_a_body_is_absence_and_in_an_update_removes() -> None:
    """Azapi sends null, which ARM takes as if the member was not there; of an update that is over what was there."""
    update = {"type": API, "resource_id": f"{WORKSPACE_ID}/computes/notebook"}
    body = {"properties": {"properties": {"vmSize": None, "idleTimeBeforeShutdown": "PT30M"}}}
    [merged] = read(
        plan([resource("azapi_update_resource", {**update, "body": body}), resource(CI, INSTANCE)])
    ).resources
    assert (at(merged, f"{C}/vmSize"), at(merged, f"{C}/idleTimeBeforeShutdown")) == (..., "PT30M")

    for stated in (body, json.dumps(body)):
        values = {"type": API, "name": "c", "parent_id": WORKSPACE_ID, "body": stated, "tags": {"a": None, "b": "c"}}
        [placed] = read(plan([resource("azapi_resource", values)])).resources
        assert placed.resource["properties"]["properties"] == {"idleTimeBeforeShutdown": "PT30M"}
        assert placed.resource["tags"] == {"b": "c"}


def test_an_unknown_update_makes_its_target_unreadable() -> None:
    """The value to set is known only after apply."""
    update = resource("azapi_update_resource", {"type": API, "resource_id": f"{WORKSPACE_ID}/computes/cpu"})
    marks = {"body": {"properties": {"properties": {"vmSize": True}}}}
    [placed] = read(plan([resource(CPU, CLUSTER), update], [change(update, marks)])).resources

    assert f"{C}/vmSize" in placed.unreadable
    assert at(placed, f"{C}/vmSize") is ...


ROLE = "/properties/roleDefinitionId"
CONTRIBUTOR = "b24988ac-6180-42a0-ab88-20f7382dd24c"
CUSTOM = resource("azurerm_role_definition", {"name": "Operators", "scope": SCOPE, "role_definition_id": CONTRIBUTOR})


def assigned(values: JsonObject, expressions: JsonObject | None = None) -> Placed:
    """The reading of a role assignment next to a custom role, of which neither the id nor the name is known alone."""
    unknown = {name: True for name in ("role_definition_id", "role_definition_name") if name not in values}
    entry = resource("azurerm_role_assignment", {"scope": WORKSPACE_ID, "principal_id": "p", "name": "n", **values})
    stated = [configured("azurerm_role_assignment", expressions or {name: {} for name in values})]
    return read(plan([entry, CUSTOM], [change(entry, {"id": True, **unknown})], stated)).resources[0]


@pytest.mark.parametrize(
    ("values", "role"),
    [
        ({"role_definition_name": "Contributor"}, f"/providers/Microsoft.Authorization/roleDefinitions/{CONTRIBUTOR}"),
        ({"role_definition_name": "contributor"}, f"/providers/Microsoft.Authorization/roleDefinitions/{CONTRIBUTOR}"),
        (
            {"role_definition_name": "Operators"},
            f"{SCOPE}/providers/Microsoft.Authorization/roleDefinitions/{CONTRIBUTOR}",
        ),
        ({"role_definition_id": "/r"}, "/r"),
        ({"role_definition_id": "/r", "role_definition_name": "Owner"}, "/r"),
    ],
)
def test_the_name_of_a_role_identifies_it(values: JsonObject, role: str) -> None:
    """A built-in one of the catalogue, one that the plan makes; an id takes precedence."""
    placed = assigned(values)
    assert at(placed, ROLE) == role
    assert ROLE not in placed.unreadable
    assert placed.fields[ROLE].endswith(f"/{next(iter(values))}")


@pytest.mark.parametrize(
    ("values", "expressions", "why"),
    [
        (
            {"role_definition_name": "My Role"},
            None,
            "`role_definition_name` is `My Role`, which is neither created here",
        ),
        ({"role_definition_name": CONTRIBUTOR}, None, f"`role_definition_name` is `{CONTRIBUTOR}`, which is neither"),
        ({}, {"role_definition_name": refers("local.x")}, "`role_definition_name` is known only after apply"),
        ({}, {"role_definition_id": refers("local.x")}, "`role_definition_id` is known only after apply"),
    ],
)
def test_a_role_that_cannot_be_identified_names_what_is_stated(
    values: JsonObject, expressions: JsonObject | None, why: str
) -> None:
    """The attribute that the user wrote, not the one that the provider computes."""
    placed = assigned(values, expressions)
    assert placed.unreadable[ROLE].startswith(why)
    assert at(placed, ROLE) is ...


UPDATE = "azapi_update_resource"
SPACE_API = "Microsoft.MachineLearningServices/workspaces@2024-10-01"
OPENING: JsonObject = {"type": SPACE_API, "body": {"properties": {"publicNetworkAccess": "Enabled"}}}
ACCESS = "/properties/publicNetworkAccess"
CLOSED = {**WORKSPACE, "public_network_access_enabled": False}
BY_AZAPI: JsonObject = {
    "type": SPACE_API,
    "name": "ws",
    "parent_id": SCOPE,
    "body": {"properties": {"publicNetworkAccess": "Disabled", "hbiWorkspace": True}},
}


def opened(
    others: list[JsonObject],
    expressions: JsonObject | None,
    *updates: JsonObject,
    around: Surroundings = HERE,
) -> list[Placed]:
    """The readings of resources that are created next to updates whose target is known only after apply."""
    every = [*others, *(updates or (resource(UPDATE, OPENING),))]
    marks = {"id": True, "resource_id": True, "name": True, "parent_id": True}
    changes = [change(one, marks if one["type"] == UPDATE else {"id": True}) for one in every]
    stated = [] if expressions is None else [configured(UPDATE, expressions)]
    return list(read(plan(every, changes, stated), around).resources)


@pytest.mark.parametrize(
    "target", [resource(WS, CLOSED), resource("azapi_resource", BY_AZAPI), resource(WS, without(CLOSED, "name"))]
)
@pytest.mark.parametrize("around", [HERE, ALONE])
def test_an_update_finds_the_target_that_its_resource_id_refers_to(target: JsonObject, around: Surroundings) -> None:
    """Of each provider, also where not even its name is known; nothing else comes of it."""
    address = target["address"]
    [placed] = opened([target], {"resource_id": refers(f"{address}.id", address)}, around=around)

    assert at(placed, ACCESS) == "Enabled"
    assert placed.pointer.endswith("/resources/0")
    assert placed.fields[ACCESS].endswith("/resources/1/values/body/properties/publicNetworkAccess")


def test_an_update_that_follows_another_is_for_the_same() -> None:
    """The id of an update is that of its target."""
    first, second = resource(UPDATE, OPENING), resource(UPDATE, {"type": SPACE_API, "body": {"kind": "Hub"}}, "second")
    every = [resource(WS, CLOSED), first, second]
    marks = {"id": True, "resource_id": True}
    stated = [
        configured(UPDATE, {"resource_id": refers(f"{WS}.this.id")}),
        configured(UPDATE, {"resource_id": refers(f"{UPDATE}.this.id")}, "second"),
    ]
    [placed] = read(plan(every, [change(one, marks) for one in every[1:]], stated)).resources
    assert (at(placed, ACCESS), at(placed, "/kind")) == ("Enabled", "Hub")

    stated[0] = configured(UPDATE, {"resource_id": refers("local.id")})
    assert {ACCESS, "/kind"} <= read(plan(every, [change(one, marks) for one in every[1:]], stated)).resources[
        0
    ].unreadable.keys()


def test_updates_of_for_each_find_each_their_own() -> None:
    """By the key that they share."""
    spaces = [resource(WS, {**CLOSED, "name": name}, index=name) for name in ("a", "b")]
    both = {"resource_id": refers(f"{WS}.this", "each.key")}
    one, other = opened(spaces, both, resource(UPDATE, OPENING, index="b"))
    assert (at(one, ACCESS), at(other, ACCESS)) == ("Disabled", "Enabled")
    assert ACCESS not in one.unreadable


def test_the_key_of_a_module_is_not_that_of_what_is_in_it() -> None:
    """`each.key` in the call of a module is the key of the module."""
    spaces = [resource(WS, {**CLOSED, "name": name}, index=name) for name in ("a", "b")]
    inner = resource(UPDATE, OPENING, index="b", module='module.m["a"]')
    document = plan(spaces, [change(one, {"id": True}) for one in spaces] + [change(inner, {"resource_id": True})])
    document["planned_values"]["root_module"]["child_modules"] = [{"address": 'module.m["a"]', "resources": [inner]}]
    module = {"resources": [configured(UPDATE, {"resource_id": refers("var.id")})]}
    given_id = {"id": refers(f"{WS}.this", "each.key")}
    document["configuration"]["root_module"]["module_calls"] = {"m": {"expressions": given_id, "module": module}}

    assert [at(placed, ACCESS) for placed in read(document).resources] == ["Enabled", "Disabled"]


@pytest.mark.parametrize(
    ("expressions", "stays"),
    [
        ({"resource_id": refers(f"{WS}.this.id", f"{WS}.other.id")}, False),
        ({"resource_id": refers("local.id")}, True),
        ({"resource_id": refers(f"{CPU}.this.machine_learning_workspace_id", f"{CPU}.this")}, True),
        ({"name": refers("random_pet.x.id"), "parent_id": {"constant_value": SCOPE}}, True),
        ({}, True),
        (None, True),
    ],
)
@pytest.mark.parametrize("unread", [{}, {"body": {"properties": {"publicNetworkAccess": True}}}])
def test_an_update_whose_target_is_unknown_opens_all_that_it_may_be(
    expressions: JsonObject | None, stays: bool, unread: JsonObject
) -> None:
    """Its fields are unreadable in each resource of the type; the rest and other types stay."""
    spaces = [resource(WS, {**CLOSED, "resource_group_name": "far"}), resource(WS, {**CLOSED, "name": "b"}, "other")]
    every = [*spaces, resource(CPU, CLUSTER), resource(UPDATE, without(OPENING, *unread))]
    marks = {"id": True, "resource_id": True, "name": True, "parent_id": True, **unread}
    changes = [change(one, marks if one["type"] == UPDATE else {"id": True}) for one in every]
    stated = [] if expressions is None else [configured(UPDATE, expressions)]
    one, other, cluster, *parts = read(plan(every, changes, stated)).resources

    for placed in (one, other):
        assert placed.unreadable[ACCESS].startswith(
            f"`{UPDATE}.this` may set it: the resource that it updates is known"
        )
        assert at(placed, ACCESS) is ...
        assert at(placed, "/properties/v1LegacyMode") is False
    assert not any("may set it" in why for why in cluster.unreadable.values())
    assert bool(parts) is stays


def test_an_update_by_id_opens_what_may_have_that_id() -> None:
    """A plan that does not state its subscription, and an id that does."""
    update = resource(UPDATE, {**OPENING, "resource_id": WORKSPACE_ID})
    far = resource(WS, {**CLOSED, "resource_group_name": "far"}, "far")
    near, other, _ = read(plan([resource(WS, CLOSED), far, update]), ALONE).resources

    assert f"it updates `{WORKSPACE_ID}`, which may be this resource; pass `--scope`" in near.unreadable[ACCESS]
    assert at(other, ACCESS) == "Disabled"


def test_an_update_is_put_over_what_belongs_within_another() -> None:
    """A rule of a managed network is one of its workspace after it was updated."""
    rule = resource(
        f"{WS}_network_outbound_rule_fqdn", {"name": "r", "workspace_id": WORKSPACE_ID, "destination_fqdn": "pypi.org"}
    )
    values: JsonObject = {"type": "Microsoft.MachineLearningServices/workspaces/outboundRules@2024-10-01"}
    values |= {"resource_id": f"{WORKSPACE_ID}/outboundRules/r", "body": {"properties": {"destination": "*"}}}
    [placed] = read(plan([resource(WS, WORKSPACE), rule, resource(UPDATE, values)])).resources

    assert at(placed, "/properties/managedNetwork/outboundRules/r/destination") == "*"


def test_an_update_with_an_empty_object_changes_nothing() -> None:
    """Fields that could not be read before cannot be read after."""
    update = resource(UPDATE, {"type": API, "resource_id": f"{WORKSPACE_ID}/computes/cpu", "body": {"properties": {}}})
    cluster = resource(CPU, without(CLUSTER, "vm_size"))
    [placed] = read(plan([cluster, update], [change(cluster, {"vm_size": True})])).resources

    assert f"{C}/vmSize" in placed.unreadable


def test_a_resource_of_the_tenant_has_no_scope_in_its_id() -> None:
    """Its `parent_id` is `/`; it is in no resource group."""
    kind = "Microsoft.Authorization/roleAssignments"
    values = {"type": f"{kind}@2022-04-01", "name": "a", "parent_id": "/", "body": {}}
    [placed] = read(plan([resource("azapi_resource", values)])).resources

    assert placed.resource["id"] == f"/providers/{kind}/a"
    assert "/id" not in placed.unreadable


def test_two_resources_with_one_id_are_both_read() -> None:
    """The duplicate is reported when documents are joined."""
    assert len(read(plan([resource(WS, WORKSPACE), resource(WS, CLOSED, "other")])).resources) == 2


DONE = "/properties/provisioningState"
OUTPUT: JsonObject = {"properties": {"provisioningState": "Succeeded"}}
THERE: JsonObject = {"type": SPACE_API, "name": "ws", "parent_id": SCOPE, "body": {}}


@pytest.mark.parametrize("output", [OUTPUT, json.dumps(OUTPUT)])
def test_the_output_has_what_the_service_states(output: object) -> None:
    """In a state, in its file, and in a plan that keeps the resource; not of a new one."""
    values = {**THERE, "output": output}
    entry = resource("azapi_resource", values)
    stays = [change(entry, {}, before=values, actions=("no-op",))]
    for document in (state([entry]), state_file("azapi_resource", values), plan([entry], stays)):
        [placed] = read(document).resources
        assert at(placed, DONE) == "Succeeded"
        assert DONE not in placed.unreadable
        assert placed.fields[DONE].endswith("/output" if isinstance(output, str) else f"/output{DONE}")
    anew = plan([entry], [change(entry, {}, before={**values, "id": WORKSPACE_ID}, actions=("delete", "create"))])
    assert "when it creates the resource" in read(anew).resources[0].unreadable[DONE]


@pytest.mark.parametrize("output", [None, {}, {"properties": 3}, "{", [1], {"alias": "Succeeded"}])
def test_a_state_reports_why_it_lacks_what_the_service_states(output: object) -> None:
    """The resource exists, so that is not the reason."""
    [placed] = read(state([resource("azapi_resource", {**THERE, "output": output})])).resources
    assert at(placed, DONE) is ...
    assert placed.unreadable[DONE].startswith("azapi stores only the `body` in the state, and its `output` does not")


ODD: JsonObject = {"Kind": "Hub", "Properties": {"PublicNetworkAccess": "Enabled", "managednetwork": {"x": 1}}}


@pytest.mark.parametrize("body", [ODD, json.dumps(ODD)])
@pytest.mark.parametrize("kind", ["azapi_resource", UPDATE])
def test_names_in_a_body_are_read_without_case(body: object, kind: str) -> None:
    """As ARM reads them, of new and of changed resources; each has its place in the document."""
    closed = [resource(WS, {**CLOSED, "kind": "Default"})] if kind == UPDATE else []
    entry = resource(kind, {**THERE, "body": body})
    [placed] = read(plan([*closed, entry])).resources

    assert (at(placed, ACCESS), at(placed, "/kind")) == ("Enabled", "Hub")
    assert at(placed, "/properties/managedNetwork/x") == 1
    place = placed.fields[ACCESS] if ACCESS in placed.fields else placed.fields["/properties"]
    assert "/values/body" in place
    assert isinstance(body, str) or place.endswith("/body/Properties/PublicNetworkAccess")


def test_names_in_a_body_that_are_not_arms_stay() -> None:
    """Names of users, of types without a schema, and a duplicate name."""
    twice = {"properties": {"hbiWorkspace": True, "HBIworkspace": False}, "tags": {"vmsize": "x"}}
    placed = azapi({**THERE, "body": twice})
    assert (at(placed, "/properties/hbiWorkspace"), at(placed, "/properties/HBIworkspace")) == (True, False)
    assert at(placed, "/tags/vmsize") == "x"
    top = azapi({**THERE, "body": {"properties": {"hbiWorkspace": True}, "Properties": {"hbiWorkspace": False}}})
    assert at(top, "/properties/hbiWorkspace") is True
    other = azapi({**THERE, "type": "Microsoft.Fabric/capacities@2023-11-01", "body": {"Kind": "x"}})
    assert at(other, "/Kind") == "x"


def test_unknown_names_in_a_body_are_read_without_case() -> None:
    """Values known only after apply are unreadable under ARM's name; a user's name stays."""
    marks = {"Properties": {"HbiWorkspace": True, "managednetwork": {"outboundrules": {"VMSize": True}}}, "SKU": True}
    unreadable = azapi({**THERE, "body": ODD}, {"body": marks}).unreadable
    rules = "/properties/managedNetwork/outboundRules/VMSize"
    assert {"/properties/hbiWorkspace", rules, "/sku"} <= unreadable.keys()


def test_a_body_does_not_identify_its_resource() -> None:
    """The attributes do."""
    placed = azapi({**THERE, "body": {"id": "/x", "type": "y", "name": "z"}})
    assert (placed.resource["id"], at(placed, "/type"), at(placed, "/name")) == (
        WORKSPACE_ID,
        "Microsoft.MachineLearningServices/workspaces",
        "ws",
    )


def test_actions_are_left_out_aloud() -> None:
    """The result of an action is not stated."""
    reading = read(plan([resource("azapi_resource_action", {"type": API, "action": "stop"})]))

    assert "`azapi_resource_action` does not state its result" in reading.remarks[0].message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
WHOLE = modules(refers(f"{WS}.this.id"), refers("module.space.id"), refers("var.workspace_id"))


_BY_NAME = resource("azurerm_role_assignment", {"scope": SCOPE, "role_definition_name": "Reader", "principal_id": "p"})
_SAYING = resource("azapi_resource", {**THERE, "body": ODD, "output": OUTPUT})
_ATTACHING = resource(f"{ML}_inference_cluster", {"name": "i", "kubernetes_cluster_id": "/x"})
LINKED = plan(
    [_BY_NAME, CUSTOM, _SAYING, _ATTACHING, resource(UPDATE, OPENING)],
    [change(resource(UPDATE, OPENING), {"resource_id": True}), change(_SAYING, {}, before=THERE, actions=("no-op",))],
    [configured(UPDATE, {"resource_id": refers("azapi_resource.this.id")})],
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_nothing_makes_the_reader_raise(data: st.DataObject) -> None:
    """Any value in any place of a plan or a state."""
    update = resource(
        "azapi_update_resource", {"type": API, "resource_id": f"{WORKSPACE_ID}/computes/cpu", "body": BODY}
    )
    rule = {"name": "r", "workspace_id": WORKSPACE_ID, "destination_fqdn": "x"}
    wide = plan(
        [resource(WS, WORKSPACE), resource(CPU, CLUSTER), update, resource(f"{WS}_network_outbound_rule_fqdn", rule)],
        [change(resource(CPU, CLUSTER), {"id": True, "scale_settings": [{"min_node_count": True}]})],
        [configured(CPU, {"subnet_resource_id": refers("var.x")})],
    )
    document = json.loads(json.dumps(data.draw(st.sampled_from([WHOLE, wide, LINKED, *SENSITIVE]))))
    here = document
    while isinstance(here, dict | list) and here:
        key = data.draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here))))
        if not isinstance(here[key], dict | list) or not here[key] or data.draw(st.integers(0, 5)) == 0:
            here[key] = data.draw(JSON)
            break
        here = here[key]

    reading = terraform.read(document)
    assert all(isinstance(placed.resource["id"], str) for placed in reading.resources)
