# METADATA
# scope: package
# title: A cluster waits long enough before it scales down
# description: >-
#   Broken on purpose: it reads one of its parameters and forgets the other.
# custom:
#   id: BRK-RED-005
#   severity: low
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [AmlCompute]
#   inspects: [/properties/properties/scaleSettings/minNodeCount]
#   when_absent: pass
#   parameters:
#     most_nodes:
#       type: integer
#       minimum: 2
#       maximum: 10
#       default: 5
#       description: how many nodes may wait
#     forgotten:
#       type: boolean
#       default: false
#       description: nothing reads it
#   since: 0.1.0
package network.forgetful

deny contains {
	"msg": "more nodes wait than may",
	"path": "/properties/properties/scaleSettings/minNodeCount",
	"actual": waiting,
	"expected": input.parameters.most_nodes,
} if {
	waiting := input.resource.properties.properties.scaleSettings.minNodeCount
	waiting > input.parameters.most_nodes
}
