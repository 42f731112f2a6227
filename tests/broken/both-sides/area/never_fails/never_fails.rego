# METADATA
# scope: package
# title: Public network access of the workspace is disabled
# description: |
#   Broken on purpose: the value is compared in lower case with a word that has a capital letter, so it can never fail.
# custom:
#   id: BROKEN-BOTH-SIDES-1
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   inspects: [/properties/publicNetworkAccess]
#   when_absent: pass
#   remediation: Disable it.
#   source: a policy that breaks law 9
#   since: 0.1.0
package area.never_fails

deny contains {
	"msg": "public network access is not disabled",
	"path": "/properties/publicNetworkAccess",
	"actual": access,
	"expected": "Disabled",
} if {
	access := input.resource.properties.publicNetworkAccess
	is_string(access)
	lower(access) == "Enabled"
}
