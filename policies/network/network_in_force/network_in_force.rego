# METADATA
# scope: package
# title: The managed network is provisioned, not only configured
# description: >-
#   A managed network that is not provisioned isolates nothing yet, whatever its mode promises. Azure provisions it with the
#   first compute, or on request.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-managed-network]
# custom:
#   id: AML-NET-201
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation: "Provision it: `az ml workspace provision-network --name <workspace> --resource-group <group>`."
#   source: NET-201
#   since: 0.2.0
package network.network_in_force

import data.lib.managed_networks
import data.lib.networks
import data.lib.settings

applies if {
	not networks.is_project(input.resource)
	managed_networks.isolates(input.resource)
}

applies if {
	not networks.is_project(input.resource)
	managed_networks.unreadable_mode(input.resource)
}

deny contains {
	"msg": "the managed network is configured and not provisioned",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": "Active",
} if {
	not doubt
	not settings.word(settings.at(input.resource, place), {"active"})
}

unknown contains doubt

doubt := {"msg": "the isolation mode of the managed network cannot be read", "path": pointer} if {
	pointer := managed_networks.unreadable_mode(input.resource)
} else := {"msg": "the status of the managed network cannot be read", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, place, {"active", "inactive"})
} else := {"msg": "the status of the managed network is not stated", "path": settings.pointer(place)} if {
	settings.at(input.resource, place) == null
}

place := ["properties", "managedNetwork", "status", "status"]
