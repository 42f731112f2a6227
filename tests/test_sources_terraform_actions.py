"""What a plan does besides setting attributes: requests to Azure, commands, deferred changes."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from policyeng.models import JsonObject, Operation
from policyeng.sources.parsed import ParsedDocument
from tests.terraform_parts import (
    ML,
    SCOPE,
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
)

ACTION = "azapi_resource_action"
API = "Microsoft.MachineLearningServices/workspaces@2024-04-01"
OPEN: JsonObject = {"properties": {"publicNetworkAccess": "Enabled"}}
PUT: JsonObject = {"type": API, "resource_id": WORKSPACE_ID, "method": "PUT", "body": OPEN}
PUBLIC = "/properties/publicNetworkAccess"
COMPUTE: JsonObject = {"properties": {"computeType": "AmlCompute", "properties": {"vmSize": "Standard_D4s_v3"}}}


def acting(values: JsonObject, unknown: object = None, actions: Sequence[str] = ("create",)) -> ParsedDocument:
    """The reading of a plan with one action."""
    entry = resource(ACTION, values)
    return read(plan([entry], [change(entry, unknown, actions=actions)]))


def changes_of(reading: ParsedDocument) -> list[tuple[str, str]]:
    """The operations and ids of the changes that are stated, and of the resources that are put."""
    patched = {changing.pointer for changing in reading.changes}
    puts = [
        ("put", placed.resource["id"])
        for placed in reading.resources
        if placed.pointer not in reading.unchanged | patched
    ]
    return [(str(one.change.operation.value), one.change.id) for one in reading.changes] + puts


@pytest.mark.parametrize("body", [OPEN, json.dumps(OPEN)])
@pytest.mark.parametrize("method", ["PUT", "put"])
def test_what_an_action_puts_is_a_resource(method: str, body: object) -> None:
    """Type, id and body are those of the resource after the request."""
    reading = acting({**PUT, "method": method, "body": body})

    [placed] = reading.resources
    assert (placed.resource["id"], placed.resource["type"]) == (WORKSPACE_ID, API.partition("@")[0])
    assert (at(placed, "/name"), at(placed, PUBLIC)) == ("ws", "Enabled")
    assert changes_of(reading) == [("put", WORKSPACE_ID)]
    assert (reading.incomplete, reading.remarks, reading.refusals) == ((), (), ())


def test_a_path_below_a_resource_names_another_one() -> None:
    """`action` is a part of the id."""
    reading = acting({**PUT, "action": "computes/cpu", "body": COMPUTE})

    [placed] = reading.resources
    assert placed.resource["id"] == f"{WORKSPACE_ID}/computes/cpu"
    assert placed.resource["type"] == "Microsoft.MachineLearningServices/workspaces/computes"
    assert at(placed, "/properties/properties/vmSize") == "Standard_D4s_v3"


def test_what_an_action_patches_is_a_patch() -> None:
    """In a plan with the resource it is a part of that one."""
    assert changes_of(acting({**PUT, "method": "PATCH"})) == [("patch", WORKSPACE_ID)]

    closed = resource(f"{ML}_workspace", {**WORKSPACE, "id": WORKSPACE_ID, "public_network_access_enabled": False})
    opened = resource(ACTION, {**PUT, "method": "PATCH"})
    [placed] = read(plan([closed, opened], [change(closed), change(opened)])).resources
    assert at(placed, PUBLIC) == "Enabled"


def test_an_action_puts_a_resource_anew_that_the_plan_leaves_as_it_is() -> None:
    """If the plan changes the resource, too, both are there, which is an error: it is not known which one is last."""
    closed = resource(f"{ML}_workspace", {**WORKSPACE, "id": WORKSPACE_ID, "public_network_access_enabled": False})
    put = resource(ACTION, PUT)
    staying = change(closed, before=closed["values"], actions=("no-op",))

    reading = read(plan([closed, put], [staying, change(put)]))
    assert [at(placed, PUBLIC) for placed in reading.resources] == ["Enabled"]
    assert changes_of(reading) == [("put", WORKSPACE_ID)]
    assert len(read(plan([closed, put], [change(closed, actions=("update",)), change(put)])).resources) == 2


def test_an_action_finds_a_resource_that_the_plan_creates() -> None:
    """The id comes from the configuration."""
    closed = resource(f"{ML}_workspace", {**WORKSPACE, "public_network_access_enabled": False})
    values = {key: value for key, value in PUT.items() if key != "resource_id"}
    opened = resource(ACTION, {**values, "method": "PATCH"})
    document = plan(
        [closed, opened],
        [change(closed, {"id": True}), change(opened, {"resource_id": True})],
        [configured(ACTION, {"resource_id": refers(f"{ML}_workspace.this.id", f"{ML}_workspace.this")})],
    )

    reading = read(document)
    assert [at(placed, PUBLIC) for placed in reading.resources] == ["Enabled"]
    assert reading.incomplete == ()


def test_what_an_action_deletes_is_a_deletion() -> None:
    """It needs no body."""
    reading = acting({**PUT, "method": "DELETE", "body": None})
    assert changes_of(reading) == [(Operation.DELETE.value, WORKSPACE_ID)]
    assert (reading.incomplete, reading.nothing) == ((), "")


@pytest.mark.parametrize(
    ("values", "unknown", "why"),
    [
        ({**PUT, "method": "POST", "action": "stop"}, None, "calls `stop`"),
        ({**PUT, "method": None, "action": "stop"}, None, "with POST"),
        ({**PUT, "method": "MERGE"}, None, "with MERGE"),
        ({**PUT, "action": "config"}, None, "which is not the id of a resource"),
        ({**PUT, "action": "computes/cpu?x=y"}, None, "which is not the id of a resource"),
        ({**PUT, "resource_id": "/subscriptions/{x}/y"}, None, "which is not the id of a resource"),
        ({**PUT, "type": "Microsoft.Foo/bars@2024-01-01"}, None, "`type` is `Microsoft.Foo/bars`"),
        ({**PUT, "body": None}, None, "without `body`"),
        ({**PUT, "resource_id": None}, {"resource_id": True}, "its `resource_id` is known only after apply"),
        ({**PUT, "method": None}, {"method": True}, "its `method` is known only after apply"),
        (
            {**PUT, "method": "PATCH", "resource_id": None},
            {"resource_id": True},
            "the resource that `azapi_resource_action.this` updates is known only after apply",
        ),
    ],
)
def test_an_action_that_is_not_read_makes_the_plan_incomplete(values: JsonObject, unknown: object, why: str) -> None:
    """The line has its address."""
    [line] = acting(values, unknown).incomplete
    assert "`azapi_resource_action.this`" in line
    assert why in line


def test_an_unknown_body_is_an_unknown_resource() -> None:
    """What is known decides, and the rest is not known."""
    [placed] = acting({**PUT, "body": None}, {"body": True}).resources
    assert "/properties" in placed.unreadable


@pytest.mark.parametrize(
    ("values", "actions"),
    [
        (PUT, ("no-op",)),
        ({**PUT, "when": "destroy"}, ("create",)),
        ({**PUT, "method": "GET"}, ("create",)),
        ({**PUT, "method": "POST", "action": "listKeys"}, ("create",)),
    ],
)
def test_an_action_that_changes_nothing_is_no_change(values: JsonObject, actions: Sequence[str]) -> None:
    """It does not run, or it reads."""
    reading = acting(values, actions=actions)
    assert (changes_of(reading), reading.incomplete, reading.remarks) == ([], (), ())


def test_an_action_of_a_destruction_runs_when_it_is_destroyed() -> None:
    """Its values are those before."""
    entry = change(resource(ACTION, {}), before={**PUT, "when": "destroy"}, actions=("delete",))
    reading = read(plan([], [{**entry, "change": {**entry["change"], "after": None}}]))
    assert changes_of(reading) == [("put", WORKSPACE_ID)]


def test_an_action_in_a_state_is_in_the_past() -> None:
    """What it changed is not in the state."""
    [line] = read(state([resource(ACTION, PUT)])).incomplete
    assert "`azapi_resource_action` does not state its result" in line


def deferring(**more: object) -> ParsedDocument:
    """The reading of a plan that defers the creation of a workspace."""
    entry = change(resource(f"{ML}_workspace", WORKSPACE))
    deferred = {"reason": "provider_config_unknown", "resource_change": {**entry, **more}}
    return read(plan([], [], deferred_changes=[deferred]))


def test_a_deferred_change_is_read() -> None:
    """Its result is in the plan."""
    reading = deferring()
    assert [at(placed, PUBLIC) for placed in reading.resources] == ["Enabled"]
    assert [placed.pointer for placed in reading.resources] == ["/deferred_changes/0/resource_change"]
    assert (reading.incomplete, reading.unchanged) == ((), frozenset())


@pytest.mark.parametrize(
    "more",
    [
        {"address": f"{ML}_workspace.this[*]"},
        {"change": {"actions": ["create"], "after": None}},
        {"change": {"actions": ["delete"], "before": WORKSPACE, "after": None}},
        {"change": None},
    ],
)
def test_a_deferred_change_without_a_result_is_incomplete(more: JsonObject) -> None:
    """The line has its address."""
    [line] = deferring(**more).incomplete
    assert f"the plan defers changes of `{ML}_workspace.this" in line


PROVISIONERS = [{"type": "local-exec", "expressions": {"command": {"constant_value": "az ml workspace update"}}}]


def provisioning(actions: Sequence[str] | None, kind: str = "local-exec") -> ParsedDocument:
    """The reading of a plan with a provisioner."""
    entry = resource("null_resource", {})
    changes = [] if actions is None else [change(entry, actions=actions)]
    provisioners = [{**PROVISIONERS[0], "type": kind}]
    return read(plan([entry], changes, [configured("null_resource", {}, provisioners=provisioners)]))


@pytest.mark.parametrize("kind", ["local-exec", "remote-exec", "file"])
@pytest.mark.parametrize("actions", [("create",), ("delete", "create"), ("delete",), None])
def test_a_provisioner_that_runs_makes_the_plan_incomplete(actions: Sequence[str] | None, kind: str) -> None:
    """It runs when its resource is created or destroyed."""
    reading = provisioning(actions, kind)
    [line] = reading.incomplete
    assert f"`null_resource.this` runs a command (`{kind}`)" in line
    assert reading.nothing == ""


@pytest.mark.parametrize("actions", [("no-op",), ("update",), ("read",)])
def test_a_provisioner_that_does_not_run_is_nothing(actions: Sequence[str]) -> None:
    """Neither does it where its resource has no instances."""
    assert provisioning(actions).incomplete == ()
    assert read(plan([], [], [configured("null_resource", {}, provisioners=PROVISIONERS)])).incomplete == ()


def test_provisioners_of_modules_run_for_each_instance() -> None:
    """A module is configured once, and each of its instances has an address."""
    modules = [f'module.a["{number}"].module.b' for number in (0, 1)]
    entries = [resource("terraform_data", {}, index=0, module=module) for module in modules]
    inner = {"resources": [configured("terraform_data", {}, provisioners=PROVISIONERS)]}
    calls = {"a": {"module": {"module_calls": {"b": {"module": inner}}}}}
    changes = [{**change(entry), "module_address": module} for module, entry in zip(modules, entries, strict=True)]
    document = plan([], changes, configuration=[])
    document["configuration"] = {"root_module": {"module_calls": calls}}

    lines = read(document).incomplete
    assert [f"`{entry['address']}` runs a command" in line for entry, line in zip(entries, lines, strict=True)] == [
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("kind", "values", "mode", "is_run"),
    [
        ("external", {"program": ["x"]}, "data", True),
        ("http", {"url": "x", "method": "POST"}, "data", True),
        ("http", {"url": "x", "method": "GET"}, "data", False),
        ("http", {"url": "x"}, "data", False),
        ("shell_script", {}, "managed", True),
        ("shell_sensitive_script", {}, "managed", True),
        ("terracurl_request", {}, "managed", True),
        ("terraform_data", {"input": "x"}, "managed", False),
        ("null_resource", {}, "managed", False),
    ],
)
def test_types_that_run_something_make_the_plan_incomplete(
    kind: str, values: JsonObject, mode: str, is_run: bool
) -> None:
    """Those that run nothing by themselves do not."""
    entry = resource(kind, values, mode=mode)
    lines = read(plan([entry], [change(entry)])).incomplete
    assert [f"`{entry['address']}` runs a" in line for line in lines] == [True] * is_run

    if mode == "managed":
        assert read(plan([entry], [change(entry, actions=("no-op",))])).incomplete == ()


def test_invoked_actions_make_the_plan_incomplete() -> None:
    """Terraform 1.14 has actions of providers."""
    [line] = read(plan([], [], action_invocations=[{"address": "action.azapi_x.y", "type": "azapi_x"}])).incomplete
    assert "`action.azapi_x.y` runs an action" in line


def test_a_list_of_resources_is_looked_up() -> None:
    """`azapi_resource_list` changes nothing."""
    entry = resource("azapi_resource_list", {"type": API, "parent_id": SCOPE}, mode="data")
    assert read(plan([entry])).incomplete == ()


def test_a_request_that_is_looked_up_is_not_read() -> None:
    """A data source runs whenever the plan is made."""
    for action, lines in (("listKeys", 0), ("start", 1)):
        values = {"type": API, "resource_id": WORKSPACE_ID, "action": action, "method": "POST"}
        assert len(read(plan([resource(ACTION, values, mode="data")])).incomplete) == lines
