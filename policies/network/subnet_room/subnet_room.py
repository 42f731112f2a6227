"""A cluster that may grow beyond what its subnet has addresses for."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.bundle import SnapshotView
from policyeng.facts.computes import max_nodes
from policyeng.facts.subnets import addresses_taken, subnet_in, subnets_of, usable_addresses

_SCALE = "/properties/properties/scaleSettings/maxNodeCount"
_SUBNET = "/properties/properties/subnet/id"


class _Room(NamedTuple):
    """The addresses of a subnet, the most that its computes can use as far as stated, and whether all state it."""

    usable: int | None
    taken: int
    is_whole: bool


def _rooms(given: PolicyInput) -> list[_Room]:
    """Return the room in each subnet of a cluster that the snapshot includes."""
    view, keys = given.snapshot, subnets_of(given.resource)
    return [room for key in keys for room in view.once(("AML-NET-103", key), partial(_rooms_in, key, view))]


def _rooms_in(key: str, snapshot: SnapshotView) -> list[_Room]:
    subnet = subnet_in(snapshot.by_id, key, lambda network, make: snapshot.once(("AML-NET-103", "in", network), make))
    if subnet is None:
        return []
    computes = [snapshot.by_id[compute] for compute in snapshot.by_subnet[key]]
    taken = list(addresses_taken(key, computes, snapshot.by_id))
    return [_Room(usable_addresses(subnet), sum(number for number in taken if number), None not in taken)]


@policy(
    id="AML-NET-103",
    title="A cluster's subnet has room for its largest scale",
    description='"By integrating your Azure Machine Learning workspace with a VNet, you can ensure that all compute '
    "resources, including training clusters and inference deployments, operate within a controlled network "
    'environment." Every node takes an address of the subnet, of which Azure keeps five. The other computes of the '
    "subnet count at their largest scale too: clusters, instances, and pools of AKS, with Azure CNI also their pods.",
    related_resources=["https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq"],
    severity="medium",
    judges=[
        {
            "type": "Microsoft.MachineLearningServices/workspaces/computes",
            "where": {"/properties/computeType": ["AmlCompute"]},
        }
    ],
    remediation="Lower the largest scale (`az ml compute update --name <cluster> --max-instances <free>`), or "
    "recreate the cluster in a larger subnet (`az network vnet subnet create --address-prefixes 10.0.8.0/22 ...`, "
    "`az ml compute create --subnet <subnet id> ...`).",
    source='002 "Virtual Networks (VNets)"',
    monotone_in={"/properties/properties/scaleSettings/maxNodeCount": "lower"},
    since="0.1.0",
    applies=lambda given: bool(_rooms(given)),
)
def subnet_room(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny a largest scale that is more than the prefix less Azure's five and what the others can take."""
    wanted = max_nodes(given.resource)
    for room in _rooms(given):
        if wanted is None:
            yield Unknown(msg="the largest scale of the cluster is not a whole number", path=_SCALE)
        elif room.usable is None:
            yield Unknown(msg="the subnet states no prefix that can be read", path=_SUBNET)
        elif wanted > (free := max(0, room.usable + wanted - room.taken)):
            message = "the subnet has fewer free addresses than the cluster may have nodes"
            actual = {"maxNodeCount": wanted, "free": free, "subnet": room.usable}
            yield Denial(msg=message, path=_SCALE, actual=actual, expected="a free address for every node")
        elif not room.is_whole:
            yield Unknown(msg="the largest scale of another compute in the subnet is not known", path=_SUBNET)
