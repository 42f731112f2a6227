# METADATA
# scope: package
# title: A workspace is not open to every network
# description: >-
#   Broken on purpose: the type that it judges lacks its last letter, so it never applies to anything that exists.
# custom:
#   id: BRK-RED-001
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspace]
#   inspects: [/properties/publicNetworkAccess]
#   when_absent: fail
#   since: 0.1.0
package network.misspelt_type

deny contains {
	"msg": "public network access is not disabled",
	"path": "/properties/publicNetworkAccess",
	"actual": access,
	"expected": "Disabled",
} if {
	lower(access) != "disabled"
}

access := object.get(input.resource, ["properties", "publicNetworkAccess"], "Enabled")
