"""The runs of a workload: its steps, or itself, each with target, features and trials."""

from __future__ import annotations

import pytest

from policyeng.models import JsonObject
from tests.workload_parts import CLUSTER, GPUS, WS, batch, compute, job, one, service

NONE = dict.fromkeys(("automl", "pipeline", "designer", "sweep", "distributed"), False)


def runs(*resources: JsonObject, workloads: tuple[JsonObject, ...] = ()) -> list[JsonObject]:
    """The runs of the only workload."""
    found: list[JsonObject] = one(*resources, workloads=workloads).document["runs"]
    return found


def pipeline(**properties: object) -> JsonObject:
    """A pipeline job."""
    return job({"jobType": "Pipeline", **properties})


def test_a_job_is_its_only_run() -> None:
    """It has no step, and the facts of the whole job."""
    assert runs(job({"jobType": "AutoML", "computeId": "cpu"}), CLUSTER) == [
        {
            "step": None,
            "target": "compute-cluster",
            "reason": "",
            "computeId": f"{WS}/computes/cpu",
            "features": {**NONE, "automl": True},
            "concurrentTrials": None,
        }
    ]


def test_every_step_of_a_pipeline_is_a_run() -> None:
    """Each on its own compute or else the default, with its own features, by the order of their keys."""
    steps = {"b": {"type": "AutoML", "computeId": "local"}, "a": {"resources": {"instance_count": 2}}}
    prepared, trained = runs(pipeline(settings={"default_compute": "gpu"}, jobs=steps), GPUS)
    assert (prepared["step"], prepared["target"], prepared["computeId"]) == ("a", "compute-cluster", GPUS["id"])
    assert prepared["features"] == {**NONE, "pipeline": True, "distributed": True}
    assert (trained["step"], trained["target"], trained["computeId"]) == ("b", "local", None)
    assert trained["features"] == {**NONE, "pipeline": True, "automl": True}


def test_one_step_that_cannot_be_decided_leaves_the_others_alone() -> None:
    """Target, features and trials of a run are its own."""
    steps = {"a": {"type": ["sweep"], "computeId": "${{c}}", "resources": {"instanceCount": "${{n}}"}}, "b": {}}
    lost, known = runs(pipeline(computeId="cpu", jobs=steps), CLUSTER)
    assert (lost["target"], "an expression" in lost["reason"]) == (None, True)
    assert lost["features"] == {**dict.fromkeys(NONE), "designer": False}
    assert (known["target"], known["features"]) == ("compute-cluster", {**NONE, "pipeline": True})


@pytest.mark.parametrize("properties", [None, {"jobs": [1]}, {"jobs": {"a": "text"}}, {"settings": 7}])
def test_there_is_always_a_run(properties: object) -> None:
    """Where the steps cannot be read there is one run, of which nothing is known."""
    (lost,) = runs(job(properties))
    assert lost["target"] is None
    assert lost["reason"]


@pytest.mark.parametrize(
    ("limits", "trials"),
    [
        ({"maxConcurrentTrials": 4, "maxTotalTrials": 20}, 4),
        ({"max_concurrent_trials": "4"}, 4),
        ({"maxConcurrentTrials": 4.0}, 4),
        ({"maxConcurrentTrials": 0}, 0),
        ({"maxConcurrentTrials": None, "maxTotalTrials": 20}, 20),
        ({"maxConcurrentTrials": 999_999_999}, 999_999_999),
        ({"timeout": "PT1H"}, 1000),
        ({}, 1000),
        (None, 1000),
        ({"maxConcurrentTrials": 10**9}, None),
        ({"maxConcurrentTrials": -1}, None),
        ({"maxConcurrentTrials": 1.5}, None),
        ({"maxConcurrentTrials": True, "maxTotalTrials": 20}, None),
        ({"maxConcurrentTrials": "many"}, None),
        ([4], None),
    ],
)
def test_the_trials_at_once_of_a_sweep(limits: object, trials: int | None) -> None:
    """A limit that is absent is that of all trials, and that is 1000; a value that is no count is undecided."""
    assert runs(job({"jobType": "Sweep", "limits": limits}))[0]["concurrentTrials"] == trials
    (step,) = runs(pipeline(jobs={"a": {"type": "sweep", "limits": limits}}))
    assert step["concurrentTrials"] == trials
    assert runs(job({"limits": limits}))[0]["concurrentTrials"] is None


def test_a_declared_feature_is_one_of_every_run_unless_a_run_is_known_to_have_it() -> None:
    """It is unknown which step a declaration means; where a step has the feature, it is that one."""
    source = pipeline(computeId="cpu", jobs={"a": {"type": "automl"}, "b": {}})
    facts = {"id": "w", "sourceId": source["id"], "features": ["designer", "automl"]}
    first, second = runs(source, CLUSTER, workloads=(facts,))
    assert first["features"] == {**NONE, "pipeline": True, "automl": True, "designer": True}
    assert second["features"] == {**NONE, "pipeline": True, "designer": True}


def test_a_declared_target_is_that_of_every_run() -> None:
    """It fills in what ARM does not state, and a run that is elsewhere is undecided."""
    source = pipeline(jobs={"a": {"computeId": "gone"}, "b": {"computeId": "vm"}})
    facts = {"id": "w", "sourceId": source["id"], "target": "compute-cluster"}
    first, second = runs(source, compute("vm", "VirtualMachine"), workloads=(facts,))
    assert (first["target"], first["reason"]) == ("compute-cluster", "")
    assert second["target"] is None
    assert "`attached-vm`" in second["reason"]


def test_work_without_a_source_is_its_only_run() -> None:
    """Fields that it does not state are null; its features are complete."""
    (only,) = runs(workloads=({"id": "w", "target": "local", "features": ["sweep"]},))
    assert (only["target"], only["computeId"], only["features"]) == ("local", None, {**NONE, "sweep": True})
    assert only["concurrentTrials"] is None
    (silent,) = runs(workloads=({"id": "w"},))
    assert (silent["target"], bool(silent["reason"])) == (None, True)


def test_inference_is_a_run_too() -> None:
    """Deployments and services are one run on their target."""
    component = {"deploymentConfigurationType": "PipelineComponent"}
    (scoring,) = runs(batch({"compute": "cpu", "deploymentConfiguration": component}), CLUSTER)
    assert (scoring["target"], scoring["features"]) == ("compute-cluster", {**NONE, "pipeline": True})
    (unclear,) = runs(batch({"compute": "cpu", "deploymentConfiguration": 7}), CLUSTER)
    assert set(unclear["features"].values()) == {None}
    assert [run["target"] for run in runs(service({"computeType": "ACI"}))] == ["aci"]
