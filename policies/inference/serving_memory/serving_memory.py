"""Deployments on machines with less than half again the memory that their model needs."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.serving import HEADROOM, SIZED_TARGETS, has_room, serving_machine
from policyeng.facts.siblings import larger_siblings

_MEMORY = "/model/memoryGiB"


def _applies(given: PolicyInput) -> bool:
    """Where a work runs is read only where its model is known."""
    return given.resource["model"].get("memoryGiB") is not None and given.resource["target"] in SIZED_TARGETS


@policy(
    id="AML-INF-110",
    title="The serving machine has half again the memory the model needs",
    description='"Start with a machine that has 150% of the RAM your model requires." The machine is that of the '
    "online or batch deployment, or of the compute that serves it; of a Kubernetes cluster it is the largest node. "
    "A declared workload with the deployment's `sourceId` states what memory the model needs; without one nothing is "
    "evaluated.",
    related_resources=[
        "https://learn.microsoft.com/azure/machine-learning/reference-managed-online-endpoints-vm-sku-list"
    ],
    severity="medium",
    judges=[{"type": "workload", "where": {"/purpose": ["realtime-inference", "batch-inference"]}}],
    remediation={
        "text": "Deploy on a size with more memory: a second deployment with another `instance_type` (`az ml "
        "online-deployment create --file <file>`), to which the traffic moves (`az ml online-endpoint update --traffic "
        "<new>=100`); for a batch deployment a cluster of a larger size (`az ml compute "
        "create --type amlcompute --size <size> ...`), for Kubernetes `az aks nodepool add --node-vm-size <size> ...`."
    },
    source='001 "Compute targets for inference"',
    monotone_in={"/model/memoryGiB": "lower"},
    since="0.1.0",
    applies=_applies,
)
def serving_memory(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny a machine whose memory is less than 1.5 times the model's; exactly that is enough."""
    model = given.resource["model"]["memoryGiB"]
    machine = serving_machine(given.resource, given.snapshot.by_id, given.facts)
    if machine.size is None:
        yield Unknown(msg=machine.reason, path="/computeId" if given.resource["computeId"] else "/sourceId")
    elif not has_room(machine.size.memory_gib, model):
        larger = larger_siblings(given.facts, machine.size.name, given.as_of)
        fitting = next((size.name for size in larger if has_room(size.memory_gib, model)), None)
        needed = round(HEADROOM * model, 6)
        yield Denial(
            msg="the machine has less than half again the memory that the model needs",
            path=_MEMORY,
            actual={"size": machine.size.name, "memoryGiB": machine.size.memory_gib, "modelGiB": model},
            expected={"memoryGiB": needed, "size": fitting or "one of another series: none of this one has it"},
        )
