"""Rego and Python give the same for the computes, roles and workloads of a whole snapshot."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.bundle import load_bundle
from policyeng.evaluation.prepared_snapshot import PreparedSnapshot, estate_of
from policyeng.facts import approvals, roles
from policyeng.facts.computes import (
    CLUSTER_TYPE,
    COMPUTE_TYPE,
    backed_by,
    cluster_of,
    compute_regulated,
    kind_of,
    node_sizes,
    own_size,
    pools,
)
from policyeng.facts.ids import workspace_of
from policyeng.models import JsonObject, Snapshot, lowered
from policyeng.verify.strategies import snapshots
from tests.drawn import AS_OF, LAW
from tests.probes import Probe

BUNDLE = load_bundle()
#: Estates of the policies that evaluate computes, which the tests here are about.
OF_COMPUTES = [
    policy
    for policy in BUNDLE.policies
    if {target.type.lower() for target in policy.header.judges} & {COMPUTE_TYPE, CLUSTER_TYPE, "workload"}
]
ESTATES = (
    snapshots(BUNDLE.only(OF_COMPUTES))
    .map(lambda snapshot: estate_of(snapshot, BUNDLE.facts))
    .filter(lambda estate: estate.view.resources)
)
CLASSIFICATIONS = ["regulated", "Restricted"]


def of_each(expression: str) -> str:
    """An expression over `r`, a resource, evaluated for every resource of the snapshot: by its position."""
    return f"{{format_int(at, 10): value | some at, r in input.snapshot.resources; value = {expression}}}"


def by_position(estate: PreparedSnapshot, function: Any) -> dict[str, Any]:
    """The results of a function for every resource, by position as in Rego; None is undefined."""
    found = {str(at): function(resource) for at, resource in enumerate(estate.view.resources)}
    return {at: value for at, value in found.items() if value is not None}


COMPUTES = Probe(
    "computes",
    "ids",
    kind=of_each("computes.kind(r)"),
    place=of_each("computes.size_pointer(r)"),
    size=of_each("computes.size(r)"),
    nodes=of_each("computes.node_sizes(r, input.snapshot.by_id)"),
    pools=of_each("computes.pools(r)"),
    cluster=of_each("computes.cluster_of(r, input.snapshot.by_id).id"),
    backed=of_each("[one.id | some one in computes.backed_by(r, input.snapshot)]"),
    regulated=of_each(
        "computes.regulated(r, ids.workspace_of(r.id, input.snapshot.by_id), input.snapshot, "
        f"{orjson.dumps(CLASSIFICATIONS).decode()})"
    ),
)


@pytest.mark.slow
@LAW
@given(ESTATES)
def test_computes_are_the_same_in_both_languages(estate: PreparedSnapshot) -> None:
    """Kind, size, sizes of all nodes, the cluster behind, what runs on it, and whether it is regulated."""
    view = estate.view
    rego = {name: values[0] for name, values in COMPUTES(BARE, estate.document).items()}

    assert rego["kind"] == by_position(estate, kind_of)
    owned = {at: own_size(resource) for at, resource in enumerate(view.resources)}
    assert rego["place"] == {str(at): own.path for at, own in owned.items() if own}
    assert rego["size"] == {str(at): own.size for at, own in owned.items() if own}
    nodes = by_position(estate, lambda resource: node_sizes(resource, view.by_id))
    assert rego["nodes"] == {at: [{"path": one.path, "size": one.size} for one in of] for at, of in nodes.items()}
    assert rego["pools"] == by_position(estate, pools)
    clusters = by_position(estate, lambda resource: cluster_of(resource, view.by_id))
    assert rego["cluster"] == {at: cluster["id"] for at, cluster in clusters.items()}
    on_it = by_position(estate, lambda resource: [one["id"] for one in backed_by(resource, view.by_id, view.by_host)])
    assert rego["backed"] == on_it
    assert rego["regulated"] == by_position(estate, lambda resource: _regulated(estate, resource))


def _regulated(estate: PreparedSnapshot, resource: JsonObject) -> JsonObject:
    home = estate.view.by_id.get(workspace_of(resource["id"]) or "")
    verdict = compute_regulated(resource, home, estate.view.by_id, estate.view.by_host, CLASSIFICATIONS)
    return {"decided": verdict.decided, "reason": verdict.reason}


BARE: JsonObject = {"id": "/x", "type": "t"}
ACTIONS = [
    "Microsoft.MachineLearningServices/workspaces/computes/start/action",
    "Microsoft.MachineLearningServices/workspaces/read",
]
ROLES = Probe(
    "roles",
    scope=of_each("roles.scope(r)"),
    reaches=of_each("roles.reaches_workspace(r, input.snapshot)"),
    assigned=of_each("roles.named(object.get(r, [`properties`, `roleDefinitionId`], null), input.snapshot)"),
    granted=of_each(
        "[entry.granted | "
        "some role in roles.named(object.get(r, [`properties`, `roleDefinitionId`], null), input.snapshot); "
        f"some entry in roles.granted(r, role, {orjson.dumps(ACTIONS).decode()})]"
    ),
)
ASSIGNMENTS = st.sampled_from([policy for policy in BUNDLE.policies if policy.id == "AML-RBAC-101"]).flatmap(
    lambda policy: snapshots(BUNDLE.only([policy]))
)


@pytest.mark.slow
@LAW
@given(ASSIGNMENTS)
def test_assignments_are_the_same_in_both_languages(snapshot: Snapshot) -> None:
    """Where each reaches, which roles it assigns, and what each grants."""
    estate = estate_of(snapshot, BUNDLE.facts)
    if not estate.view.resources:
        return
    view = estate.view
    rego = {name: values[0] for name, values in ROLES(BARE, estate.document).items()}

    scopes = by_position(estate, roles.scope_of)
    assert rego["scope"] == {at: list(scope) for at, scope in scopes.items()}
    reaching = by_position(estate, lambda one: roles.reaches_workspace(one, view.by_scope, view.by_type) or None)
    assert rego["reaches"] == reaching
    assigned = {
        at: roles.assigned_roles(resource, view.by_id, view.by_guid, BUNDLE.facts)
        for at, resource in enumerate(view.resources)
    }
    assert rego["assigned"] == {
        str(at): [{"guid": role.guid, "name": role.name, "permissions": plain(role.permissions)} for role in of]
        for at, of in assigned.items()
    }
    assert rego["granted"] == {
        str(at): [roles.granted_by(view.resources[at], role, action) for role in of for action in ACTIONS]
        for at, of in assigned.items()
    }


def plain(value: object) -> object:
    """A value as JSON has it: a tuple is a list."""
    return list(value) if isinstance(value, tuple) else value


WORKLOADS = Probe(workloads="input.snapshot.workloads")


@pytest.mark.slow
@LAW
@given(ESTATES)
def test_workloads_are_derived_once_and_given_to_both(estate: PreparedSnapshot) -> None:
    """Rego sees the documents that Python policies see, and each evaluated one is among them."""
    (workloads,) = WORKLOADS(BARE, estate.document)["workloads"]

    assert workloads == list(estate.view.workloads)
    assert workloads == [subject.document for subject in estate.subjects if subject.target_type == "workload"]
    assert all(one["type"] == "workload" for one in workloads)
    assert len({lowered(one["id"]) for one in workloads}) == len(workloads)


APPROVALS = Probe(
    "approvals",
    "ids",
    lacking=of_each(
        "[approvals.lacking(approval, approvals.asked(r, ids.workspace_of(r.id, input.snapshot.by_id), "
        "`2026-06-01T00:00:00Z`)) | some approval in input.snapshot.approvals]"
    ),
    of_series="{name: approvals.of_series(input.snapshot, upper(name)) | some name, _ in input.snapshot.by_series}",
)
APPROVED = st.sampled_from([policy for policy in BUNDLE.policies if policy.id == "AML-SKU-101"]).flatmap(
    lambda policy: snapshots(BUNDLE.only([policy]))
)


@pytest.mark.slow
@LAW
@given(APPROVED)
def test_approvals_are_the_same_in_both_languages(snapshot: Snapshot) -> None:
    """The missing parts of every approval for every resource, at one moment."""
    estate = estate_of(snapshot, BUNDLE.facts)
    if not estate.view.resources:
        return
    view = estate.view
    rego = {name: values[0] for name, values in APPROVALS(BARE, estate.document).items()}

    assert rego["of_series"] == {
        series: [view.approvals[at] for at in positions] for series, positions in view.by_series.items()
    }
    assert rego["lacking"] == by_position(
        estate,
        lambda resource: [
            list(approvals.lacking(approval, resource, view.by_id.get(workspace_of(resource["id"]) or ""), AS_OF))
            for approval in view.approvals
        ],
    )
