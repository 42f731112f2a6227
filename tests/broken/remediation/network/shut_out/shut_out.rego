# METADATA
# scope: package
# title: The workspace sends nothing out that is not approved
# description: >-
#   Broken on purpose: its patch mends the finding by taking the managed network away, and BROKEN-REM-003 asks for one.
# custom:
#   id: BROKEN-REM-002
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   inspects: [/properties/managedNetwork]
#   when_absent: pass
#   remediation:
#     text: Let no managed network send traffic out that is not approved.
#     patch: [{op: remove, path: /properties/managedNetwork}]
#   source: a broken policy
package network.shut_out

deny contains {
	"msg": "the managed network lets everything out",
	"path": "/properties/managedNetwork/isolationMode",
	"actual": input.resource.properties.managedNetwork.isolationMode,
	"expected": "AllowOnlyApprovedOutbound",
} if {
	input.resource.properties.managedNetwork.isolationMode == "AllowInternetOutbound"
}
