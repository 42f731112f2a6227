# METADATA
# scope: package
# title: A cluster's largest scale is bounded
# description: >-
#   A mistake in one job can start as many nodes as the cluster may have, and takes the cores of all others.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-manage-optimize-cost]
# custom:
#   id: AML-CMP-009
#   severity: low
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [AmlCompute]}
#   remediation: >-
#     Lower the largest number of nodes (`az ml compute update --name <cluster> --max-instances <count>`), or raise
#     `most_nodes` where the capacity is needed.
#   source: CMP-09
#   parameters:
#     most_nodes: {type: integer, minimum: 0, default: 10, description: how many nodes a cluster may have}
#   monotone_in: {/properties/properties/scaleSettings/maxNodeCount: lower, "parameter:most_nodes": lower}
#   since: 0.2.0
package compute.bounded_scale

import data.lib.numbers
import data.lib.settings

deny contains {
	"msg": "the cluster may have more nodes than allowed",
	"path": settings.pointer(place),
	"actual": stated,
	"expected": {"at most": input.parameters.most_nodes},
} if {
	numbers.whole(stated) > input.parameters.most_nodes
}

unknown contains {"msg": "the largest number of nodes is missing or no count", "path": settings.pointer(place)} if {
	not numbers.whole(stated)
}

stated := settings.at(input.resource, place)

place := ["properties", "properties", "scaleSettings", "maxNodeCount"]
