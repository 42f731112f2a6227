# METADATA
# scope: package
# title: Local authentication of computes is disabled
# description: >-
#   SSH keys and local accounts bypass Microsoft Entra ID, its conditional access and its sign-in log. Azure's default
#   leaves local authentication on, so a missing setting fails.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-integrate-azure-policy]
# custom:
#   id: AML-CMP-001
#   severity: high
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [AmlCompute, ComputeInstance]}
#   remediation:
#     text: Set `disableLocalAuth` to true. An existing compute is recreated.
#     patch: [{op: add, path: /properties/disableLocalAuth, value: true}]
#   source: CMP-01
#   since: 0.2.0
package compute.no_local_auth

import data.lib.settings

deny contains {
	"msg": "local authentication is not disabled",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": true,
} if {
	not settings.unreadable_flag(input.resource, place)
	not settings.flag(settings.at(input.resource, place))
}

unknown contains {"msg": "`disableLocalAuth` is neither true nor false", "path": pointer} if {
	pointer := settings.unreadable_flag(input.resource, place)
}

place := ["properties", "disableLocalAuth"]
