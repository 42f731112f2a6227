# METADATA
# scope: package
# title: Public network access of the workspace is disabled
# description: |
#   Broken on purpose: it denies small estates alone. Where there are many workspaces it takes them for a landscape that
#   someone else looks after, so a larger estate is allowed although there is more to deny.
# custom:
#   id: BROKEN-GATE-1
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   inspects: [/properties/publicNetworkAccess]
#   consults: [{type: Microsoft.MachineLearningServices/workspaces, reads: [/id]}]
#   when_absent: fail
#   remediation: Disable it.
#   source: a policy that lets large estates off, as a broken gate would
#   since: 0.1.0
package area.lenient_when_large

deny contains {
	"msg": "public network access is not disabled",
	"path": "/properties/publicNetworkAccess",
	"actual": access,
	"expected": "Disabled",
} if {
	access != "Disabled"
	count(input.snapshot.by_type["microsoft.machinelearningservices/workspaces"]) < 3
}

access := object.get(input.resource, ["properties", "publicNetworkAccess"], "Enabled")
