# METADATA
# scope: package
# title: Compute nodes have no public address
# description: >-
#   A node with a public address can be reached and scanned from the internet. Azure gives the nodes of a cluster one
#   unless `enableNodePublicIp` is false. It never returns this setting for an instance, whose `connectivityEndpoints` are
#   read in place of it.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-secure-training-vnet]
# custom:
#   id: AML-CMP-003
#   severity: high
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [AmlCompute, ComputeInstance]}
#   remediation: >-
#     Recreate the compute without public addresses (`az ml compute create --enable-node-public-ip false ...`), in a subnet
#     or in the managed network of the workspace.
#   source: CMP-03
#   since: 0.2.0
package compute.no_public_address

import data.lib.computes
import data.lib.settings

deny contains {
	"msg": "the nodes have a public address",
	"path": settings.pointer(flag_place),
	"actual": stated,
	"expected": false,
} if {
	settings.flag(stated)
}

deny contains {
	"msg": "the nodes of a cluster have a public address by default",
	"path": settings.pointer(flag_place),
	"actual": null,
	"expected": false,
} if {
	settings.is_unset(input.resource, flag_place)
	not asks_endpoints
}

deny contains {
	"msg": "the instance has a public address",
	"path": settings.pointer(address_place),
	"actual": address,
	"expected": "no address",
} if {
	asks_endpoints
	is_string(address)
}

unknown contains {"msg": "`enableNodePublicIp` is neither true nor false", "path": pointer} if {
	pointer := settings.unreadable_flag(input.resource, flag_place)
}

unknown contains {"msg": "the public address is not text", "path": pointer} if {
	asks_endpoints
	pointer := settings.unreadable(input.resource, address_place, "string")
}

unknown contains {
	"msg": "neither `enableNodePublicIp` nor the endpoints of the instance are stated",
	"path": "/properties/properties/connectivityEndpoints",
} if {
	asks_endpoints
	settings.at(input.resource, endpoints_place) == null
}

# Only of an instance without the setting.
asks_endpoints if {
	settings.is_unset(input.resource, flag_place)
	computes.kind(input.resource) == "computeinstance"
}

stated := settings.at(input.resource, flag_place)

address := settings.at(input.resource, address_place)

flag_place := ["properties", "properties", "enableNodePublicIp"]

endpoints_place := ["properties", "properties", "connectivityEndpoints"]

address_place := array.concat(endpoints_place, ["publicIpAddress"])
