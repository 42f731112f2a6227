"""What requests to the Kubernetes API server change in Azure."""

from __future__ import annotations

from typing import Any

import pytest

from policyeng.errors import InputError
from policyeng.models import Change, JsonObject, Operation, Snapshot
from policyeng.server.admission_review import ReviewedObject, ReviewRequest, Verb, convert_request
from policyeng.sources.kubernetes.single_object import BesideSnapshot
from tests.cluster import ELSEWHERE, GROUP, WORKSPACE, object_of, workspace_object

ML_TYPE = "Microsoft.MachineLearningServices/workspaces"
CLUSTER = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/aks"


def in_azure(identity: str, arm_type: str = ML_TYPE, **properties: object) -> JsonObject:
    """A resource of the snapshot."""
    return {"id": identity, "type": arm_type, "properties": properties}


def attachment(name: str, cluster: str = CLUSTER, **types: object) -> JsonObject:
    """A Kubernetes compute with instance types."""
    inside = {"computeType": "Kubernetes", "resourceId": cluster, "properties": {"instanceTypes": types}}
    return in_azure(f"{WORKSPACE}/computes/{name}", f"{ML_TYPE}/computes", **inside)


def instance_type(name: str, **spec: object) -> JsonObject:
    """An instance type of the Azure ML extension."""
    return object_of("InstanceType", spec, api_version="amlarc.azureml.com/v1alpha1", name=name)


def request_of(
    verb: str, new: JsonObject | None, old: JsonObject | None, *resources: JsonObject, **more: Any
) -> ReviewedObject:
    """The changes that a request makes to a snapshot."""
    snapshot = Snapshot.model_validate({"resources": resources, **more})
    return convert_request(ReviewRequest(Verb(verb), new, old), BesideSnapshot(snapshot))


def types_in(change: Change) -> JsonObject:
    """The instance types of the compute that a change leaves."""
    assert change.resource is not None
    types: JsonObject = change.resource["properties"]["properties"]["instanceTypes"]
    return types


def test_an_update_is_from_what_the_cluster_contains() -> None:
    """Both under the id that the service gave it, whatever their names are."""
    there = {"id": f"{ELSEWHERE}/providers/{ML_TYPE}/real"}
    old = workspace_object(publicNetworkAccess="Enabled", status=there)
    new = workspace_object(publicNetworkAccess="Disabled", status=there)
    request = request_of("UPDATE", new, old, in_azure(WORKSPACE))

    assert [change.id for change in request.prior + request.changes] == [there["id"]] * 2
    access = [
        change.resource["properties"]["publicNetworkAccess"]
        for change in request.prior + request.changes
        if change.resource
    ]
    assert access == ["Enabled", "Disabled"]
    assert request.fields[there["id"].lower()]["/properties/publicNetworkAccess"] == "/spec/publicNetworkAccess"


def test_a_creation_is_not_placed_by_its_status() -> None:
    """Only the operator knows the id, and it has not seen the object."""
    new = workspace_object(status={"id": f"{ELSEWHERE}/providers/{ML_TYPE}/other"})

    assert [change.id for change in request_of("CREATE", new, None, in_azure(WORKSPACE)).changes] == [WORKSPACE]


def test_the_status_is_not_part_of_the_request() -> None:
    """A field that the spec does not state any more is not there, though it was."""
    status = {"id": WORKSPACE, "publicNetworkAccess": "Disabled"}
    old = workspace_object(publicNetworkAccess="Disabled", status=status)
    [change] = request_of("UPDATE", workspace_object(status=status), old).changes

    assert change.resource is not None
    assert "publicNetworkAccess" not in change.resource["properties"]


def test_what_only_the_service_sets_stays_as_in_the_snapshot() -> None:
    """The private endpoints, which no object states."""
    [change] = request_of(
        "CREATE", workspace_object(), None, in_azure(WORKSPACE, privateEndpointConnections=[{"id": "e"}])
    ).changes

    assert change.resource is not None
    assert change.resource["properties"]["privateEndpointConnections"] == [{"id": "e"}]
    assert "/properties/privateEndpointConnections" not in change.unreadable
    assert "/properties/provisioningState" in change.unreadable


def test_an_unknown_id_is_open_and_reported() -> None:
    """The resource is evaluated as a new one."""
    request = request_of("CREATE", workspace_object(), None)

    assert "{subscription}" in request.changes[0].id
    assert "spec.owner.armId" in request.remarks[0]


@pytest.mark.parametrize(
    ("policy", "verb", "changes"),
    [
        ("manage", "DELETE", 1),
        ("detach-on-delete", "DELETE", 0),
        ("skip", "DELETE", 0),
        ("Skip", "DELETE", 1),
        ("detach-on-delete", "UPDATE", 1),
        ("skip", "UPDATE", 0),
        ("skip", "CREATE", 0),
        ("SKIP", "CREATE", 1),
    ],
)
def test_what_the_operator_leaves_alone_does_not_change(policy: str, verb: str, changes: int) -> None:
    """By the annotation, spelled as the operator reads it."""
    shown = workspace_object(policy=policy)
    new, old = (shown if verb != "DELETE" else None), (shown if verb != "CREATE" else None)

    assert len(request_of(verb, new, old, in_azure(WORKSPACE)).changes) == changes


def test_what_was_left_alone_and_is_managed_now_changes_azure() -> None:
    """From what exists, not from what the object stated."""
    request = request_of(
        "UPDATE", workspace_object(kind="Hub"), workspace_object(policy="skip", kind="Hub"), in_azure(WORKSPACE)
    )

    assert request.prior == ()
    assert [change.id for change in request.changes] == [WORKSPACE]


def test_a_deletion_is_of_what_the_old_object_represents() -> None:
    """Also where its spec cannot be read."""
    broken = object_of("WorkspacesCompute", {"owner": {"name": "ws"}, "properties": {"aks": {}, "amlCompute": {}}})
    for old in (workspace_object(), {**broken, "status": {"id": f"{WORKSPACE}/computes/it"}}):
        [change] = request_of("DELETE", None, old, in_azure(WORKSPACE)).changes
        assert change.operation is Operation.DELETE
        assert change.id.startswith(WORKSPACE)


def test_what_cannot_be_read_is_refused_unless_it_was_there_and_is_not_touched() -> None:
    """So that the operator can take its finalizers away; an unreadable object has no content."""
    spec = {"owner": {"name": "ws"}, "properties": {"aks": {}, "amlCompute": {}}}
    broken, repaired = object_of("WorkspacesCompute", spec), {"owner": {"name": "ws"}, "properties": {"aks": {}}}
    with pytest.raises(InputError, match="more than one kind of compute"):
        request_of("CREATE", broken, None)
    with pytest.raises(InputError, match="more than one kind of compute"):
        request_of("UPDATE", broken, object_of("WorkspacesCompute", repaired))
    touched = {**broken, "metadata": {**broken["metadata"], "finalizers": []}}
    assert request_of("UPDATE", touched, broken).changes == ()
    request = request_of("UPDATE", object_of("WorkspacesCompute", repaired), broken, in_azure(WORKSPACE))
    assert (request.prior, [change.id for change in request.changes]) == ((), [f"{WORKSPACE}/computes/it"])


def test_a_deletion_of_an_ambiguous_object_names_a_remedy() -> None:
    """The object alone can go."""
    old = object_of("WorkspacesCompute", {"owner": {"name": "ws"}})
    twice = in_azure(WORKSPACE.replace("rg-ml", "rg-other"))
    with pytest.raises(InputError, match="detach-on-delete"):
        request_of("DELETE", None, old, in_azure(WORKSPACE), twice)


def test_an_instance_type_goes_into_the_attachments_of_the_cluster() -> None:
    """Put in, put in the place of, and taken out; the others stay."""
    small = {"resources": {"limits": {"cpu": "1"}}}
    computes = [attachment("a", old=small), attachment("b")]
    put, taken = instance_type("gpu", **small), instance_type("old", **small)
    created = request_of("CREATE", put, None, *computes)

    assert [set(types_in(change)) for change in created.changes] == [{"gpu", "old"}, {"gpu"}]
    assert created.remarks == ()
    assert [set(types_in(change)) for change in request_of("DELETE", None, taken, *computes).changes] == [set(), set()]
    [open_] = request_of(
        "CREATE", instance_type("gpu", resourcesFromConfig={"name": "c", "key": "k"}), None, computes[0]
    ).changes
    assert list(open_.unreadable) == ["/properties/properties/instanceTypes/gpu/resources"]
    renamed = request_of("UPDATE", put, taken, computes[0])
    assert [set(types_in(change)) for change in renamed.prior + renamed.changes] == [{"old"}, {"gpu"}]


def test_an_instance_type_of_one_of_several_clusters_is_separate() -> None:
    """Nothing states which cluster it is of."""
    computes = [attachment("a"), attachment("b", cluster=f"{CLUSTER}2")]
    [change] = request_of("CREATE", instance_type("gpu", resources={}), None, *computes).changes

    assert "/computes/{kubernetes-gpu}" in change.id
    [gone] = request_of("DELETE", None, instance_type("gpu", resources={}), *computes).changes
    assert (gone.operation, gone.id) == (Operation.DELETE, change.id)
