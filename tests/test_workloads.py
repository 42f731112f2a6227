"""Properties of all workloads: tags, gaps, order, and that no input makes `derive` raise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyeng.models import DeclaredWorkload, JsonObject, Snapshot
from policyeng.workloads import derive
from tests.effort import effort
from tests.workload_parts import CLUSTER, FACTS, ML, WS, job, one, online, service

SHARED = Path(__file__).resolve().parents[2] / "shared" / "real"


@pytest.mark.parametrize(
    ("resource", "tags"),
    [
        (job({"tags": {"a": "1"}}, tags={"A": "2", "b": "3"}), {"a": "1", "b": "3"}),
        (online({}, tags={"a": "1"}), {"a": "1"}),
        (service({"kvTags": {"a": "1", "b": "2"}}, tags={"B": "3"}), {"a": "1", "B": "3"}),
        (service({}, tags=None), {}),
        (online({}, tags=["a"]), {}),
    ],
)
def test_tags(resource: JsonObject, tags: JsonObject) -> None:
    """A job's own tags are in its properties, other places fill in keys that are missing; no object, no tags."""
    found = one(resource)
    assert found.document["tags"] == tags
    assert "/tags" not in found.unreadable


@pytest.mark.parametrize(
    ("resource", "gap", "field"),
    [
        (online({"endpointComputeType": "Managed"}), "/properties/instanceType", "/accelerator"),
        (online({"endpointComputeType": "Managed"}), "/properties", "/target"),
        (online({}), "/tags/Environment", "/tags/Environment"),
        (job({}), "/properties/computeId", "/target"),
        (job({}), "/properties/resources", "/features"),
        (job({}), "/properties/tags/a~1b", "/tags/a~1b"),
        (service({"computeType": "ACI"}), "/properties/containerResourceRequirements/gpu", "/accelerator"),
        (service({"computeType": "ACI"}), "/properties/containerResourceRequirements", "/memoryGiB"),
        (service({}), "", "/target"),
    ],
)
def test_what_a_format_cannot_carry_is_undecided(resource: JsonObject, gap: str, field: str) -> None:
    """The unreadable pointers of a resource reach every field that is read there, with their reason."""
    found = one(resource, unreadable={resource["id"].lower(): {gap: "an expression"}})
    assert "an expression" in found.unreadable[field]


def test_what_cannot_be_read_of_a_compute_is_undecided_in_its_jobs() -> None:
    """The gaps of a compute are those of the work on it."""
    gaps = {CLUSTER["id"].lower(): {"/properties/properties/vmSize": "an expression"}}
    found = one(job({"computeId": "cpu"}), CLUSTER, unreadable=gaps)
    assert found.document["target"] == "compute-cluster"
    assert "an expression" in found.unreadable["/accelerator"]


def test_workloads_are_sorted_and_lie_in_their_workspace() -> None:
    """One per source, by id without case; the workspace is the part of the id, as spelled there."""
    listed = derive(Snapshot(resources=(service({}), job({}), CLUSTER), workloads=(DeclaredWorkload(id="/A"),)), FACTS)
    assert [workload.reported_id for workload in listed] == ["/A", f"{WS}/jobs/j", service({})["id"]]
    assert [workload.document["workspaceId"] for workload in listed] == [None, WS, WS]
    assert listed[1].document["name"] == "j"


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
WORDS = st.sampled_from(
    ["AmlCompute", "Kubernetes", "AKS", "ACI", "Managed", "Pipeline", "Sweep", "cpu", "k8s", "x", "Standard_GPU", "2"]
)
KEY_WORDS = """
    computeType computeId compute jobType jobs type settings default_compute
    resources instanceType instanceCount endpointComputeType containerResourceRequirements containerResourceLimits
    gpu fpga
    memoryInGB tags kvTags trial distribution computeName properties vmSize
    resourceId instanceTypes deploymentConfiguration
"""
KEYS = st.sampled_from(KEY_WORDS.split())
DOCUMENTS = st.recursive(
    SCALARS | WORDS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=25
)
TYPES = ("jobs", "services", "onlineEndpoints/deployments", "batchEndpoints/deployments", "computes", "onlineEndpoints")


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Resources of every kind with anything inside, gaps anywhere, and declarations about some of them."""
    resources = []
    for index, kind in enumerate(draw(st.lists(st.sampled_from(TYPES), max_size=6))):
        first, _, second = kind.partition("/")
        arm_id = f"{WS}/{first}/e{index}" + (f"/{second}/d" if second else "")
        body = draw(st.dictionaries(st.sampled_from(["properties", "tags", "sku", "name"]), DOCUMENTS))
        resources.append({**body, "id": arm_id, "type": f"{ML}/{kind}"})
    gap = st.lists(KEYS | st.just("~1"), max_size=3).map(
        lambda keys: "".join(f"/{key}" for key in ["properties", *keys])
    )
    ids = [str(resource["id"]) for resource in resources]
    unreadable = {arm_id.lower(): draw(st.dictionaries(gap, st.just("why"), max_size=2)) for arm_id in ids}
    sources = draw(st.lists(st.sampled_from([*ids, f"{WS}/jobs/none"]), max_size=3))
    fields = st.fixed_dictionaries(
        {}, optional={"accelerator": st.sampled_from(["none", "gpu"]), "target": st.sampled_from(["aci", "local"])}
    )
    declared = [{"id": f"w{index}", "sourceId": source, **draw(fields)} for index, source in enumerate(sources)]
    workloads = tuple(map(DeclaredWorkload.model_validate, declared))
    return Snapshot(resources=tuple(resources), unreadable=unreadable, workloads=workloads)


@pytest.mark.slow
@given(snapshot=snapshots(), shuffled=st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=effort(60, 300))
def test_no_input_raises_and_nothing_is_left_unsaid(snapshot: Snapshot, shuffled: Any) -> None:
    """For any resources in any order, a field is decided, or it has its reason."""
    found = derive(snapshot, FACTS)
    mixed = list(snapshot.resources)
    shuffled.shuffle(mixed)
    reordered = snapshot.model_copy(update={"resources": tuple(mixed), "workloads": snapshot.workloads[::-1]})
    assert repr(derive(reordered, FACTS)) == repr(found)
    for workload in found:
        for field in ("purpose", "target", "features", "accelerator"):
            assert (workload.document[field] is None) is bool(workload.unreadable.get(f"/{field}"))


def _bodies() -> Iterator[tuple[str, JsonObject]]:
    for path in sorted(SHARED.glob("arm_rest_*/**/*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        listed = document.get("value", [document]) if isinstance(document, dict) else document
        for body in listed if isinstance(listed, list) else []:
            if isinstance(body, dict) and isinstance(body.get("properties"), dict):
                yield path.parent.name, body


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real files next to the checkout are missing")
def test_real_bodies_are_read() -> None:
    """Every body that the service or its examples gave can be used for a deployment, a job or a service."""
    bodies = list(_bodies())
    assert len(bodies) > 30
    for folder, body in bodies:
        made = [{**body, "id": f"{WS}/{kind}/x", "type": f"{ML}/{kind}"} for kind in TYPES[:4]]
        assert len(derive(Snapshot(resources=tuple(made)), FACTS)) == len(made)
        if folder == "KubernetesOnlineDeployment":
            assert one(online(body["properties"])).document["accelerator"] == "gpu"
