# METADATA
# scope: package
# title: A workspace is closed to the public network
# description: The policy that another of this bundle is implied by.
# custom:
#   id: BRK-RED-010
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   inspects: [/properties/publicNetworkAccess]
#   when_absent: fail
#   since: 0.1.0
package network.closed

deny contains {
	"msg": "public network access is not disabled",
	"path": "/properties/publicNetworkAccess",
	"actual": access,
	"expected": "Disabled",
} if {
	lower(access) != "disabled"
}

access := object.get(input.resource, ["properties", "publicNetworkAccess"], "Enabled")
