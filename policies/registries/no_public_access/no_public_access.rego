# METADATA
# scope: package
# title: Registries are closed to the public network
# description: >-
#   A registry that answers on its public endpoint gives models and environments to whoever has a stolen token. Registries
#   are public unless the setting is Disabled, so a missing setting fails.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-registry-network-isolation]
# custom:
#   id: AML-REG-001
#   severity: high
#   judges: [Microsoft.MachineLearningServices/registries]
#   remediation:
#     text: >-
#       Set `public_network_access` to disabled in the registry's YAML (`az ml registry update --file <file>`), after a
#       private endpoint reaches the registry.
#     patch: [{op: add, path: /properties/publicNetworkAccess, value: Disabled}]
#   source: REG-01
#   monotone_in: {/properties/publicNetworkAccess: [Enabled, Disabled]}
#   since: 0.2.0
package registries.no_public_access

import data.lib.settings

deny contains {
	"msg": "public network access of the registry is not disabled",
	"path": settings.pointer(place),
	"actual": stated,
	"expected": "Disabled",
} if {
	not unreadable
	not settings.word(stated, {"disabled"})
}

unknown contains {"msg": "public network access is neither Enabled nor Disabled", "path": pointer} if {
	pointer := unreadable
}

unreadable := settings.unreadable_word(input.resource, place, {"enabled", "disabled"})

stated := settings.at(input.resource, place)

place := ["properties", "publicNetworkAccess"]
