# METADATA
# scope: package
# title: A cluster is not open to SSH
# description: >-
#   Broken on purpose: what is compared was made lower case, and the other side has capitals, so it never fails.
# custom:
#   id: BRK-RED-003
#   severity: high
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [AmlCompute]
#   inspects: [/properties/properties/remoteLoginPortPublicAccess]
#   when_absent: pass
#   since: 0.1.0
package network.never_fails

deny contains {
	"msg": "the nodes take SSH from anywhere",
	"path": "/properties/properties/remoteLoginPortPublicAccess",
	"actual": access,
	"expected": "Disabled",
} if {
	access := input.resource.properties.properties.remoteLoginPortPublicAccess
	lower(access) == "Enabled"
}
