# METADATA
# scope: package
# title: A cluster is small
# description: >-
#   Broken: the comparison is turned round in the branch for dedicated nodes. So there fewer nodes fail, although the
#   header says that fewer are stricter.
# custom:
#   id: BROKEN-MONOTONE-001
#   severity: low
#   judges:
#     - {type: Microsoft.MachineLearningServices/workspaces/computes, where: {/properties/computeType: [AmlCompute]}}
#   inspects: [/properties/properties/scaleSettings/maxNodeCount, /properties/properties/vmPriority]
#   when_absent: pass
#   remediation: Lower the largest number of nodes.
#   monotone_in: {/properties/properties/scaleSettings/maxNodeCount: lower}
package nodes.few_nodes

import data.lib.computes

deny contains {
	"msg": "the cluster may grow too large",
	"path": "/properties/properties/scaleSettings/maxNodeCount",
	"actual": nodes,
	"expected": "another number",
} if {
	is_refused(computes.priority(input.resource), nodes)
}

is_refused("lowpriority", number) if number > 20

is_refused("dedicated", number) if number < 4

nodes := input.resource.properties.properties.scaleSettings.maxNodeCount
