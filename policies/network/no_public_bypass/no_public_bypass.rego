# METADATA
# scope: package
# title: Public access is not reopened behind the virtual network
# description: >-
#   `allowPublicAccessWhenBehindVnet` opens the public endpoint of a workspace that a private endpoint was meant to
#   close. Azure's default is false.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-configure-private-link]
# custom:
#   id: AML-NET-002
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: Set `allowPublicAccessWhenBehindVnet` of the workspace to false.
#     patch: [{op: replace, path: /properties/allowPublicAccessWhenBehindVnet, value: false}]
#   source: NET-02
#   since: 0.2.0
package network.no_public_bypass

import data.lib.networks
import data.lib.settings

applies if not networks.is_project(input.resource)

deny contains {
	"msg": "public access is allowed behind the virtual network",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": false,
} if {
	settings.flag(settings.at(input.resource, place))
}

unknown contains {"msg": "`allowPublicAccessWhenBehindVnet` is neither true nor false", "path": pointer} if {
	pointer := settings.unreadable_flag(input.resource, place)
}

place := ["properties", "allowPublicAccessWhenBehindVnet"]
