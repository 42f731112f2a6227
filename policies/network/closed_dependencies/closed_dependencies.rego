# METADATA
# scope: package
# title: The workspace's storage, vault and registry are closed and reached privately
# description: >-
#   A closed workspace whose storage account, key vault or container registry is open can be attacked through these. Each
#   of them is closed to the public network and has an approved private endpoint connection.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-secure-workspace-vnet]
# custom:
#   id: AML-NET-010
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation: >-
#     Create a private endpoint for each of them (`az network private-endpoint create`), approve its connection, and then
#     disable their public network access.
#   source: NET-10
#   since: 0.2.0
package network.closed_dependencies

import data.lib.ids
import data.lib.networks
import data.lib.private_endpoints
import data.lib.public_access
import data.lib.settings

applies if not networks.is_project(input.resource)

deny contains {
	"msg": "a resource of the workspace is open to the public network",
	"path": settings.pointer(place),
	"actual": settings.at(dependency, public_access.place),
	"expected": "Disabled or SecuredByPerimeter",
} if {
	some place in places
	dependency := dependency_at(place)
	not public_access.is_closed(dependency)
	not public_access.unreadable(dependency)
}

deny contains {
	"msg": "a resource of the workspace has no approved private endpoint connection",
	"path": settings.pointer(place),
	"actual": {"connections": count(private_endpoints.listed(dependency))},
	"expected": "a connection with the status Approved",
} if {
	some place in places
	dependency := dependency_at(place)
	approval(dependency) == "missing"
}

unknown contains {"msg": "a resource of the workspace is not in the snapshot", "path": settings.pointer(place)} if {
	some place in places
	is_expected(place)
	not dependency_at(place)
}

unknown contains {"msg": "the public network access of a resource of the workspace cannot be read", "path": settings.pointer(place)} if {
	some place in places
	dependency := dependency_at(place)
	public_access.unreadable(dependency)
}

unknown contains {"msg": "the private endpoint connections of a resource of the workspace cannot be read", "path": settings.pointer(place)} if {
	some place in places
	dependency := dependency_at(place)
	approval(dependency) == "unreadable"
}

approval(dependency) := "found" if {
	some entry in private_endpoints.listed(dependency)
	private_endpoints.is_approved(entry.connection)
} else := "unreadable" if {
	count(private_endpoints.unreadable(dependency, private_endpoints.listed(dependency))) > 0
} else := "missing"

places := {registry, ["properties", "storageAccount"], ["properties", "keyVault"]}

registry := ["properties", "containerRegistry"]

# A workspace has no container registry before it builds the first image.
is_expected(place) if place != registry

is_expected(place) if settings.at(input.resource, place) != null

dependency_at(place) := ids.named(settings.at(input.resource, place), input.snapshot.by_id)
