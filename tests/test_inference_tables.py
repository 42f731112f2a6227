"""The table of inference targets, cell by cell as the catalogue writes it, and what each target is good for.

`python -m tests.test_inference_tables` prints the table with the outcome of every example.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.cases import DEFAULT_AS_OF, Baselines, Case, estate
from policyeng.bundle.policy_selection import with_profile
from policyeng.models import JsonObject

BASELINES = Baselines.read(Path(__file__).resolve().parents[1] / "samples" / "baselines")
WS = str(BASELINES.resources["workspace"]["id"])
GPU, FPGA = {"gpu": 1}, {"fpga": 1}
#: Sizes of the catalogue with a GPU and with an FPGA.
GPU_SIZE, FPGA_SIZE = "Standard_NC6s_v3", "Standard_NP10s"


class Example(NamedTuple):
    """Work of a cell of the table, and the outcomes of the policies that the cell is about."""

    what: str
    case: Case
    expected: dict[str, str]


def declared(target: str, **more: object) -> Case:
    """Declared work alone: real-time inference in development, unless stated otherwise."""
    stage = more.pop("stage", "dev")
    fixed = {"id": "work", "workspaceId": WS, "purpose": "realtime-inference", "target": target}
    return Case(judged="work", workloads=[{**fixed, "tags": {"environment": stage}, **more}])


def resource(baseline: str, properties: JsonObject, stage: str = "dev", **neighbours: JsonObject) -> Case:
    """A baseline with other properties in a stage, nothing declared about it; `neighbours` patch other baselines."""
    patch = {"tags": {"environment": stage}, "properties": properties}
    return Case(baseline=baseline, patch=patch, with_=neighbours, workloads=[])


def service(kind: str, properties: JsonObject, stage: str = "dev") -> Case:
    """A version-1 web service."""
    return resource(f"service_{kind}", properties, stage)


def modelled(size: float) -> Case:
    """A version-1 web service on Container Instances whose model is declared with a size."""
    source = BASELINES.resources["service_aci"]["id"]
    facts: JsonObject = {"id": "model", "sourceId": source, "model": {"sizeGiB": size}}
    return service("aci", {}).model_copy(update={"workloads": [facts]})


def on_aks(requested: JsonObject, stage: str = "dev") -> Case:
    """A Kubernetes online deployment whose endpoint runs on an AKS compute."""
    limits = {"containerResourceRequirements": {"containerResourceLimits": requested}}
    properties: JsonObject = {"endpointComputeType": "Kubernetes", "instanceType": None, **limits}
    compute: JsonObject = {"properties": {"compute": "azureml:inference"}}
    return resource("online_deployment", properties, stage, online_endpoint=compute)


def on_cluster(size: str = "Standard_F72s_v2", priority: str = "Dedicated", **properties: object) -> Case:
    """A batch deployment on a compute cluster of a size."""
    nodes: JsonObject = {"properties": {"properties": {"vmSize": size, "vmPriority": priority}}}
    return resource("batch_deployment", properties, compute_cluster=nodes)


def online_on_cluster(**properties: object) -> Case:
    """An online deployment on a compute cluster."""
    return resource("online_deployment", {"endpointComputeType": "AzureMLCompute", **properties})


def group(*amounts: object) -> Case:
    """A container group of containers that request so much memory."""
    boxes = [{"properties": {"resources": {"requests": {"memoryInGB": amount}}}} for amount in amounts]
    return resource("container_group", {"containers": boxes})


@cache
def alone(policy: str) -> Bundle:
    """The built-in bundle with one active policy."""
    whole = load_bundle()
    (found,) = (one for one in whole.policies if one.id == policy)
    return whole.only([found])


@cache
def parameters_of(profile: str | None) -> Mapping[str, JsonObject]:
    """Return the parameters of a profile for the built-in policies."""
    return with_profile(load_bundle(), profile, {})


def outcome(policy: str, case: Case, profile: str | None = "documents") -> str:
    """Return the outcome of a policy for the work of a case, or `not_judged`."""
    identity = case.judged or str(BASELINES.resources[case.baseline or ""]["id"])
    shot = estate(BASELINES, case, policy)
    evaluation = evaluate(alone(policy), shot, as_of=DEFAULT_AS_OF, parameters=parameters_of(profile))
    findings = evaluation.findings
    return next((finding.outcome.value for finding in findings if finding.resource == identity), "not_judged")


REQUIRED = "containerResourceRequirements"
PIPELINE: JsonObject = {"deploymentConfiguration": {"deploymentConfigurationType": "PipelineComponent"}}
SIZE = "AML-INF-107"
MEMORY = "AML-INF-106"
BOUNDLESS = {MEMORY: "not_judged", SIZE: "not_judged"}
FIXED = [{"name": "scoring", "count": 3, "enableAutoScaling": False}]
SERVES = {"AML-INF-103": "pass", "AML-INF-112": "pass", "AML-INF-115": "pass"}
GPU_REFUSED, FPGA_REFUSED = {"AML-INF-101": "fail"}, {"AML-INF-109": "fail"}
ACI_REFUSED = {"AML-INF-104": "fail", "AML-INF-112": "fail"}

#: By row and column, the words of the cell and its examples.
TABLE: dict[tuple[str, str], tuple[str, list[Example]]] = {
    ("local web service", "for"): (
        "testing, debugging",
        [
            Example("declared, dev", declared("local"), {"AML-INF-108": "pass", "AML-INF-112": "pass"}),
            Example("declared, test", declared("local", stage="test"), {"AML-INF-108": "pass", "AML-INF-112": "pass"}),
            Example("declared, staging", declared("local", stage="staging"), {"AML-INF-108": "fail"}),
            Example(
                "declared, production",
                declared("local", stage="production"),
                {"AML-INF-108": "fail", "AML-INF-112": "fail"},
            ),
            Example("batch, dev", resource("batch_deployment", {"compute": "local"}), {"AML-INF-108": "pass"}),
            Example(
                "batch, production",
                resource("batch_deployment", {"compute": "local"}, "production"),
                {"AML-INF-108": "fail"},
            ),
        ],
    ),
    ("local web service", "GPU"): (
        "library dependent",  # that is, not of the target: 001 supports a GPU behind a web service only on AKS
        [
            Example("declared", declared("local", accelerator="gpu"), GPU_REFUSED),
            Example("no GPU", declared("local", accelerator="none"), {"AML-INF-101": "not_judged"}),
        ],
    ),
    ("local web service", "FPGA"): ("no", [Example("declared", declared("local", accelerator="fpga"), FPGA_REFUSED)]),
    ("local web service", "limits"): (
        "",
        [Example("declared, large model", declared("local", model={"sizeGiB": 8, "memoryGiB": 64}), BOUNDLESS)],
    ),
    ("AKS", "for"): (
        "real time, production",
        [
            Example("service", service("aks", {}, "production"), SERVES),
            Example("deployment", on_aks({}, "production"), SERVES),
            Example("declared", declared("aks", stage="production"), SERVES),
            Example("batch", declared("aks", purpose="batch-inference"), {"AML-INF-113": "fail"}),
        ],
    ),
    ("AKS", "GPU"): (
        "yes",
        [
            Example("service", service("aks", {REQUIRED: GPU}), {"AML-INF-101": "pass"}),
            Example("deployment", on_aks({"nvidia.com/gpu": "1"}), {"AML-INF-101": "pass"}),
            Example("declared", declared("aks", accelerator="gpu"), {"AML-INF-101": "pass"}),
        ],
    ),
    ("AKS", "FPGA"): (
        "yes",
        [
            Example("service", service("aks", {REQUIRED: FPGA}), {"AML-INF-109": "pass"}),
            Example("deployment", on_aks({"fpga": "1"}), {"AML-INF-109": "pass"}),
            Example("declared", declared("aks", accelerator="fpga"), {"AML-INF-109": "pass"}),
        ],
    ),
    ("AKS", "limits"): (
        "node autoscaling is AKS's own, not the ML SDK's",
        [
            Example(
                "service that scales, nodes that do not",
                resource("service_aks", {}, "production", managed_cluster={"properties": {"agentPoolProfiles": FIXED}}),
                {"AML-INF-114": "pass"},
            ),
            Example(
                "service that does not",
                service("aks", {"autoScaler": None}, "production"),
                {"AML-INF-114": "fail"},
            ),
            Example("service of 64 GB", service("aks", {REQUIRED: {"memoryInGB": 64}}), BOUNDLESS),
            Example("declared, large model", declared("aks", model={"sizeGiB": 8, "memoryGiB": 64}), BOUNDLESS),
        ],
    ),
    ("ACI", "for"): (
        "dev/test",
        [
            Example("service, dev", service("aci", {}), {"AML-INF-104": "pass", "AML-INF-112": "pass"}),
            Example("service, test", service("aci", {}, "test"), {"AML-INF-104": "pass", "AML-INF-112": "pass"}),
            Example("service, staging", service("aci", {}, "staging"), ACI_REFUSED),
            Example("service, production", service("aci", {}, "production"), ACI_REFUSED),
            Example("declared, dev", declared("aci"), {"AML-INF-104": "pass", "AML-INF-112": "pass"}),
            Example("declared, production", declared("aci", stage="production"), ACI_REFUSED),
        ],
    ),
    ("ACI", "GPU"): (
        "no",
        [
            Example("service", service("aci", {REQUIRED: GPU}), {"AML-INF-105": "fail", **GPU_REFUSED}),
            Example("declared", declared("aci", accelerator="gpu"), {"AML-INF-105": "fail", **GPU_REFUSED}),
            Example("no GPU", service("aci", {REQUIRED: {"gpu": 0}}), {"AML-INF-105": "pass"}),
        ],
    ),
    ("ACI", "FPGA"): (
        "no",
        [
            Example("service", service("aci", {REQUIRED: FPGA}), {"AML-INF-105": "fail", **FPGA_REFUSED}),
            Example("declared", declared("aci", accelerator="fpga"), {"AML-INF-105": "fail", **FPGA_REFUSED}),
        ],
    ),
    ("ACI", "limits"): (
        "under 48 GB of RAM; models under 1 GB",
        [
            Example("service of 47.9 GB", service("aci", {REQUIRED: {"memoryInGB": 47.9}}), {MEMORY: "pass"}),
            Example("service of 48 GB", service("aci", {REQUIRED: {"memoryInGB": 48}}), {MEMORY: "fail"}),
            Example("group of 47.9 GB", group(24, 23.9), {MEMORY: "pass"}),
            Example("group of 48 GB", group(24, 24), {MEMORY: "fail"}),
            Example("declared, 47.9 GB", declared("aci", model={"memoryGiB": 47.9}), {MEMORY: "pass"}),
            Example("declared, 48 GB", declared("aci", model={"memoryGiB": 48}), {MEMORY: "fail"}),
            Example("service, model of 0.99 GB", modelled(0.99), {SIZE: "pass"}),
            Example("service, model of 1 GB", modelled(1), {SIZE: "fail"}),
            Example("declared, model of 0.99 GB", declared("aci", model={"sizeGiB": 0.99}), {SIZE: "pass"}),
            Example("declared, model of 1 GB", declared("aci", model={"sizeGiB": 1}), {SIZE: "fail"}),
        ],
    ),
    ("compute cluster", "for"): (
        "batch",
        [
            Example("deployment", on_cluster(), {"AML-INF-113": "pass", "AML-INF-103": "not_judged"}),
            Example("declared", declared("compute-cluster", purpose="batch-inference"), {"AML-INF-113": "pass"}),
            Example("job", Case(baseline="job_command"), {"AML-INF-117": "pass"}),
        ],
    ),
    ("compute cluster", "GPU"): (
        "yes, pipeline scoring",
        [
            Example("pipeline deployment", on_cluster(GPU_SIZE, **PIPELINE), {"AML-INF-102": "pass"}),
            Example("model deployment", on_cluster(GPU_SIZE), {"AML-INF-102": "pass"}),
            Example(
                "declared",
                declared("compute-cluster", purpose="batch-inference", features=["pipeline"], accelerator="gpu"),
                {"AML-INF-102": "pass"},
            ),
            Example("web service", online_on_cluster(instanceType=GPU_SIZE), GPU_REFUSED),
        ],
    ),
    ("compute cluster", "FPGA"): (
        "no",
        [
            Example("deployment", on_cluster(FPGA_SIZE), FPGA_REFUSED),
            Example("web service", online_on_cluster(instanceType=FPGA_SIZE), FPGA_REFUSED),
            Example(
                "declared", declared("compute-cluster", purpose="batch-inference", accelerator="fpga"), FPGA_REFUSED
            ),
        ],
    ),
    ("compute cluster", "limits"): (
        "no real time; low-priority nodes allowed",
        [
            Example("web service", online_on_cluster(), {"AML-INF-103": "fail", "AML-INF-112": "fail"}),
            Example("declared", declared("compute-cluster"), {"AML-INF-103": "fail", "AML-INF-112": "fail"}),
            Example("low-priority nodes", on_cluster(priority="LowPriority"), {"AML-INF-113": "pass"}),
            Example(
                "low-priority GPU nodes",
                on_cluster(GPU_SIZE, priority="LowPriority"),
                {"AML-INF-102": "pass", "AML-INF-113": "pass"},
            ),
        ],
    ),
}
ROWS = ("local web service", "AKS", "ACI", "compute cluster")
COLUMNS = ("for", "GPU", "FPGA", "limits")
EXAMPLES = [(cell, example) for cell, (_, examples) in TABLE.items() for example in examples]


@pytest.mark.parametrize(("cell", "example"), EXAMPLES, ids=[f"{'-'.join(cell)}-{one.what}" for cell, one in EXAMPLES])
def test_cell(cell: tuple[str, str], example: Example) -> None:
    """Every policy of a cell has for each of its examples the outcome of the cell."""
    assert {policy: outcome(policy, example.case) for policy in example.expected} == example.expected, TABLE[cell][0]


def test_the_table_is_whole() -> None:
    """Each of the four targets has each of the four columns, with examples that are declared."""
    assert sorted(TABLE) == sorted((row, column) for row in ROWS for column in COLUMNS)
    assert all(any(example.case.judged for example in examples) for _, examples in TABLE.values())


def printed() -> str:
    """The table, a line per cell, and below it its examples with their outcomes now."""
    lines = []
    for row in ROWS:
        lines.append(row)
        for column in COLUMNS:
            words, examples = TABLE[row, column]
            lines.append(f"  {column}: {words or '-'}")
            for example in examples:
                outcomes = ", ".join(f"{policy} {outcome(policy, example.case)}" for policy in example.expected)
                lines.append(f"    {example.what}: {outcomes}")
    return "\n".join(lines)


def test_the_table_prints() -> None:
    """The printed table has a line for every example."""
    lines = printed().splitlines()

    assert lines[:3] == [
        "local web service",
        "  for: testing, debugging",
        "    declared, dev: AML-INF-108 pass, AML-INF-112 pass",
    ]
    assert len(lines) == len(ROWS) + len(TABLE) + len(EXAMPLES)


if __name__ == "__main__":
    sys.stdout.write(f"{printed()}\n")
