# METADATA
# scope: package
# title: The workspace runs in legacy mode
# description: >-
#   Broken on purpose: it reads a field that it does not declare under `inspects`, so what a format cannot say is taken
#   for absent. Files of the Azure CLI do not say it.
# custom:
#   id: BROKEN-FORMATS
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   inspects: [/properties/publicNetworkAccess]
#   when_absent: pass
#   remediation:
#     text: Leave legacy mode.
#   source: a bundle of broken policies
#   since: 0.1.0
package network.legacy_mode

deny contains {
	"msg": "the workspace is not in legacy mode",
	"path": "/properties/v1LegacyMode",
	"actual": false,
	"expected": true,
} if {
	input.resource.properties.v1LegacyMode == false
}
