"""Documents that state what changes: ours, what-if output, plans, whole states, and resources in any format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyeng.models import Change, JsonObject, Operation, Snapshot
from policyeng.sources import ChangesRead, DocumentContext, parse_changes, read_changes, read_whole
from tests.bundles import WORKSPACE, snapshot, workspace, write
from tests.terraform_parts import CLUSTER, ML, SCOPE, WORKSPACE_ID, change, plan, resource
from tests.terraform_parts import WORKSPACE as ATTRIBUTES

SUBSCRIPTION = "11111111-1111-1111-1111-111111111111"


def read(document: object, **more: Any) -> ChangesRead:
    """The changes of a document, as JSON in the body of a request."""
    return parse_changes(json.dumps(document).encode(), "body", **more)


def operations(document: object, **more: Any) -> list[tuple[str, str]]:
    """The operations and ids of a document without a problem."""
    found = read(document, **more)
    assert not found.problems
    return [(str(change.operation), change.id) for change in found.changes]


def refused(document: object) -> str:
    """The problem of a document that changes nothing."""
    found = read(document)
    assert not found.changes
    [problem] = found.problems
    assert problem.level == "error"
    return f"{problem.place}: {problem.message}"


# ---------------------------------------------------------------- ours


def test_changes_are_read_in_their_order() -> None:
    """All forms: a resource, an id, each operation in any letters; alone, in a list, and below `changes`."""
    listed: list[Any] = [
        workspace("w"),
        f"{WORKSPACE}/computes/c",
        {"operation": "Create", "resource": workspace("a", x=1)},
        {"operation": "patch", "id": WORKSPACE, "patch": {"tags": {"a": None}}},
        {"operation": "delete", "id": WORKSPACE},
    ]
    expected = [
        ("replace", WORKSPACE),
        ("delete", f"{WORKSPACE}/computes/c"),
        ("create", workspace("a")["id"]),
        ("patch", WORKSPACE),
        ("delete", WORKSPACE),
    ]
    whole = read({"changes": listed})

    assert operations(listed) == operations({"changes": listed}) == expected
    assert operations(listed[4]) == expected[4:]
    assert operations(listed[0]) == expected[:1]
    assert whole.changes[2].resource == workspace("a", x=1)
    assert whole.changes[3].patch == {"tags": {"a": None}}


def test_a_put_replaces_the_whole_resource() -> None:
    """A resource without `properties` has none then; in a list of resources they would be unsaid."""
    bare = {key: value for key, value in workspace("a").items() if key != "properties"}

    for put in (bare, {"operation": "create", "resource": bare}):
        assert read({"changes": [put]}).changes[0].unreadable == {}
    stated = {"operation": "create", "resource": bare, "unreadable": {"/properties": "not requested"}}
    assert read({"changes": [stated]}).changes[0].unreadable == {"/properties": "not requested"}


def test_yaml_gives_the_same_with_lines(tmp_path: Path) -> None:
    """Each change has the place of what it puts."""
    put = f"- id: {WORKSPACE}\n  type: {workspace()['type']}\n  properties: {{}}\n"
    text = f"changes:\n- operation: delete\n  id: {WORKSPACE}\n{put}"
    found = read_changes([write(tmp_path, {"c.yaml": text}) / "c.yaml"])
    places = [change.origin.line if change.origin else 0 for change in found.changes]

    assert [str(change.operation) for change in found.changes] == ["delete", "replace"]
    assert places == [2, 4]


REFUSED: dict[str, tuple[object, str]] = {
    "no change": ({"changes": []}, "body:1: no changes"),
    "no list": ({"changes": "x"}, "/changes: `changes` is a string, not a list"),
    "another key": ({"changes": [], "change": 1}, "unknown key `change`; did you mean `changes`"),
    "another operation": ({"operation": "remove", "id": WORKSPACE}, "/operation: unknown operation `remove`"),
    "no operation": ({"operation": 1}, "unknown operation `1`"),
    "a surplus": ({"operation": "delete", "id": WORKSPACE, "patch": {}}, "/patch: a delete has no `patch`"),
    "no id": ({"operation": "delete"}, "`id` is missing; add `id`"),
    "no ARM id": ({"operation": "delete", "id": "ws"}, "`id` is not the full ARM id of a resource: `ws`"),
    "no patch": ({"operation": "patch", "id": WORKSPACE}, "a patch without `patch`"),
    "a list as a patch": ({"operation": "patch", "id": WORKSPACE, "patch": []}, "`patch` is a list, not an object"),
    "no resource": ({"operation": "create", "id": WORKSPACE}, "a create without `resource`"),
    "two ids": (
        {"operation": "create", "id": f"{WORKSPACE}2", "resource": workspace()},
        "/resource: the change names `/subscriptions/s",
    ),
    "no resource at all": ([{"operation": "create", "resource": {"id": 1}}], "/0/resource: not a resource, because"),
    "a text in a list": (["ws"], "/0: a text is a change only if it is the full ARM id of a resource to delete: `ws`"),
    "a number in a list": (["/subscriptions/s", 7], "/1: not a change: expected an object, found a number"),
    "nothing": ({"snapshotVersion": 1, "resources": []}, "the documents contain no changes"),
    "another document": ({"name": "x"}, "unsupported format"),
}


@pytest.mark.parametrize(("document", "message"), REFUSED.values(), ids=REFUSED)
def test_other_documents_than_changes_are_refused_with_their_place(document: object, message: str) -> None:
    """By line and pointer, with what it is and a remedy."""
    found = read(document)

    assert any(message in f"{problem.place}: {problem.message}" for problem in found.problems), found.problems
    assert any(problem.level == "error" for problem in found.problems)


def test_a_faulty_change_hides_no_other() -> None:
    """The rest is read, and the error is reported."""
    found = read([workspace("w"), "ws"])

    assert len(found.changes) == len(found.problems) == 1


KEYS = (
    *("changes", "operation", "id", "resource", "patch", "type", "changeType", "resourceId", "after", "before"),
    *("delta", "path", "status", "properties", "error", "diagnostics", "potentialChanges"),
)


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["delete", "Create", WORKSPACE, "[f(x)]"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(KEYS),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_nothing_makes_the_reader_raise_or_stay_silent(document: object) -> None:
    """Any document changes something, changes nothing, or is a problem."""
    found = read(document)

    assert found.changes or found.problems or "changes" in json.dumps(document).lower() or "status" in str(document)
    assert all(isinstance(change, Change) for change in found.changes)


# ---------------------------------------------------------------- what-if


def predicted(kind: str, after: JsonObject | None = None, **more: object) -> JsonObject:
    """One change as what-if predicts it."""
    return {"resourceId": WORKSPACE, "changeType": kind, "before": None, "after": after, "delta": None, **more}


def prediction(*changes: JsonObject, **more: object) -> JsonObject:
    """The output of the Azure CLI."""
    return {"changes": list(changes), "error": None, "status": "Succeeded", **more}


AFTER = {**workspace("w", publicNetworkAccess="Disabled"), "apiVersion": "2024-04-01", "name": "w"}


def test_the_forms_of_the_azure_cli_and_of_the_rest_api_are_equal() -> None:
    """Creations, modifications and deletions; what stays as it is is no change."""
    child = f"{WORKSPACE}/computes/c"
    changes = [
        predicted("Create", AFTER),
        predicted("Delete", resourceId=child),
        predicted("NoChange", AFTER),
        predicted("Ignore", AFTER, before=AFTER),
    ]
    rest = {"status": "succeeded", "properties": {"correlationId": "x", "changes": changes}}

    assert operations(prediction(*changes)) == operations(rest) == [("create", WORKSPACE), ("delete", child)]
    assert operations(prediction(predicted("modify", AFTER))) == [("replace", WORKSPACE)]


def test_a_prediction_that_nothing_changes_is_no_problem() -> None:
    """With an empty list, and with all of it as it is."""
    assert operations(prediction()) == operations(prediction(predicted("NoChange", AFTER))) == []


def test_values_known_only_at_deployment_are_unreadable() -> None:
    """Expressions and masked values at any depth, with the text; what the service makes, unless it was there before."""
    properties = {"a": "[reference('x').y]", "b": {"c": ["[listKeys(r, '1').k]", "ok"]}, "d": "***", "e": "[no call]"}
    [created] = read(prediction(predicted("Create", {**AFTER, "properties": properties}))).changes
    before = {**AFTER, "properties": {"provisioningState": "Succeeded"}}
    [modified] = read(prediction(predicted("Modify", AFTER, before=before))).changes

    assert created.resource is not None
    assert created.resource["properties"] == {"b": {"c": [None, "ok"]}, "e": "[no call]"}
    assert {"/properties/a", "/properties/b/c/0", "/properties/d", "/properties/provisioningState"} <= set(
        created.unreadable
    )
    assert "[reference('x').y]" in created.unreadable["/properties/a"]
    assert modified.resource is not None
    assert modified.resource["properties"]["provisioningState"] == "Succeeded"
    assert "/properties/provisioningState" not in modified.unreadable


def test_values_that_the_service_will_not_take_are_as_before() -> None:
    """A property change without effect; where the current value is not stated, it is unknown."""
    after = {**AFTER, "properties": {"a": 1, "b": {"c": 2}, "d": 3}}
    delta = [
        {"path": "properties.a", "propertyChangeType": "NoEffect", "before": 7, "after": 1},
        {
            "path": "properties.b",
            "propertyChangeType": "Modify",
            "children": [{"path": "c", "propertyChangeType": "NoEffect", "after": 2}],
        },
        {"path": "properties.d", "propertyChangeType": "Modify", "before": 1, "after": 3},
    ]
    [change] = read(prediction(predicted("Modify", after, delta=delta))).changes

    assert change.resource is not None
    assert change.resource["properties"] == {"a": 7, "b": {"c": None}, "d": 3}
    assert "accepts no value" in change.unreadable["/properties/b/c"]


def test_unsupported_changes_are_wholly_unknown() -> None:
    """Of a resource whose id is known nothing else is; one whose id is not is an error."""
    [change] = read(prediction(predicted("Unsupported", unsupportedReason="extension"))).changes
    nowhere = predicted("Unsupported", resourceId="[guid(reference('x'))]", unsupportedReason="id not known")

    assert change.carried is not None
    assert set(change.carried.pointers) == {"/id", "/type"}
    assert "(extension)" in change.carried.reason
    assert refused(prediction(nowhere)).startswith(
        "body:1: /changes/0: what-if cannot determine what changes: id not known"
    )


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (prediction(predicted("Deploy")), "does not report the result for"),
        (prediction(predicted("Modify")), "--result-format FullResourcePayloads"),
        (prediction(predicted("Moved", AFTER)), "unknown change type `Moved`"),
        (prediction({"changeType": 1}), "a change without `changeType`"),
        (
            {"status": "Failed", "error": {"code": "c", "message": "no rights"}},
            "ended with the status `Failed`: no rights",
        ),
        (prediction(diagnostics=[{"level": "Warning", "code": "NestedDeploymentShortCircuited"}]), "omitted something"),
        (prediction(diagnostics=[{"level": "Error", "code": "c", "message": "broken"}]), "omitted something: broken"),
    ],
)
def test_a_prediction_that_is_not_whole_is_an_error(document: object, message: str) -> None:
    """Never silence."""
    assert message in refused(document)


def test_potential_changes_are_evaluated_as_changes() -> None:
    """With a warning that states it; and what was not looked into is reported, too."""
    found = read(prediction(predicted("Ignore"), potentialChanges=[predicted("Create", AFTER)]))

    assert [change.operation for change in found.changes] == [Operation.CREATE]
    assert sorted(problem.level for problem in found.problems) == ["warning", "warning"]


# ---------------------------------------------------------------- plans


def of(entry: JsonObject, *actions: str, before: JsonObject | None = None) -> JsonObject:
    """The planned change of an entry."""
    found = change(entry, {})
    return {**found, "change": {**found["change"], "actions": list(actions), "before": before}}


HERE = DocumentContext(scope=SCOPE)
WS, CPU = f"{ML}_workspace", f"{ML}_compute_cluster"


def test_a_plan_states_its_puts_and_deletions() -> None:
    """Deletes first; what it leaves as it is and what it only reads is no change."""
    ws, cpu = resource(WS, ATTRIBUTES), resource(CPU, CLUSTER)
    gone = of(resource(CPU, CLUSTER, name="old"), "delete", before={"id": f"{WORKSPACE_ID}/computes/old"})
    document = plan([ws, cpu], [of(ws, "no-op", before=ATTRIBUTES), of(cpu, "create"), gone], [])
    cpu_id = f"{WORKSPACE_ID}/computes/cpu"

    assert [(str(c.operation), c.id) for c in read(document, context=HERE).changes] == [
        ("delete", f"{WORKSPACE_ID}/computes/old"),
        ("replace", cpu_id),
    ]
    replaced = plan([cpu], [of(cpu, "delete", "create", before={"id": cpu_id})], [])
    assert operations(replaced, context=HERE) == [("delete", cpu_id), ("replace", cpu_id)]
    assert operations(plan([ws], [of(ws, "no-op", before=ATTRIBUTES)], []), context=HERE) == []


def test_a_mere_link_in_terraform_deletes_nothing_of_its_id() -> None:
    """An association has the id of the subnet that it is about."""
    subnet = f"{SCOPE}/providers/Microsoft.Network/virtualNetworks/net/subnets/train"
    link = {"address": "x", "mode": "managed", "type": "azurerm_subnet_network_security_group_association", "name": "x"}
    gone = {**link, "change": {"actions": ["delete"], "before": {"id": subnet}, "after": None}}

    assert operations(plan([], [gone], []), context=HERE) == []


def test_what_azapi_sets_over_a_resource_is_a_patch() -> None:
    """Of one that the plan does not contain."""
    values = {
        "type": "Microsoft.MachineLearningServices/workspaces@2024-10-01",
        "resource_id": WORKSPACE_ID,
        "body": {"properties": {"publicNetworkAccess": "Enabled"}},
    }
    entry = resource("azapi_update_resource", values)
    [change] = read(plan([entry], [of(entry, "create")], []), context=HERE).changes

    assert (change.operation, change.id) == (Operation.PATCH, WORKSPACE_ID)
    assert change.patch["properties"] == {"publicNetworkAccess": "Enabled"}


# ---------------------------------------------------------------- resources and whole states


def test_resources_of_any_format_are_put_with_what_is_not_known(tmp_path: Path) -> None:
    """A file of the Azure CLI carries some fields only; facts of the organisation are reported as left out."""
    text = "$schema: https://azuremlschemas.azureedge.net/latest/amlCompute.schema.json\nname: cpu\ntype: amlcompute\n"
    [cluster] = read_changes(
        [write(tmp_path, {"c.yml": text}) / "c.yml"], context=DocumentContext(workspace=WORKSPACE)
    ).changes
    approval = {"id": "A", "scope": "/subscriptions/s", "status": "granted"}
    native = read({"snapshotVersion": 1, "resources": [workspace()], "approvals": [approval]})

    assert cluster.operation is Operation.REPLACE
    assert cluster.carried is not None or cluster.unreadable
    assert [change.id for change in native.changes] == [WORKSPACE]
    assert "the `approvals` are not changes and are ignored" in native.problems[0].message


def whole(tmp_path: Path, before: Snapshot, *after: JsonObject) -> list[tuple[str, str]]:
    """The changes that lead to a whole state."""
    text = json.dumps({"snapshotVersion": 1, "resources": after})
    found = read_whole([write(tmp_path, {"s.json": text}) / "s.json"], before)
    return [(str(change.operation), change.id) for change in found.changes]


def test_a_whole_state_is_what_differs_and_what_is_gone(tmp_path: Path) -> None:
    """A child is deleted before its parent; an equal resource is no change."""
    child = workspace("a") | {"id": f"{workspace('a')['id']}/computes/c"}
    before = snapshot(workspace("a"), child, workspace("b"), workspace("c", x=1))

    assert whole(tmp_path, before, workspace("b"), workspace("c", x=2), workspace("d")) == [
        ("delete", child["id"]),
        ("delete", workspace("a")["id"]),
        ("replace", workspace("c")["id"]),
        ("replace", workspace("d")["id"]),
    ]
    assert whole(tmp_path, snapshot()) == []
