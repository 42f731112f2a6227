"""Online deployments that add machines before they have tried a larger one."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.computes import max_instances
from policyeng.facts.serving import HEADROOM, SIZED_TARGETS, has_room, serving_machine
from policyeng.facts.siblings import larger_siblings
from policyeng.models import lowered

_ONLINE = "Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments"
_MEMORY = "/model/memoryGiB"


@policy(
    id="AML-INF-118",
    title="Scale up before scaling out",
    description='"When choosing a cluster SKU, first scale up and then scale out. Start with a machine that has 150% '
    'of the RAM your model requires." More instances than `scale_out_limit` are right once the machine has that '
    "memory, or its series has no larger size to offer. They are counted by `sku.capacity`, or by `maxInstances` where "
    "the deployment scales itself.",
    related_resources=[
        "https://learn.microsoft.com/azure/machine-learning/reference-managed-online-endpoints-vm-sku-list"
    ],
    severity="info",
    judges=[{"type": "workload", "where": {"/sourceType": [_ONLINE]}}],
    # Only of a deployment that has too many instances is asked what its model needs and where it runs.
    remediation={
        "text": "Create a second deployment with the larger size as `instance_type` and fewer instances (`az ml "
        "online-deployment create --file <file>`), measure it, move the traffic (`az ml online-endpoint update "
        "--traffic <new>=100`), and only then add instances. Where the model's memory is not known, declare it in a "
        "workload with the deployment's `sourceId`."
    },
    source='001 "Compute targets for inference"',
    parameters={
        "scale_out_limit": {
            "type": "integer",
            "minimum": 0,
            "default": 4,
            "description": "how many instances there may be of a machine that is short of memory",
        }
    },
    refines=["AML-INF-110"],  # which denies the small machine without the way to fix it
    monotone_in={"/model/memoryGiB": "lower", "parameter:scale_out_limit": "lower"},
    since="0.1.0",
)
def scale_up_first(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny more instances than the limit of a size that is short of memory and has a larger sibling."""
    instances = max_instances(given.snapshot.by_id[lowered(given.resource["sourceId"])])
    if instances is None:
        yield Unknown(msg="how many instances it has cannot be told", path="/sourceId")
        return
    if instances <= given.parameters["scale_out_limit"]:
        return
    machine, model = serving_machine(given.resource, given.snapshot.by_id, given.facts), given.resource["model"]
    if machine.size is None:
        yield Unknown(msg=machine.reason, path="/sourceId")
        return
    larger = larger_siblings(given.facts, machine.size.name, given.as_of)
    if larger and model["memoryGiB"] is None:
        yield Unknown(msg="the memory that the model needs is not known", path=_MEMORY)
    elif (
        larger
        and given.resource["target"] in SIZED_TARGETS
        and not has_room(machine.size.memory_gib, model["memoryGiB"])
    ):
        yield Denial(
            msg="the deployment scales out on machines that are short of memory",
            path=_MEMORY,
            actual={"instances": instances, "size": machine.size.name, "memoryGiB": machine.size.memory_gib},
            expected={"size": larger[0].name, "memoryGiB": round(HEADROOM * model["memoryGiB"], 6)},
        )
