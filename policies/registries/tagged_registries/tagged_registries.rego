# METADATA
# scope: package
# title: Registries are tagged
# description: >-
#   A tag names who owns a registry and what it is for, so that a person is responsible for it.
# related_resources: [https://learn.microsoft.com/azure/cloud-adoption-framework/ready/azure-best-practices/resource-tagging]
# custom:
#   id: AML-REG-002
#   severity: low
#   judges: [Microsoft.MachineLearningServices/registries]
#   remediation: "Tag it: `az resource tag --is-incremental --ids <id> --tags owner=<who>`."
#   source: REG-02
#   parameters:
#     required_tags: {type: array, items: {type: string, pattern: '\S'}, default: [], description: "the names of the
#       tags that are required, compared without case; empty: any tag will do"}
#   since: 0.2.0
package registries.tagged_registries

import data.lib.settings
import data.lib.tags

deny contains {
	"msg": "the registry has no tags",
	"path": "/tags",
	"actual": settings.at(input.resource, ["tags"]),
	"expected": "at least one tag",
} if {
	not tags.has_any(input.resource)
	not tags.are_unreadable(input.resource)
}

deny contains {
	"msg": "a required tag of the registry is missing or blank",
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
