# METADATA
# scope: package
# title: Legacy mode is as required
# description: >-
#   Legacy mode keeps the traffic of API version 1 inside the network, and turns features of version 2 off. Organizations
#   differ in which of these they need, so the policy is off while `required` is null. Azure's default is false.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-configure-network-isolation-with-v2]
# custom:
#   id: AML-NET-008
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation: >-
#     Set `v1LegacyMode` of the workspace (`az ml workspace update --set v1_legacy_mode=<value>`), knowing that true turns
#     features of version 2 off.
#   source: NET-08
#   parameters:
#     required: {type: [boolean, 'null'], default: null, description: whether legacy mode is on; null for either}
#   since: 0.2.0
package network.legacy_mode

import data.lib.networks
import data.lib.settings

applies if {
	is_boolean(input.parameters.required)
	not networks.is_project(input.resource)
}

deny contains {
	"msg": "legacy mode is not as required",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": input.parameters.required,
} if {
	mode != input.parameters.required
}

unknown contains {"msg": "`v1LegacyMode` is neither true nor false", "path": pointer} if {
	pointer := settings.unreadable_flag(input.resource, place)
}

mode := settings.flag(settings.at(input.resource, place))

mode := false if {
	settings.at(input.resource, place) == null
	not settings.unreadable_flag(input.resource, place)
}

place := ["properties", "v1LegacyMode"]
