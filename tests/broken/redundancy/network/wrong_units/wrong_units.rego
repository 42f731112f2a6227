# METADATA
# scope: package
# title: A cluster keeps a share of its nodes
# description: >-
#   Broken on purpose: the parameter is a share from 0 to 1, and the policy takes it for a percentage that exceeds 100.
# custom:
#   id: BRK-RED-006
#   severity: low
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [AmlCompute]
#   inspects: [/properties/properties/scaleSettings/maxNodeCount]
#   when_absent: pass
#   parameters:
#     share:
#       type: number
#       minimum: 0
#       maximum: 1
#       default: 0.5
#       description: the share of nodes that is kept
#   since: 0.1.0
package network.wrong_units

deny contains {
	"msg": "too large a share is kept",
	"path": "/properties/properties/scaleSettings/maxNodeCount",
	"actual": input.parameters.share,
	"expected": "a smaller share",
} if {
	input.parameters.share > 100
}
