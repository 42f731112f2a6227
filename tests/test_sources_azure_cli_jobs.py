"""Jobs in files of the Azure CLI, and the workloads that they are: the same as those of the ARM jobs they become."""

from __future__ import annotations

import pytest

from policyeng.models import JsonObject
from policyeng.sources import azure_cli
from policyeng.sources.azure_cli import jobs
from policyeng.sources.parsed import ParsedDocument, Placed
from policyeng.workloads import Workload, derive
from tests.azure_cli_work import WORKSPACE, kind_of, only, snapshot_of, workload
from tests.workload_parts import FACTS, ML

SCHEMA = "https://azuremlschemas.azureedge.net/latest/{}.schema.json"
COMMAND: JsonObject = {
    "$schema": SCHEMA.format("commandJob"),
    "name": "j",
    "command": "python a.py --x ${{inputs.x}} > {out}",
    "environment": "azureml:env:1",
}
PIPELINE: JsonObject = {"$schema": SCHEMA.format("pipelineJob"), "type": "pipeline", "name": "p"}


def compute(name: str, size: str) -> JsonObject:
    """A cluster of the workspace."""
    properties = {"computeType": "AmlCompute", "properties": {"vmSize": size}}
    return {"id": f"{WORKSPACE}/computes/{name}", "type": f"{ML}/computes", "properties": properties}


CLUSTERS = (compute("cpu", "Standard_CPU"), compute("gpu", "Standard_GPU"))


def steps(document: JsonObject, files: dict[str, object] | None = None) -> dict[str, JsonObject]:
    """The steps of a pipeline in ARM shape."""
    found: dict[str, JsonObject] = only(document, files).resource["properties"]["jobs"]
    return found


def runs(document: JsonObject, files: dict[str, object] | None = None) -> dict[str | None, JsonObject]:
    """The runs of the only workload, by step."""
    return {run["step"]: run for run in workload(document, *CLUSTERS, files=files).document["runs"]}


def test_a_command_job_is_brought_into_arm_shape() -> None:
    """Its compute is named by id, its text is taken as it is, its timeout is a duration."""
    written = {
        **COMMAND,
        "compute": "azureml:cpu",
        "display_name": "d",
        "experiment_name": "e",
        "tags": {"stage": "dev"},
        "identity": {"type": "managed"},
        "distribution": {"type": "pytorch", "process_count_per_instance": 2},
        "resources": {"instance_count": 2, "instance_type": "x", "shm_size": "2g"},
        "limits": {"timeout": 900},
        "queue_settings": {"job_tier": "spot"},
    }
    assert only(written).resource == {
        "id": f"{WORKSPACE}/jobs/j",
        "name": "j",
        "type": "Microsoft.MachineLearningServices/workspaces/jobs",
        "properties": {
            "jobType": "Command",
            "displayName": "d",
            "experimentName": "e",
            "tags": {"stage": "dev"},
            "computeId": f"{WORKSPACE}/computes/cpu",
            "command": COMMAND["command"],
            "environmentId": f"{WORKSPACE}/environments/env/versions/1",
            "identity": {"identityType": "Managed"},
            "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 2},
            "resources": {"instanceCount": 2, "instanceType": "x", "shmSize": "2g"},
            "limits": {"jobLimitsType": "Command", "timeout": "PT900S"},
            "queueSettings": {"jobTier": "spot"},
        },
    }


@pytest.mark.parametrize(
    ("written", "arm", "target"),
    [
        ("azureml:cpu", f"{WORKSPACE}/computes/cpu", "compute-cluster"),
        ("cpu", f"{WORKSPACE}/computes/cpu", "compute-cluster"),
        (f"azureml:{WORKSPACE}/computes/cpu", f"{WORKSPACE}/computes/cpu", "compute-cluster"),
        ("azureml:serverless", "serverless", "serverless"),
        ("serverless", "serverless", "serverless"),
        ("local", "local", "local"),
        (None, None, "serverless"),
        ("gone", f"{WORKSPACE}/computes/gone", None),
    ],
)
def test_where_a_job_runs(written: str | None, arm: str | None, target: str | None) -> None:
    """By name, by id, on serverless compute or on the machine of who submits."""
    document = {**COMMAND, "compute": written}
    assert only(document).resource["properties"].get("computeId") == arm
    assert workload(document, *CLUSTERS).document["target"] == target


@pytest.mark.parametrize("compute", [{"target": "azureml:cpu", "instance_count": 4}, {"target": "cpu"}])
def test_a_compute_of_an_early_preview(compute: JsonObject) -> None:
    """An object of target and number of nodes, for a command and for the trial of a sweep."""
    plain: JsonObject = {"compute": "azureml:cpu"}
    if nodes := compute.get("instance_count"):
        plain["resources"] = {"instance_count": nodes}
    sweep = {"name": "s", "type": "sweep", "trial": {"command": "x", "environment": "azureml:e:1"}, "search_space": {}}

    for document in (COMMAND, sweep):
        early, now = only({**document, "compute": compute}), only({**document, **plain})
        assert early.resource == now.resource
        assert early.unreadable == now.unreadable


@pytest.mark.parametrize("written", ["<your compute>", "${{parent.inputs.compute}}", "$COMPUTE", 5, ["cpu"]])
def test_a_compute_that_is_not_settled_decides_nothing(written: object) -> None:
    """The target is undecided, and it is not serverless."""
    document = {**COMMAND, "compute": written}
    assert "/properties/computeId" in only(document).unreadable
    assert "/properties/resources/instanceCount" not in only(document).unreadable
    assert workload(document, *CLUSTERS).document["target"] is None


@pytest.mark.parametrize(
    ("written", "arm"),
    [
        ("command", "Command"),
        ("sweep", "Sweep"),
        ("pipeline", "Pipeline"),
        ("automl", "AutoML"),
        ("spark", "Spark"),
        ("import", "Command"),
        ("finetuning", "FineTuning"),
        ("fine_tuning", "FineTuning"),
        ("distillation", "FineTuning"),
        ("command_job", "Command"),
    ],
)
def test_types_of_jobs(written: str, arm: str) -> None:
    """ARM's type of each; import jobs are sent as commands."""
    document: JsonObject = {"$schema": SCHEMA.format("commandJob"), "name": "j", "type": written, "jobs": {}}
    found = only(document).resource["properties"]["jobType"]
    assert found == arm or (written == "command_job" and found == "command_job")


@pytest.mark.parametrize(
    ("schema", "arm"),
    [("commandJob", "Command"), ("sweepJob", "Sweep"), ("autoMLJob", "AutoML"), ("sparkJob", "Spark")],
)
def test_a_schema_gives_the_type_too(schema: str, arm: str) -> None:
    """Where the file leaves it out."""
    assert only({"$schema": SCHEMA.format(schema), "name": "j"}).resource["properties"]["jobType"] == arm


def test_a_type_that_is_a_placeholder_decides_nothing() -> None:
    """No feature is decided, and the steps are read all the same."""
    document = {**PIPELINE, "type": "<type>", "jobs": {"a": {"command": "x", "compute": "azureml:cpu"}}}
    assert "/properties/jobType" in only(document).unreadable
    assert runs(document)["a"]["features"]["sweep"] is None


def test_a_sweep_is_brought_into_arm_shape() -> None:
    """With its trial and its limits; it is a sweep with the stated number of trials at once."""
    written = {
        "$schema": SCHEMA.format("sweepJob"),
        "type": "sweep",
        "name": "s",
        "trial": {"command": "x", "environment": "azureml:e:1", "resources": {"instance_count": 2}},
        "compute": "azureml:gpu",
        "limits": {"max_total_trials": 20, "max_concurrent_trials": 4, "timeout": 60, "trial_timeout": 30},
        "objective": {"goal": "maximize", "primary_metric": "auc"},
    }
    properties = only(written).resource["properties"]
    assert properties["limits"] == {
        "jobLimitsType": "Sweep",
        "maxTotalTrials": 20,
        "maxConcurrentTrials": 4,
        "timeout": "PT60S",
        "trialTimeout": "PT30S",
    }
    assert properties["trial"]["resources"] == {"instanceCount": 2}
    run = runs(written)[None]
    assert (run["concurrentTrials"], run["features"]["sweep"], run["features"]["distributed"]) == (4, True, True)
    assert workload(written, *CLUSTERS).document["accelerator"] == "gpu"


@pytest.mark.parametrize(
    ("early_termination", "expected"),
    [
        (
            {"type": "bandit", "slack_factor": 0.1, "evaluation_interval": 1, "delay_evaluation": 5},
            {"policyType": "Bandit", "slackFactor": 0.1, "evaluationInterval": 1, "delayEvaluation": 5},
        ),
        (
            {"type": "median_stopping", "evaluation_interval": 2},
            {"policyType": "MedianStopping", "evaluationInterval": 2},
        ),
        (
            {"type": "truncation_selection", "truncation_percentage": 20},
            {"policyType": "TruncationSelection", "truncationPercentage": 20},
        ),
        (None, None),
    ],
)
def test_the_early_termination_of_a_sweep(early_termination: JsonObject | None, expected: JsonObject | None) -> None:
    """In ARM's names; without it, it is known to be absent."""
    written = {
        "$schema": SCHEMA.format("sweepJob"),
        "type": "sweep",
        "name": "s",
        "trial": {"command": "x", "environment": "azureml:e:1"},
        "early_termination": early_termination,
    }
    assert only(written).resource["properties"].get("earlyTermination") == expected


def test_early_termination_that_is_not_an_object_is_unknown() -> None:
    """The reason names the key."""
    written = {"$schema": SCHEMA.format("sweepJob"), "type": "sweep", "name": "s", "early_termination": "bandit"}
    reasons = only(written).unreadable
    assert "it should be an object" in reasons["/properties/earlyTermination/policyType"]


def test_an_automl_job_is_brought_into_arm_shape() -> None:
    """Its limits are of its task, in minutes."""
    written = {
        "$schema": SCHEMA.format("autoMLJob"),
        "type": "automl",
        "task": "image_classification",
        "name": "a",
        "primary_metric": "accuracy",
        "training_data": {"path": "./d"},
        "limits": {"timeout_minutes": 60, "max_concurrent_trials": 2},
        "resources": {"instance_count": 4},
    }
    assert only(written).resource["properties"]["taskDetails"] == {
        "taskType": "ImageClassification",
        "primaryMetric": "accuracy",
        "limitSettings": {"timeout": "PT60M", "maxConcurrentTrials": 2},
    }
    assert runs(written)[None]["features"]["automl"] is True


def test_the_steps_of_a_pipeline_keep_the_words_of_the_cli() -> None:
    """Each with its compute by id; the default of the pipeline is that of those without."""
    document = {
        **PIPELINE,
        "settings": {"default_compute": "azureml:cpu", "continue_on_step_failure": False},
        "jobs": {
            "prep": {"type": "command", "command": "x"},
            "train": {"type": "command", "compute": "azureml:gpu", "resources": {"instance_count": 2}},
        },
    }
    properties = only(document).resource["properties"]
    assert properties["settings"]["default_compute"] == f"{WORKSPACE}/computes/cpu"
    assert properties["settings"]["continue_on_step_failure"] is False
    assert properties["jobs"] == {
        "prep": {"type": "command"},
        "train": {"type": "command", "computeId": f"{WORKSPACE}/computes/gpu", "resources": {"instance_count": 2}},
    }
    found = runs(document)
    assert found["prep"]["computeId"] == f"{WORKSPACE}/computes/cpu"
    assert found["train"]["features"]["distributed"] is True
    assert only(document).fields["/properties/jobs/train/computeId"] == "/jobs/train/compute"


@pytest.mark.parametrize("reference", ["./c.yml", "file:./c.yml", "c.yml"])
def test_a_step_takes_from_its_component_what_it_does_not_state(reference: str) -> None:
    """Nodes and distribution, as `azure-ai-ml` sends them."""
    files: dict[str, object] = {
        "c.yml": {"type": "command", "resources": {"instance_count": 2}, "distribution": {"type": "mpi"}}
    }
    jobs_of = {"a": {"component": reference}, "b": {"component": reference, "resources": {"instance_count": 1}}}
    found = steps({**PIPELINE, "jobs": jobs_of}, files)
    assert found["a"] == {"type": "command", "resources": {"instance_count": 2}, "distribution": {"type": "mpi"}}
    assert found["b"]["resources"] == {"instance_count": 1}


@pytest.mark.parametrize(
    "reference", ["azureml:c@latest", "azureml://registries/r/components/c/labels/latest", "./gone.yml", "<component>"]
)
def test_a_component_that_is_not_there_leaves_its_step_undecided(reference: str) -> None:
    """Its number of nodes is unknown; its compute is known."""
    document = {**PIPELINE, "compute": "azureml:cpu", "jobs": {"a": {"type": "command", "component": reference}}}
    run = runs(document)["a"]
    assert run["features"]["distributed"] is None
    assert run["target"] == "compute-cluster"
    assert {"/properties/jobs/a/resources", "/properties/jobs/a/distribution"} <= only(document).unreadable.keys()


def test_a_pipeline_that_is_not_there_leaves_even_its_compute_undecided() -> None:
    """Its steps may run anywhere."""
    document = {
        **PIPELINE,
        "compute": "azureml:cpu",
        "jobs": {"a": {"type": "pipeline", "component": "azureml:c@latest"}},
    }
    assert runs(document)["a"]["target"] is None


def test_a_component_with_its_version_is_as_in_arm() -> None:
    """The step has its id, and ARM states no more of it either."""
    document = {**PIPELINE, "jobs": {"a": {"type": "command", "component": "azureml:c:1"}}}
    assert steps(document)["a"] == {"type": "command", "componentId": f"{WORKSPACE}/components/c/versions/1"}
    assert runs(document)["a"]["features"]["distributed"] is False


def test_the_steps_of_an_inner_pipeline_are_steps_of_the_outer_one() -> None:
    """With files named from where they lie, the compute of the outer step, and the inputs that it passes."""
    files: dict[str, object] = {
        "sub/inner.yml": {
            "type": "pipeline",
            "inputs": {"where": {"type": "string", "default": "azureml:cpu"}, "nodes": 3},
            "jobs": {
                "x": {"type": "command", "component": "./leaf.yml"},
                "y": {
                    "type": "command",
                    "command": "c",
                    "compute": "${{parent.inputs.where}}",
                    "resources": {"instance_count": "${{parent.inputs.nodes}}"},
                },
            },
        },
        "sub/leaf.yml": {"type": "command", "distribution": {"type": "mpi"}},
    }
    outer = {
        "type": "pipeline",
        "component": "./sub/inner.yml",
        "inputs": {"where": "azureml:gpu"},
        "compute": "azureml:cpu",
    }
    document = {**PIPELINE, "jobs": {"o": outer}}
    assert steps(document, files) == {
        "o.x": {"type": "command", "computeId": f"{WORKSPACE}/computes/cpu", "distribution": {"type": "mpi"}},
        "o.y": {"type": "command", "computeId": f"{WORKSPACE}/computes/gpu", "resources": {"instance_count": 3}},
    }
    assert only(document, files).fields["/properties/jobs/o.y"] == "/jobs/o"


def test_a_pipeline_may_be_a_component_itself() -> None:
    """`component` next to `settings`, and no `jobs`."""
    files: dict[str, object] = {
        "c.yml": {"type": "pipeline", "jobs": {"a": {"command": "x", "compute": "azureml:gpu"}}}
    }
    assert steps({**PIPELINE, "component": "c.yml"}, files)["a"]["computeId"] == f"{WORKSPACE}/computes/gpu"
    lost = {**PIPELINE, "component": "azureml:c@latest"}
    assert "/properties/jobs" in only(lost).unreadable
    assert workload(lost, *CLUSTERS).document["target"] is None


def test_the_trial_of_a_step_may_be_a_component() -> None:
    """Its number of nodes is the step's."""
    files: dict[str, object] = {"t.yml": {"type": "command", "resources": {"instance_count": 2}}}
    sweep = {"type": "sweep", "limits": {"max_total_trials": 5}, "trial": "./t.yml"}
    run = runs({**PIPELINE, "jobs": {"s": sweep}}, files)["s"]
    assert (run["features"]["sweep"], run["features"]["distributed"], run["concurrentTrials"]) == (True, True, 5)
    lost = runs({**PIPELINE, "jobs": {"s": {**sweep, "trial": "azureml:t@latest"}}})["s"]
    assert lost["features"]["distributed"] is None


@pytest.mark.parametrize("written", [None, 5, "jobs", []])
def test_a_pipeline_without_steps_decides_nothing(written: object) -> None:
    """Nothing is taken for a job that runs on serverless compute."""
    document = {**PIPELINE, "jobs": written}
    assert "/properties/jobs" in only(document).unreadable
    assert workload(document).document["target"] is None


@pytest.mark.parametrize("step", [None, 5, "x", []])
def test_a_step_that_is_no_object_is_unreadable(step: object) -> None:
    """Alone, not with its neighbours."""
    placed = only({**PIPELINE, "jobs": {"a": step, "b": {"command": "x"}}})
    assert "/properties/jobs/a" in placed.unreadable
    assert placed.resource["properties"]["jobs"] == {"b": {"type": "command"}}


def test_pipelines_that_name_each_other_end() -> None:
    """They are read to a depth, and deeper ones are unreadable."""
    files: dict[str, object] = {
        "c.yml": {"type": "pipeline", "jobs": {"again": {"type": "pipeline", "component": "c.yml"}}}
    }
    placed = only({**PIPELINE, "jobs": {"a": {"type": "pipeline", "component": "c.yml"}}}, files)
    [reason] = [why for at, why in placed.unreadable.items() if at.startswith("/properties/jobs/")]
    assert reason == f"pipelines are nested more than {jobs.MAX_DEPTH} levels deep, the most that are read"


def test_pipelines_that_multiply_end() -> None:
    """Thirty steps that each contain the same thirty are not read out."""
    inner = {str(number): {"type": "pipeline", "component": "c.yml"} for number in range(30)}
    files: dict[str, object] = {"c.yml": {"type": "pipeline", "jobs": inner}}
    placed = only({**PIPELINE, "jobs": inner}, files)
    assert placed.unreadable["/properties/jobs"] == "the pipeline has more than 2,000 steps, the most that are read"


def test_a_file_without_a_name_has_one_of_its_own() -> None:
    """The service names the job."""
    placed = only({key: value for key, value in COMMAND.items() if key != "name"})
    assert placed.resource["id"] == f"{WORKSPACE}/jobs/{{work.yml}}"
    assert "/name" in placed.unreadable


@pytest.mark.parametrize(
    "document",
    [
        {"command": "x", "environment": "azureml:e:1", "compute": "azureml:c"},
        {"command": "x", "environment": {"image": "i"}, "code": "."},
        {"type": "command", "command": "x", "environment": "azureml:e:1"},
        {"type": "pipeline", "jobs": {"a": {}}},
        {"type": "sweep", "trial": {}, "search_space": {}},
        {"type": "automl", "task": "regression", "training_data": {}},
        {"type": "spark", "entry": {"file": "a.py"}},
        {"type": "distillation", "student_model": "m"},
    ],
)
def test_without_a_schema_the_content_decides(document: JsonObject) -> None:
    """The type, and what it must have."""
    kind = kind_of(document)
    assert kind is not None
    assert kind.arm_type == jobs.TYPE


@pytest.mark.parametrize(
    "document",
    [
        {"name": "env", "channels": ["c"], "dependencies": ["python"]},
        {"name": "ci", "on": "push", "jobs": {"build": {"runs-on": "ubuntu", "steps": []}}},
        {"trigger": ["main"], "pool": {"vmImage": "u"}, "jobs": [{"job": "a"}]},
        {"version": "3", "services": {"a": {"image": "i", "command": "x", "environment": {"A": "b"}}}},
        {"image": "i", "command": "x", "environment": {"A": "b"}},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {}, "spec": {"template": {}}},
        {"type": "pipeline", "stages": ["a"], "jobs": {}},
        {"command": "x"},
        {"jobs": {"a": {"component": "c"}}},
        {"type": "amlcompute", "name": "c"},
        {"name": "n", "type": "custom_model", "path": "."},
        {},
    ],
)
def test_other_documents_than_work_are_not_taken(document: JsonObject) -> None:
    """Conda files, workflows of GitHub and Azure Pipelines, docker-compose, Kubernetes, other documents of the CLI."""
    assert kind_of(document) not in jobs.KINDS


@pytest.mark.parametrize(
    "document",
    [
        {"$schema": SCHEMA.format("commandComponent"), "name": "c"},
        {"$schema": "http://azureml/sdk-2-0/SparkComponent.json"},
        {"type": "command", "name": "c", "version": 1, "command": "x", "environment": "azureml:e:1"},
        {"type": "pipeline", "name": "c", "is_deterministic": False, "jobs": {}},
    ],
)
def test_a_component_alone_runs_nothing(document: JsonObject) -> None:
    """It is understood, and there is nothing to evaluate."""
    assert azure_cli.read(document) == ParsedDocument(nothing="a component, which runs only in a job: nothing to check")


def test_a_yaml_job_states_what_its_arm_job_states() -> None:
    """The whole workload is the same, whichever of the two is read."""
    document = {**COMMAND, "compute": "azureml:gpu", "tags": {"stage": "prod"}, "resources": {"instance_count": 2}}
    placed = only(document)
    bare = Placed({**placed.resource}, "")

    def document_of(found: Placed) -> JsonObject:
        [work] = derive(snapshot_of([found], CLUSTERS), FACTS)
        assert isinstance(work, Workload)
        return work.document

    assert document_of(placed) == document_of(bare)
