# METADATA
# scope: package
# title: Serverless compute in an own subnet has no public addresses
# description: >-
#   A node with a public address can be attacked from the internet, and its traffic leaves past the network that it was put
#   into. Azure gives the nodes public addresses unless the workspace states otherwise.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-use-serverless-compute]
# custom:
#   id: AML-NET-203
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation: >-
#     Set `no_public_ip: true` under `serverless_compute` of the workspace: `az ml workspace update --file <workspace>.yml`.
#   source: NET-203
#   since: 0.2.0
package network.serverless_addresses

import data.lib.networks
import data.lib.settings

applies if {
	not networks.is_project(input.resource)
	settings.at(input.resource, subnet) != null
}

applies if {
	not networks.is_project(input.resource)
	settings.unreadable(input.resource, subnet, "string")
}

deny contains {
	"msg": "serverless compute has public addresses",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": true,
} if {
	not settings.unreadable(input.resource, subnet, "string")
	not settings.flag(settings.at(input.resource, place))
	not settings.unreadable_flag(input.resource, place)
}

unknown contains {"msg": "the subnet of serverless compute cannot be read", "path": pointer} if {
	pointer := settings.unreadable(input.resource, subnet, "string")
}

unknown contains {"msg": "`serverlessComputeNoPublicIP` is neither true nor false", "path": pointer} if {
	pointer := settings.unreadable_flag(input.resource, place)
}

place := ["properties", "serverlessComputeSettings", "serverlessComputeNoPublicIP"]

subnet := ["properties", "serverlessComputeSettings", "serverlessComputeCustomSubnet"]
