# METADATA
# scope: package
# title: Computes are tagged
# description: >-
#   A tag names who owns a compute and what it is for, so that a person is responsible for it. Azure hands no tag down from a
#   workspace. All compute types are evaluated.
# related_resources: [https://learn.microsoft.com/azure/cloud-adoption-framework/ready/azure-best-practices/resource-tagging]
# custom:
#   id: AML-CMP-013
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces/computes]
#   remediation: "Tag it: `az resource tag --is-incremental --ids <id> --tags owner=<who>`."
#   source: CMP-13
#   parameters:
#     required_tags: {type: array, items: {type: string, pattern: '\S'}, default: [], description: "the names of the
#       tags that are required, compared without case; empty: any tag will do"}
#   refines: [AML-COST-101]
#   since: 0.2.0
package compute.tagged_computes

import data.lib.settings
import data.lib.tags

deny contains {
	"msg": "the compute has no tags",
	"path": "/tags",
	"actual": settings.at(input.resource, ["tags"]),
	"expected": "at least one tag",
} if {
	not tags.has_any(input.resource)
	not tags.are_unreadable(input.resource)
}

deny contains {
	"msg": "a required tag of the compute is missing or blank",
	"path": tags.pointer(name),
	"actual": object.get(input.resource, ["tags", name], null),
	"expected": "a value",
} if {
	some name in tags.missing(input.resource, input.parameters.required_tags)
	not tags.are_unreadable(input.resource)
}

unknown contains {"msg": "the tags are not an object", "path": "/tags"} if tags.are_unreadable(input.resource)

unknown contains {"msg": "the value of a required tag is not text", "path": tags.pointer(name)} if {
	some name in tags.unreadable(input.resource, input.parameters.required_tags)
}
