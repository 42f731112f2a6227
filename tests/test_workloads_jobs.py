"""The workloads of jobs."""

from __future__ import annotations

import pytest

from policyeng.models import JsonObject
from tests.workload_parts import AKS, CLUSTER, GPUS, K8S, WS, compute, job, one


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("AmlCompute", "compute-cluster"),
        ("amlcompute", "compute-cluster"),
        ("ComputeInstance", "compute-instance"),
        ("Kubernetes", "kubernetes"),
        ("Aks", "aks"),
        ("VirtualMachine", "attached-vm"),
        ("Databricks", "databricks"),
        ("DataLakeAnalytics", "data-lake-analytics"),
        ("HDInsight", "hdinsight"),
        ("SynapseSpark", "synapse-spark"),
        ("Batch", "batch"),
        ("DataFactory", None),
        (None, None),
        (7, None),
    ],
)
def test_the_target_of_a_job_is_its_computes_kind(kind: object, target: str | None) -> None:
    """The computeType decides, whatever its letters; one that is no target leaves the job undecided."""
    found = one(job({"computeId": f"{WS.upper()}/COMPUTES/C"}), compute("c", kind))
    assert found.document["target"] == target
    assert found.document["computeId"] == f"{WS}/computes/c"
    assert ("/target" in found.unreadable) is (target is None)


@pytest.mark.parametrize(
    ("reference", "target", "compute_id"),
    [
        (f"{WS}/computes/CPU", "compute-cluster", f"{WS}/computes/cpu"),
        (f"azureml:{WS}/computes/cpu/", "compute-cluster", f"{WS}/computes/cpu"),
        ("azureml:cpu", "compute-cluster", f"{WS}/computes/cpu"),
        (" Cpu ", "compute-cluster", f"{WS}/computes/cpu"),
        (None, "serverless", None),
        ("", "serverless", None),
        ("Serverless", "serverless", None),
        ("azureml:local", "local", None),
        ("cpu2", None, None),
        (f"{WS}2/computes/cpu", None, None),
        ("${{parent.inputs.compute}}", None, None),
        ({}, None, None),
    ],
)
def test_a_compute_is_named_by_id_or_by_name(reference: object, target: str | None, compute_id: str | None) -> None:
    """Ids and bare names compare without case; a dangling name, an expression and a wrong type are undecided."""
    found = one(job({"computeId": reference}), CLUSTER)
    assert (found.document["target"], found.document["computeId"]) == (target, compute_id)
    assert ("/target" in found.unreadable) is (target is None)


@pytest.mark.parametrize(
    ("properties", "target", "accelerator", "compute_id"),
    [
        ({"settings": {"default_compute": "cpu"}, "jobs": {"a": {}, "b": None}}, "compute-cluster", "none", "cpu"),
        ({"settings": {"default_compute": "cpu"}, "jobs": {"a": {}, "b": {}}}, "compute-cluster", "none", "cpu"),
        (
            {"settings": {"defaultCompute": "cpu"}, "jobs": {"a": {"computeId": "CPU"}}},
            "compute-cluster",
            "none",
            "cpu",
        ),
        ({"computeId": "cpu", "jobs": {"a": {}, "b": {"computeId": "gpu"}}}, "compute-cluster", None, None),
        ({"jobs": {"a": {"computeId": "cpu"}, "b": {}}}, None, None, None),
        ({"jobs": {"a": {"resources": {"instance_type": "Standard_GPU"}}}}, "serverless", "gpu", None),
        ({"jobs": {"a": {"computeId": "gone"}, "b": {"computeId": "cpu"}}}, None, None, None),
        ({"jobs": [1]}, None, None, None),
        ({"settings": {"default_compute": "cpu"}}, "compute-cluster", "none", "cpu"),
    ],
)
def test_a_pipeline_gathers_its_steps(
    properties: JsonObject, target: str | None, accelerator: str | None, compute_id: str | None
) -> None:
    """The steps' computes, or the default where a step names none, must agree, or the field is undecided."""
    found = one(job({"jobType": "Pipeline", **properties}), CLUSTER, GPUS)
    spelled = f"{WS}/computes/{compute_id}" if compute_id else None
    assert (found.document["target"], found.document["accelerator"]) == (target, accelerator)
    assert found.document["computeId"] == spelled


@pytest.mark.parametrize(
    ("properties", "features"),
    [
        ({}, []),
        ({"jobType": "AUTOML"}, ["automl"]),
        ({"jobType": "Sweep", "trial": {"resources": {"instanceCount": 2}}}, ["sweep", "distributed"]),
        ({"jobType": "Pipeline"}, ["pipeline"]),
        (
            {"jobType": "Pipeline", "jobs": {"a": {"type": "automl"}, "b": {"jobType": "Sweep"}}},
            "automl pipeline sweep",
        ),
        ({"jobType": "Pipeline", "jobs": {"a": {"resources": {"instance_count": 4}}}}, ["pipeline", "distributed"]),
        ({"resources": {"instanceCount": 2}}, ["distributed"]),
        ({"resources": {"instanceCount": "2"}, "distribution": {"distributionType": "PyTorch"}}, ["distributed"]),
        ({"resources": {"instanceCount": 1}, "distribution": {"distributionType": "PyTorch"}}, []),
        ({"distribution": {"distributionType": "Mpi"}}, ["distributed"]),
        ({"distribution": None}, []),
        ({"jobType": None}, None),
        ({"jobType": ["AutoML"]}, None),
        ({"resources": {"instanceCount": "${{n}}"}}, None),
    ],
)
def test_the_features_of_a_job(properties: JsonObject, features: object) -> None:
    """Features come from the types of the job and its steps; more than one node is distributed."""
    found = one(job(properties))
    assert found.document["features"] == (features.split() if isinstance(features, str) else features)
    assert ("/features" in found.unreadable) is (features is None)


@pytest.mark.parametrize(
    ("properties", "others", "accelerator"),
    [
        ({"computeId": "cpu"}, [CLUSTER], "none"),
        ({"computeId": "gpu"}, [GPUS], "gpu"),
        ({"computeId": "aks"}, [AKS], "fpga"),
        ({"computeId": "c"}, [compute("c", "AmlCompute", vmSize="Standard_Unheard")], None),
        ({"computeId": "c"}, [compute("c", "AmlCompute")], None),
        ({"computeId": "c"}, [compute("c", "Databricks")], None),
        ({"computeId": "c"}, [compute("c", "VirtualMachine", virtualMachineSize="standard_gpu")], "gpu"),
        ({"computeId": "c"}, [compute("c", "VirtualMachine")], None),
        ({"computeId": "local"}, [], None),
        ({}, [], None),
        ({"resources": {"instanceType": "Standard_CPU"}}, [], "none"),
        ({"resources": {"instanceType": 5}}, [], None),
        ({"computeId": "k8s"}, [K8S], "none"),
        ({"computeId": "k8s", "resources": {"instanceType": "BIG"}}, [K8S], "gpu"),
        ({"computeId": "k8s", "resources": {"instanceType": "small"}}, [K8S], "none"),
        ({"computeId": "k8s", "resources": {"instanceType": "other"}}, [K8S], None),
    ],
)
def test_the_accelerator_of_a_job(properties: JsonObject, others: list[JsonObject], accelerator: str | None) -> None:
    """The compute's size decides, or the instance type; what states no known size is undecided."""
    found = one(job(properties), *others)
    assert found.document["accelerator"] == accelerator
    assert ("/accelerator" in found.unreadable) is (accelerator is None)


def test_other_resources_than_computes_are_no_target() -> None:
    """Other resources have a `computeType` also, and nothing runs on them."""
    found = one(job({"computeId": "c"}), {**compute("c", "AKS"), "type": "x"})
    assert found.document["target"] is None
    assert found.document["computeId"] is None
    assert "is not in the snapshot" in found.unreadable["/target"]


def test_an_attached_machine_without_a_size_has_that_of_its_virtual_machine() -> None:
    """The size of the virtual machine that resourceId names counts where the compute states none."""
    attached = compute("vm", "VirtualMachine")
    attached["properties"]["resourceId"] = "/subscriptions/S/vm"
    machine = {"id": "/subscriptions/s/VM", "type": "x", "properties": {"hardwareProfile": {"vmSize": "Standard_GPU"}}}
    assert one(job({"computeId": "vm"}), attached, machine).document["accelerator"] == "gpu"


@pytest.mark.parametrize(
    ("properties", "possible", "impossible"),
    [
        ({"computeId": "gone"}, {"compute-cluster", "hdinsight"}, {"local", "serverless", "aci", "functions"}),
        ({"computeId": "${{parent.inputs.compute}}"}, {"local", "serverless", "aks"}, {"aci", "managed-online"}),
        (
            {"jobType": "Pipeline", "jobs": {"a": {"computeId": "cpu"}, "b": {"computeId": "local"}}},
            {"compute-cluster", "local"},
            {"serverless", "compute-instance"},
        ),
        (
            {"jobType": "Pipeline", "jobs": {"a": {"computeId": "cpu"}, "b": {"computeId": "gone"}}},
            {"compute-cluster", "aks"},
            {"serverless", "aci"},
        ),
    ],
)
def test_an_undecided_target_states_what_it_may_be(
    properties: JsonObject, possible: set[str], impossible: set[str]
) -> None:
    """A name that the snapshot lacks is some compute, an expression anything a job runs on, steps what they name."""
    among = one(job(properties), CLUSTER).possible["/target"]

    assert possible <= among
    assert not impossible & among


def test_where_a_field_is_of_the_wrong_type_its_value_may_be_any() -> None:
    """Nothing is known of a reference that is not text, nor of a pipeline with such a step."""
    steps = {"jobType": "Pipeline", "jobs": {"a": {"computeId": "cpu"}, "b": {"computeId": {}}}}

    assert "/target" not in one(job({"computeId": {}}), CLUSTER).possible
    assert "/target" not in one(job(steps), CLUSTER).possible


def test_services_without_such_machines_use_no_fpga() -> None:
    """Nothing states the size of a Spark cluster, but it has no FPGA."""
    assert one(job({"computeId": "hdi"}), compute("hdi", "HDInsight")).possible["/accelerator"] == {"none", "gpu"}
    assert "/accelerator" not in one(job({"computeId": "vm"}), compute("vm", "VirtualMachine")).possible


@pytest.mark.parametrize(
    ("compute_stated", "target", "distributed"),
    [
        ({"target": f"{WS}/computes/cpu", "instanceCount": 4}, "compute-cluster", True),
        ({"target": "azureml:cpu", "instanceCount": 1}, "compute-cluster", False),
        ({"isLocal": True}, "local", False),
        ({"target": "gone"}, None, False),
        ({"target": 7}, None, False),
    ],
)
def test_a_job_of_an_earlier_version(compute_stated: JsonObject, target: str | None, distributed: bool) -> None:
    """In 2021-03-01-preview `compute` states where a job runs and on how many nodes."""
    found = one(job({"jobType": "Command", "compute": compute_stated}), compute("cpu", "AmlCompute"))

    assert found.document["target"] == target
    assert ("distributed" in found.document["features"]) is distributed


def test_a_sweep_of_an_earlier_version() -> None:
    """In 2021-03-01-preview the limits of a sweep are its own properties."""
    sweep = {"jobType": "Sweep", "maxTotalTrials": 20, "maxConcurrentTrials": 3, "compute": {"target": "cpu"}}
    found = one(job(sweep), compute("cpu", "AmlCompute"))

    assert [run["concurrentTrials"] for run in found.document["runs"]] == [3]


def test_an_earlier_compute_that_is_not_known_is_undecided() -> None:
    """The target, which would be serverless without it, is not."""
    found = one(
        job({"jobType": "Command"}), unreadable={f"{WS}/jobs/j".lower(): {"/properties/compute": "an expression"}}
    )

    assert "an expression" in found.unreadable["/target"]
