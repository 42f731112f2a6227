# METADATA
# scope: package
# title: The workspace is closed to the public network
# description: >-
#   Broken on purpose: its patch writes `Deny`, which is what storage accounts call it. The setting of a workspace is
#   `Disabled`, and that is what the rule asks for.
# custom:
#   id: BROKEN-REM-001
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   inspects: [/properties/publicNetworkAccess]
#   when_absent: fail
#   remediation:
#     text: Disable public network access.
#     patch: [{op: add, path: /properties/publicNetworkAccess, value: Deny}]
#   source: a broken policy
package network.closed_front

deny contains {
	"msg": "public network access is not disabled",
	"path": "/properties/publicNetworkAccess",
	"actual": access,
	"expected": "Disabled",
} if {
	access != "Disabled"
}

access := object.get(input.resource, ["properties", "publicNetworkAccess"], null)
