"""Indices of a snapshot: each finds what a walk through the whole snapshot finds, in the same order."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from policyeng import evaluate
from policyeng.bundle import load_bundle
from policyeng.evaluation.prepared_snapshot import estate_of, indices_of
from policyeng.facts import Facts
from policyeng.facts.ids import place_in_arm, resource_group_of, segments, workspace_of
from policyeng.facts.words import fold
from policyeng.models import JsonObject, Outcome, Snapshot
from tests.bundles import rego, write
from tests.test_evaluation import AS_OF

GROUP = "/subscriptions/s/resourceGroups/g"
WORKSPACE = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/w"
CLUSTER = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/k"
COMPUTES = "microsoft.machinelearningservices/workspaces/computes"
DEFINITIONS = "microsoft.authorization/roledefinitions"

hosts = st.sampled_from(
    [CLUSTER, CLUSTER.upper(), f"{CLUSTER}/", f"{CLUSTER}//", f"{CLUSTER}2", "", "/", None, 7, [CLUSTER]]
)
kinds = st.sampled_from(["AKS", "kubernetes ", "Kubernetes", "Databricks", "VirtualMachine", None, 7])
guids = st.sampled_from(["r", "R", "r2", "r/", "r//", " R ", "/"])
computes = st.builds(
    lambda name, host, kind: {
        "id": f"{WORKSPACE}/computes/{name}",
        "type": "Microsoft.MachineLearningServices/Workspaces/computes",
        "properties": {"computeType": kind, "resourceId": host},
    },
    st.integers(0, 9),
    hosts,
    kinds,
)
definitions = st.builds(
    lambda at, guid, name: {
        "id": f"{at}/providers/Microsoft.Authorization/roleDefinitions/{guid}",
        "type": "Microsoft.Authorization/roleDefinitions",
        "properties": {"roleName": name, "permissions": []},
    },
    st.sampled_from(["", "/subscriptions/s", "/subscriptions/t"]),
    guids,
    st.sampled_from(["A", "B", None]),
)
others = st.sampled_from(
    [
        {"id": WORKSPACE, "type": "Microsoft.MachineLearningServices/workspaces"},
        {"id": CLUSTER, "type": "Microsoft.ContainerService/managedClusters"},
        {"id": f"{CLUSTER}/", "type": "Microsoft.ContainerService/managedClusters", "properties": "no object"},
        {"id": "no id at all", "type": COMPUTES},
        {"id": f"{GROUP}/providers/x/y/z", "type": COMPUTES, "properties": {"resourceId": CLUSTER}},
    ]
)
approvals = st.builds(
    lambda number, kind, series: {
        "id": f"A-{number}",
        "kind": kind,
        "series": series,
        "scope": "/",
        "status": "granted",
    },
    st.integers(0, 5),
    st.sampled_from(["vmSeries", " VMSERIES", "quota"]),
    st.sampled_from(["M", " m", "NCsv3", "", " "]),
)
entries: st.SearchStrategy[JsonObject] = st.one_of(computes, definitions, others)
resources = st.lists(entries, max_size=8, unique_by=lambda one: str(one["id"]).lower())
snapshots = st.builds(
    lambda given, stated: Snapshot.model_validate({"resources": given, "approvals": stated}),
    resources,
    st.lists(approvals, max_size=5, unique_by=lambda one: str(one["id"])),
)

# The shared Rego before there were indices.
SCANS = """
import data.lib.approvals
import data.lib.computes
import data.lib.ids
import data.lib.roles
import data.lib.words

deny contains "backed by" if {
	some resource in input.snapshot.resources
	computes.backed_by(resource, input.snapshot) != [compute |
		some compute in input.snapshot.by_type[computes.compute_type]
		computes.kind(compute) in {"aks", "kubernetes"}
		is_string(compute.properties.resourceId)
		ids.folded(compute.properties.resourceId) == ids.folded(resource.id)
	]
}

deny contains "role definitions" if {
	some guid in ["r", "r2", "x"]
	[role.name | some role in roles.named(guid, input.snapshot)] != [name |
		some definition in input.snapshot.by_type["microsoft.authorization/roledefinitions"]
		roles.guid(definition.id) == guid
		name := object.get({"A": "A", "B": "B"}, [definition.properties.roleName], guid)
	]
}

deny contains "approvals" if {
	some series in ["M", "ncsv3", "ND"]
	approvals.of_series(input.snapshot, series) != [approval |
		some approval in input.snapshot.approvals
		words.folded(approval.kind) == "vmseries"
		words.folded(approval.series) == lower(series)
	]
}
"""


def holders(key: str) -> list[str]:
    """The subscription, resource group and workspace that contain an id, `/` where there is none."""
    parts = segments(key) or ()
    subscription = "/".join(["", *parts[:2]]) if parts[:1] == ("subscriptions",) else None
    return [scope for scope in (subscription, resource_group_of(key), workspace_of(key)) if scope] or ["/"]


def by_id_of(snapshot: Snapshot) -> dict[str, JsonObject]:
    """The resources by lower-case id, in their order."""
    return dict(sorted((str(resource["id"]).lower(), resource) for resource in snapshot.resources))


@settings(deadline=None)
@given(snapshots)
def test_scopes_contain_what_lies_in_them(snapshot: Snapshot) -> None:
    """Every resource is under its subscription, resource group and workspace, and under nothing else."""
    by_id = by_id_of(snapshot)
    found = {
        (scope, kind, key)
        for scope, kinds in indices_of(
            ((key, resource, place_in_arm(key)) for key, resource in by_id.items()),
            {"approvals": [], "metrics": [], "principals": []},
        )["by_scope"].items()
        for kind, keys in kinds.items()
        for key in keys
    }
    expected = {(scope, resource["type"].lower(), key) for key, resource in by_id.items() for scope in holders(key)}
    assert found == expected


@settings(deadline=None)
@given(snapshots)
def test_hosts_definitions_and_approvals_are_found_as_by_a_walk(snapshot: Snapshot) -> None:
    """Ids compare without case and without one slash at the end; of a role's id the last part that is not empty."""
    by_id = by_id_of(snapshot)
    view = estate_of(snapshot, Facts({})).view
    for resource in snapshot.resources:
        wanted = str(resource["id"]).lower().removesuffix("/")
        on_it = [key for key, one in by_id.items() if _host_of(one) == wanted]
        assert list(view.by_host.get(wanted, ())) == on_it
    assert {key for keys in view.by_guid.values() for key in keys} == {
        key for key, one in by_id.items() if one["type"].lower() == DEFINITIONS and key.strip("/ ")
    }
    assert all(key.rstrip("/ ").endswith(guid) for guid, keys in view.by_guid.items() for key in keys)
    counted = [one for one in view.approvals if fold(one["kind"]) == "vmseries" and fold(one["series"])]
    assert sorted(position for positions in view.by_series.values() for position in positions) == [
        position for position, one in enumerate(view.approvals) if one in counted
    ]


def _host_of(resource: JsonObject) -> str | None:
    properties = resource.get("properties")
    host = properties.get("resourceId") if isinstance(properties, dict) else None
    is_compute = resource["type"].lower() == COMPUTES
    return host.lower().removesuffix("/") if is_compute and isinstance(host, str) else None


def test_the_shared_rego_finds_as_by_a_walk(tmp_path: Path) -> None:
    """The lookups of the library give what the scans they replaced gave, in the same order."""
    bundle = load_bundle(write(tmp_path, {"area/scans/scans.rego": rego("scans", SCANS)}))
    subject = {"id": f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/judged"}
    subject["type"] = "Microsoft.MachineLearningServices/workspaces"

    @settings(deadline=None)
    @given(snapshots)
    def check(snapshot: Snapshot) -> None:
        whole = snapshot.model_copy(update={"resources": (*snapshot.resources, subject)})
        for finding in evaluate(bundle, whole, as_of=AS_OF).findings:
            assert finding.outcome is Outcome.PASS, finding.denials or finding.unknowns

    check()


def test_metrics_and_principals_are_found_by_what_they_concern() -> None:
    """Ids compare without case and without a slash at the end, and the order in which they are stated is irrelevant."""
    metrics = [{"resourceId": f"{WORKSPACE}/", "name": name, "unit": "percent"} for name in ("a", "b")]
    metrics += [{"resourceId": WORKSPACE.upper(), "name": "c", "unit": "percent"}]
    metrics += [{"resourceId": f"{WORKSPACE}2", "name": "d", "unit": "percent"}]
    principals = [{"id": " P "}, {"id": "p"}, {"id": "p2"}]
    views = [
        estate_of(Snapshot.model_validate({"metrics": ms, "principals": ps}), Facts({})).view
        for ms, ps in ((metrics, principals), (metrics[::-1], principals[::-1]))
    ]

    assert [views[0].metrics[at]["name"] for at in views[0].by_measured[WORKSPACE.lower()]] == ["c", "a", "b"]
    assert [views[0].principals[at]["id"] for at in views[0].by_principal["p"]] == [" P ", "p"]
    assert views[0].metrics == views[1].metrics
    assert views[0].principals == views[1].principals


SUBNET = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/v/subnets/a"
subnet_ids = st.sampled_from(
    [SUBNET, SUBNET.upper(), f"{SUBNET}/", f"{SUBNET}//", f"{SUBNET}2", "", " ", None, 7, [SUBNET]]
)
sitting = st.builds(
    lambda name, kind, subnet: {
        "id": f"{WORKSPACE}/computes/{name}",
        "type": COMPUTES,
        "properties": {
            "computeType": kind,
            "properties": {"subnet": {"id": subnet}, "aksNetworkingConfiguration": {"subnetId": subnet}},
        },
    },
    st.integers(0, 9),
    st.sampled_from(["AmlCompute", "computeInstance", "AKS", "Kubernetes", "VirtualMachine", 7]),
    subnet_ids,
)
clusters = st.builds(
    lambda name, pools: {
        "id": f"{CLUSTER}{name}",
        "type": "Microsoft.ContainerService/ManagedClusters",
        "properties": {"agentPoolProfiles": pools},
    },
    st.integers(0, 3),
    st.lists(st.builds(lambda subnet: {"vnetSubnetID": subnet}, subnet_ids) | st.just("text"), max_size=3),
)


@settings(deadline=None)
@given(st.lists(st.one_of(sitting, clusters), max_size=8, unique_by=lambda one: str(one["id"]).lower()))
def test_subnets_contain_their_nodes(given_resources: list[JsonObject]) -> None:
    """Subnets compare without case and without one slash at the end; each compute and cluster is there once."""
    view = estate_of(Snapshot(resources=tuple(given_resources)), Facts({})).view
    wanted = SUBNET.lower()
    inside = [key for key, one in view.by_id.items() if wanted in map(_folded_id, _subnets_stated(one))]

    assert list(view.by_subnet.get(wanted, ())) == inside
    assert set(view.by_subnet) <= {wanted, f"{wanted}/", f"{wanted}2"}


def _folded_id(value: object) -> object:
    return value.lower().removesuffix("/") if isinstance(value, str) else None


def _subnets_stated(resource: JsonObject) -> list[object]:
    properties = resource["properties"]
    if resource["type"] != COMPUTES:
        return [pool["vnetSubnetID"] for pool in properties["agentPoolProfiles"] if isinstance(pool, dict)]
    if properties["computeType"] in ("AmlCompute", "computeInstance", "AKS"):
        return [properties["properties"]["subnet"]["id"]]
    return []


def test_what_is_the_same_for_a_snapshot_is_worked_out_once() -> None:
    """Each key has one value per view, also when that is None."""
    first, second = (estate_of(Snapshot(), Facts({})).view for _ in range(2))
    queried: list[str] = []

    def make(name: str) -> None:
        queried.append(name)

    for _ in range(2):
        first.once(("a", 1), lambda: make("first"))
        first.once(("a", 2), lambda: make("other key"))
        second.once(("a", 1), lambda: make("second"))

    assert queried == ["first", "other key", "second"]
    assert first.once("three", lambda: 3) == first.once("three", lambda: 4) == 3
    assert first == second
