# METADATA
# scope: package
# title: A cluster has a subnet
# description: >-
#   Not broken, though it looks implied by BRK-RED-011: only a cluster in the one region that the other leaves out tells
#   them apart, and no case has it.
# custom:
#   id: BRK-RED-007
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [AmlCompute]
#   inspects: [/properties/properties/subnet/id]
#   when_absent: fail
#   since: 0.1.0
package network.rare

deny contains {
	"msg": "the cluster is in no subnet",
	"path": "/properties/properties/subnet/id",
	"actual": null,
	"expected": "the id of a subnet",
} if {
	not input.resource.properties.properties.subnet.id
}
