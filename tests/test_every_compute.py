"""Every compute and every target decides: no policy errs, and what is unknown states why, and where."""

from __future__ import annotations

import itertools
from collections import defaultdict
from datetime import UTC, datetime
from typing import get_args

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, Policy, load_bundle
from policyeng.bundle.cases import Baselines
from policyeng.models import Evaluation, Finding, JsonObject, Outcome, Purpose, Snapshot, Target
from policyeng.models.documents import Accelerator, Cadence, Feature
from tests.conftest import ROOT

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
ML = "Microsoft.MachineLearningServices/workspaces"
GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml/providers"
BASELINES = Baselines.read(ROOT / "samples" / "baselines")

#: The place of the nodes of a compute: its properties, as ARM writes them and without anything that could be left out.
COMPUTES: dict[str, JsonObject] = {
    "AmlCompute": {"vmSize": "Standard_DS3_v2", "scaleSettings": {"minNodeCount": 0, "maxNodeCount": 4}},
    "ComputeInstance": {"vmSize": "Standard_NC6"},
    "Kubernetes": {"namespace": "ml"},
    "AKS": {"agentVmSize": "Standard_D3_v2", "agentCount": 3, "clusterPurpose": "FastProd"},
    "VirtualMachine": {"virtualMachineSize": "Standard_D3_v2"},
    "Databricks": {},
    "HDInsight": {},
    "DataLakeAnalytics": {},
    "SynapseSpark": {},
    "Batch": {},
}
#: Other places where work runs, by the stem of their baseline.
OTHERS = (
    *("online_deployment", "batch_deployment", "service_aci", "service_aks", "container_group", "managed_cluster"),
    *("synapse_pool", "job_command", "virtual_machine"),
)
#: By name, the tags and the flag of a workspace.
WORKSPACES: dict[str, tuple[JsonObject, JsonObject]] = {
    "dev": ({"environment": "dev"}, {}),
    "production": ({"environment": "production"}, {}),
    "regulated": ({"data-classification": "regulated"}, {"hbiWorkspace": True}),
    "silent": ({}, {}),
}


def workspace(name: str) -> JsonObject:
    """A workspace that is what its name states."""
    tags, properties = WORKSPACES[name]
    return {"id": f"{GROUP}/{ML}/{name}", "type": ML, "location": "eastus", "tags": tags, "properties": properties}


def forms(kind: str, home: str) -> list[JsonObject]:
    """A compute as it is, with nothing inside, and with nothing at all; and a job on each."""
    target = f"{GROUP}/Microsoft.Compute/virtualMachines/{kind}"
    bodies: dict[str, object] = {
        "whole": {"computeType": kind, "resourceId": target, "properties": COMPUTES[kind]},
        "shouted": {"computeType": kind.upper(), "properties": COMPUTES[kind]},
        "bare": {"computeType": kind, "properties": None},
        "odd": {"computeType": kind, "resourceId": 7, "properties": dict.fromkeys(COMPUTES[kind], "")},
    }
    made: list[JsonObject] = []
    for form, properties in bodies.items():
        arm_id = f"{GROUP}/{ML}/{home}/computes/{kind}-{form}"
        made.append({"id": arm_id, "type": f"{ML}/computes", "properties": properties})
        job = {"jobType": "Command", "computeId": arm_id, "resources": {"instanceCount": 2}}
        made.append({"id": f"{GROUP}/{ML}/{home}/jobs/on-{kind}-{form}", "type": f"{ML}/jobs", "properties": job})
    return made


def moved(stem: str, home: str) -> JsonObject:
    """A baseline of another workspace, without its tags; what lies in none is tagged."""
    resource = dict(BASELINES.resources[stem])
    resource["id"] = resource["id"].replace("/workspaces/ws-ml/", f"/workspaces/{home}/")
    if f"/{home}/" in resource["id"]:
        return {key: value for key, value in resource.items() if key != "tags"}
    return {**resource, "id": f"{resource['id']}-{home}", "tags": WORKSPACES[home][0]}


@pytest.fixture(scope="module")
def computes(bundle: Bundle) -> dict[str, list[Finding]]:
    """All kinds of compute in all workspaces and forms, evaluated at once: findings by lower-case id."""
    resources = [workspace(home) for home in WORKSPACES]
    resources += [form for kind in COMPUTES for home in WORKSPACES for form in forms(kind, home)]
    resources += [moved(stem, home) for stem in OTHERS for home in WORKSPACES]
    return by_subject(evaluate(bundle, Snapshot(resources=tuple(resources)), as_of=AS_OF))


def by_subject(evaluation: Evaluation) -> dict[str, list[Finding]]:
    """Findings by the lower-case id of what they are about."""
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in evaluation.findings:
        found[finding.resource.lower()].append(finding)
    return found


def undecided(findings: list[Finding]) -> list[str]:
    """What is wrong with findings: an error, or an unknown that states neither why nor where."""
    return [
        f"{finding.policy} {finding.resource}: {finding.outcome.value} {finding.unknowns}"
        for finding in findings
        if finding.outcome is Outcome.ERROR
        or (finding.outcome is Outcome.UNKNOWN and not all(one.msg and one.path for one in finding.unknowns))
        or (finding.outcome is Outcome.UNKNOWN and not finding.unknowns)
    ]


@pytest.mark.parametrize("kind", COMPUTES)
def test_every_kind_of_compute_is_decided(computes: dict[str, list[Finding]], kind: str) -> None:
    """Written out, bare, shouted or odd, in a workspace of any stage: some policy evaluates it, and none errs."""
    for home in WORKSPACES:
        for form in ("whole", "shouted", "bare", "odd"):
            found = computes[f"{GROUP}/{ML}/{home}/computes/{kind}-{form}".lower()]
            assert found
            assert undecided(found + computes[f"{GROUP}/{ML}/{home}/jobs/on-{kind}-{form}".lower()]) == []


@pytest.mark.parametrize("stem", OTHERS)
def test_everything_else_that_work_runs_on_is_decided(computes: dict[str, list[Finding]], stem: str) -> None:
    """Deployments, services, container groups, managed clusters, Spark pools and jobs of every workspace."""
    found = [finding for home in WORKSPACES for finding in computes.get(moved(stem, home)["id"].lower(), [])]

    assert undecided(found) == []


def test_an_unknown_kind_is_decided(bundle: Bundle) -> None:
    """A compute type that is new, blank, of another type or absent makes no policy err."""
    kinds: list[object] = ["Quantum", "", " ", None, 7, [], {"a": 1}]
    resources = [
        {"id": f"{GROUP}/{ML}/dev/computes/c{at}", "type": f"{ML}/computes", "properties": {"computeType": kind}}
        for at, kind in enumerate(kinds)
    ]
    evaluation = evaluate(bundle, Snapshot(resources=(workspace("dev"), *resources)), as_of=AS_OF)

    assert undecided(list(evaluation.findings)) == []


STAGES = ("dev", "test", "staging", "production", "")
DECLARED = [
    {
        "id": "-".join(part or "unstaged" for part in (target, purpose, accelerator, stage)),
        "workspaceId": f"{GROUP}/{ML}/{home}",
        "purpose": purpose,
        "target": target,
        "accelerator": accelerator,
        "features": list(features),
        "cadence": cadence,
        "model": model,
        "tags": {"environment": stage} if stage else {},
    }
    for (target, purpose, accelerator, stage), home, features, cadence, model in zip(
        itertools.product(get_args(Target), get_args(Purpose), get_args(Accelerator), STAGES),
        itertools.cycle(["regulated", "dev", "production", "silent", "silent", "regulated", "silent"]),
        itertools.cycle([(), get_args(Feature), ("automl",), ("pipeline", "distributed"), ("designer",), ("sweep",)]),
        itertools.cycle([*get_args(Cadence), None, "continuous"]),
        itertools.cycle([None, {"sizeGiB": 1, "memoryGiB": 48}, {}, {"sizeGiB": 0.5, "memoryGiB": 1}]),
        strict=False,
    )
]
#: The policies that evaluate nothing but workloads.
OF_WORK = [
    policy
    for policy in load_bundle().policies
    if {evaluated.type for evaluated in policy.header.judges} == {"workload"}
]


#: The policies that a declaration alone never lets decide. Four need a resource: the deployment with its machine, the
#: cluster with its nodes, or the job with its sweep.
NEVER_DECIDED = {"AML-INF-110", "AML-INF-118", "AML-JOB-008", "AML-TRN-107"}
#: It lets all pass unless its parameter requires more.
NEVER_FAILING = {"AML-TRN-104"}


@pytest.fixture(scope="module")
def workloads(bundle: Bundle) -> Evaluation:
    """All targets with every purpose, accelerator and stage, evaluated at once; the rest of a workload varies along."""
    homes = tuple(workspace(name) for name in WORKSPACES)
    return evaluate(bundle, Snapshot.model_validate({"resources": homes, "workloads": DECLARED}), as_of=AS_OF)


def test_every_target_is_declared_with_everything(workloads: Evaluation) -> None:
    """The product is whole: 16 targets, 4 purposes, 3 accelerators, 4 stages and none."""
    assert len({entry["id"] for entry in DECLARED}) == 16 * 4 * 3 * 5
    assert workloads.problems == ()


@pytest.mark.parametrize("target", get_args(Target))
def test_every_target_is_decided(workloads: Evaluation, target: str) -> None:
    """Whatever runs there, some policy evaluates it and none errs."""
    found = [finding for finding in workloads.findings if finding.resource.startswith(f"{target}-")]

    assert found
    assert undecided(found) == []


@pytest.mark.parametrize("policy", OF_WORK, ids=lambda policy: policy.id)
def test_policies_of_workloads_decide_both_ways_or_state_why_not(workloads: Evaluation, policy: Policy) -> None:
    """Of what is declared each lets some pass and finds some failing, but for those that are named."""
    found = [finding for finding in workloads.findings if finding.policy == policy.id]
    outcomes = {finding.outcome for finding in found} & {Outcome.PASS, Outcome.FAIL}

    assert undecided(found) == []
    both = {Outcome.PASS} if policy.id in NEVER_FAILING else {Outcome.PASS, Outcome.FAIL}
    assert outcomes == (set() if policy.id in NEVER_DECIDED else both)
