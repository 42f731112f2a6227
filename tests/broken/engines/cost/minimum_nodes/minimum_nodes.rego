# METADATA
# scope: package
# title: A cluster keeps fewer nodes than the limit while it is idle
# description: >-
#   Broken on purpose: the Python twin holds the limit itself for too many, and the policy does not.
# custom:
#   id: BROKEN-ENGINES
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [AmlCompute]}
#   inspects: [/properties/properties/scaleSettings/minNodeCount]
#   when_absent: pass
#   remediation:
#     text: "Lower it: `az ml compute update --min-instances 0`."
#   source: a bundle of broken policies
#   since: 0.1.0
package cost.minimum_nodes

deny contains {
	"msg": "the cluster keeps many nodes while it is idle",
	"path": "/properties/properties/scaleSettings/minNodeCount",
	"actual": nodes,
	"expected": "at most 2",
} if {
	nodes := input.resource.properties.properties.scaleSettings.minNodeCount
	is_number(nodes)
	nodes > 2
}
