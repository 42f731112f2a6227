# METADATA
# scope: package
# title: Regions are allowed
# description: >-
#   Law or contract may demand that data and work stay in certain regions. A compute counts where its nodes are. The policy
#   is off while `allowed_locations` is empty.
# related_resources: [https://learn.microsoft.com/azure/governance/policy/samples/built-in-policies#general]
# custom:
#   id: AML-GOV-004
#   severity: medium
#   judges:
#     - Microsoft.MachineLearningServices/workspaces
#     - Microsoft.MachineLearningServices/registries
#     - Microsoft.MachineLearningServices/workspaces/computes
#     - Microsoft.MachineLearningServices/workspaces/onlineEndpoints
#     - Microsoft.MachineLearningServices/workspaces/batchEndpoints
#     - Microsoft.MachineLearningServices/workspaces/serverlessEndpoints
#   remediation: Create the resource in an allowed region, or add its region to `allowed_locations`.
#   source: GOV-04
#   parameters:
#     allowed_locations: {type: array, items: {type: string, pattern: '\S'}, default: [], description: "the regions that
#       are allowed, compared without case and spaces; empty: not evaluated"}
#   since: 0.2.0
package governance.allowed_regions

import data.lib.computes
import data.lib.locations
import data.lib.settings

applies if {
	count(input.parameters.allowed_locations) > 0
	not is_child
}

applies if {
	count(input.parameters.allowed_locations) > 0
	place
}

deny contains {
	"msg": "the region is not allowed",
	"path": settings.pointer(place),
	"actual": stated,
	"expected": "a region of `allowed_locations`",
} if {
	region := locations.folded(stated)
	region != "global"
	not region in {locations.folded(entry) | some entry in input.parameters.allowed_locations}
}

unknown contains {"msg": "no region is stated", "path": "/location"} if not place

unknown contains {"msg": "the region is not text", "path": settings.pointer(place)} if not is_string(stated)

# The first place that states the region.
place := [each | some each in places; settings.at(input.resource, each) != null][0]

stated := settings.at(input.resource, place)

places := [["properties", "computeLocation"], ["location"]] if {
	lower(input.resource.type) == computes.compute_type
} else := [["location"]]

# Only workspaces and registries always state a region; what is in a workspace is where it is, unless it states otherwise.
is_child if not lower(input.resource.type) in {
	"microsoft.machinelearningservices/workspaces",
	"microsoft.machinelearningservices/registries",
}
