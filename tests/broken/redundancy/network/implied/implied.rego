# METADATA
# scope: package
# title: A workspace with regulated data is closed to the public network
# description: >-
#   Broken on purpose: BRK-RED-010 demands the same of every workspace, so nothing is ever said by this one alone.
# custom:
#   id: BRK-RED-004
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   inspects: [/properties/publicNetworkAccess, /properties/hbiWorkspace]
#   when_absent:
#     /properties/publicNetworkAccess: fail
#     /properties/hbiWorkspace: not_judged
#   since: 0.1.0
package network.implied

applies if {
	input.resource.properties.hbiWorkspace == true
}

deny contains {
	"msg": "public network access is not disabled",
	"path": "/properties/publicNetworkAccess",
	"actual": access,
	"expected": "Disabled",
} if {
	lower(access) != "disabled"
}

access := object.get(input.resource, ["properties", "publicNetworkAccess"], "Enabled")
