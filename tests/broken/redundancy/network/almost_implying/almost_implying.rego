# METADATA
# scope: package
# title: A cluster outside of one region has a subnet or a private address
# description: The policy that BRK-RED-007 looks implied by, but for the region that it leaves out.
# custom:
#   id: BRK-RED-011
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [AmlCompute]
#   inspects: [/properties/properties/subnet/id, /properties/computeLocation]
#   when_absent:
#     /properties/properties/subnet/id: fail
#     /properties/computeLocation: fail
#   since: 0.1.0
package network.almost_implying

deny contains {
	"msg": "the cluster has neither a subnet nor a location",
	"path": "/properties/properties/subnet/id",
	"actual": null,
	"expected": "the id of a subnet",
} if {
	some field in ["subnet", "nodeStateCounts"]
	not input.resource.properties.properties[field].id
	object.get(input.resource, ["properties", "computeLocation"], "") != "switzerlandnorth-2"
}
