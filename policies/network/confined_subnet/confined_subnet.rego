# METADATA
# scope: package
# title: Compute subnets confine what service endpoints reach
# description: >-
#   A service endpoint for storage opens the way to every storage account of Azure, to those of others, too. A service
#   endpoint policy restricts it to the accounts that it lists.
# related_resources: [https://learn.microsoft.com/azure/virtual-network/virtual-network-service-endpoint-policies-overview]
# custom:
#   id: AML-NET-011
#   severity: info
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [AmlCompute, ComputeInstance]}
#   remediation: >-
#     Attach a service endpoint policy to the subnet: `az network vnet subnet update --vnet-name <network> --name <subnet>
#     --resource-group <group> --service-endpoint-policy <policy>`.
#   source: NET-11
#   since: 0.2.0
package network.confined_subnet

import data.lib.settings
import data.lib.subnets
import data.lib.words

applies if reaches_storage

applies if count(unknown) > 0

deny contains {
	"msg": "the subnet has a service endpoint for storage and no service endpoint policy",
	"path": settings.pointer(place),
	"actual": settings.at(subnet, policies),
	"expected": "a service endpoint policy",
} if {
	reaches_storage
	settings.at(subnet, policies) in {null, []}
}

unknown contains {"msg": "the id of the subnet cannot be read", "path": pointer} if {
	pointer := settings.unreadable(input.resource, place, "string")
}

unknown contains {"msg": "the subnet of the compute is not in the snapshot", "path": settings.pointer(place)} if {
	words.text(settings.at(input.resource, place))
	not subnet
}

unknown contains {"msg": "the service endpoints of the subnet cannot be read", "path": settings.pointer(place)} if {
	not reaches_storage
	has_unreadable_endpoint
}

unknown contains {"msg": "the service endpoint policies of the subnet cannot be read", "path": settings.pointer(place)} if {
	reaches_storage
	settings.unreadable(subnet, policies, "array")
}

reaches_storage if {
	some service in services
	words.folded(settings.at(subnet, service)) == "microsoft.storage"
}

has_unreadable_endpoint if settings.unreadable(subnet, endpoints, "array")

has_unreadable_endpoint if {
	some service in services
	settings.unreadable(subnet, service, "string")
}

services := [array.concat(endpoint, ["service"]) | some endpoint in settings.entry_paths(subnet, endpoints)]

subnet := subnets.named(settings.at(input.resource, place), input.snapshot.by_id)

place := ["properties", "properties", "subnet", "id"]

endpoints := ["properties", "serviceEndpoints"]

policies := ["properties", "serviceEndpointPolicies"]
