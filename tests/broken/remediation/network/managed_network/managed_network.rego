# METADATA
# scope: package
# title: The workspace has a managed network
# description: The neighbour that the patch of BROKEN-REM-002 breaks; nothing is wrong with this one.
# custom:
#   id: BROKEN-REM-003
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   inspects: [/properties/managedNetwork]
#   when_absent: fail
#   remediation: {text: Give the workspace a managed network.}
#   source: a broken policy
package network.managed_network

deny contains {
	"msg": "the workspace has no managed network",
	"path": "/properties/managedNetwork",
	"actual": null,
	"expected": "a managed network",
} if {
	not input.resource.properties.managedNetwork
}
