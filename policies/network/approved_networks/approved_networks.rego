# METADATA
# scope: package
# title: Computes sit in approved virtual networks
# description: >-
#   "By integrating your Azure Machine Learning workspace with a VNet, you can ensure that all compute resources,
#   including training clusters and inference deployments, operate within a controlled network environment." Evaluated when
#   the parameter `allowed_vnets` names the controlled networks, and for computes that have a subnet.
# custom:
#   id: AML-NET-104
#   severity: high
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [AmlCompute, ComputeInstance, AKS]
#   remediation:
#     text: >-
#       Recreate the compute in a subnet of an approved virtual network (`az ml compute create --subnet <subnet id>
#       ...`), or add the network's id to `allowed_vnets` of AML-NET-104.
#   source: '002 "Virtual Networks (VNets)"'
#   parameters:
#     allowed_vnets:
#       type: array
#       items: {type: string, pattern: '^(/[^/]+){8}/?$'}
#       default: []
#       description: the ids of the virtual networks that computes may sit in; with none, every network will do
#   since: 0.1.0
package network.approved_networks

import data.lib.ids
import data.lib.networks

applies if networks.subnet(input.resource)

deny contains {
	"msg": "the subnet belongs to a virtual network that is not approved",
	"path": networks.subnet_pointer(input.resource),
	"actual": networks.subnet(input.resource),
	"expected": input.parameters.allowed_vnets,
} if {
	count(input.parameters.allowed_vnets) > 0
	not is_approved
	not is_perhaps
}

unknown contains {"msg": "where the network of the subnet lies is not stated", "path": path} if {
	path := networks.subnet_pointer(input.resource)
	not is_approved
	is_perhaps
}

is_approved if {
	some network in input.parameters.allowed_vnets
	subnet_of(network) == parts
}

is_perhaps if {
	some network in input.parameters.allowed_vnets
	ids.agree_perhaps(subnet_of(network), parts)
}

# The id that the subnet would have in a network: that of the network, the segment `subnets` and its name.
subnet_of(network) := array.concat(ids.segments(network), ["subnets", parts[count(parts) - 1]])

parts := ids.segments(networks.subnet(input.resource))
