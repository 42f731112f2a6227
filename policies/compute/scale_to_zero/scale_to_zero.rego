# METADATA
# scope: package
# title: An idle cluster scales down to no nodes
# description: >-
#   "When a compute cluster is idle, it autoscales to 0 nodes, so you don't pay when it's not in use." It does so only
#   where `minNodeCount` is 0, which is Azure's default. Who keeps nodes waiting on purpose raises the parameter.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-manage-optimize-cost]
# custom:
#   id: AML-CMP-008
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [AmlCompute]}
#   remediation:
#     text: Let the cluster scale to no nodes (`az ml compute update --name <cluster> --min-instances 0`).
#     patch: [{op: replace, path: /properties/properties/scaleSettings/minNodeCount, value: 0}]
#   source: '001 "Azure Machine Learning compute (managed)" (note on idle clusters); CMP-08'
#   parameters:
#     most_waiting_nodes: {type: integer, minimum: 0, default: 0, description: how many nodes may wait for work}
#   monotone_in: {/properties/properties/scaleSettings/minNodeCount: lower, "parameter:most_waiting_nodes": lower}
#   since: 0.1.0
package compute.scale_to_zero

import data.lib.numbers
import data.lib.settings

deny contains {
	"msg": "nodes are kept while the cluster is idle",
	"path": settings.pointer(place),
	"actual": stated,
	"expected": {"at most": input.parameters.most_waiting_nodes},
} if {
	numbers.whole(stated) > input.parameters.most_waiting_nodes
}

unknown contains {"msg": "the smallest number of nodes is no count", "path": settings.pointer(place)} if {
	stated != null
	not numbers.whole(stated)
}

unknown contains {"msg": "the settings of the scale are not an object", "path": pointer} if {
	pointer := settings.unreadable(input.resource, scale, "object")
}

stated := settings.at(input.resource, place)

scale := ["properties", "properties", "scaleSettings"]

place := array.concat(scale, ["minNodeCount"])
