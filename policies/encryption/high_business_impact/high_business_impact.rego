# METADATA
# scope: package
# title: The workspace is flagged as of high business impact
# description: >-
#   The flag `hbiWorkspace` makes Azure collect less diagnostic data and encrypt more of what it keeps. A workspace whose
#   tag `data-classification` has one of the `unflagged_classifications` does not need it; one without the tag does.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-data-encryption]
# custom:
#   id: AML-ENC-002
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation: >-
#     Create the workspace again with `hbi_workspace: true` in its YAML file, as the flag cannot be added later; or
#     classify what is in it with the tag `data-classification`.
#   source: ENC-02
#   parameters:
#     unflagged_classifications:
#       type: array
#       items: {type: string, pattern: '\S'}
#       default: [public, internal, general]
#       description: values of the tag `data-classification` that need no flag
#   since: 0.2.0
package encryption.high_business_impact

import data.lib.networks
import data.lib.settings
import data.lib.words

applies if {
	not networks.is_project(input.resource)
	not needs_no_flag
}

deny contains {
	"msg": "the workspace is not flagged as of high business impact",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": true,
} if {
	not settings.unreadable_flag(input.resource, place)
	not is_flagged
	count(unreadable_tags) == 0
}

unknown contains {"msg": "`hbiWorkspace` is neither true nor false", "path": pointer} if {
	pointer := settings.unreadable_flag(input.resource, place)
}

unknown contains {"msg": "the classification of the workspace cannot be read", "path": "/tags"} if {
	not is_flagged
	some _ in unreadable_tags
}

is_flagged if settings.flag(settings.at(input.resource, place))

needs_no_flag if {
	count(classifications) > 0
	every value in classifications {
		words.folded(value) in {words.folded(entry) | some entry in input.parameters.unflagged_classifications}
	}
}

# The values of the tag in all of its spellings.
classifications := words.classifications(input.resource)

unreadable_tags := [value |
	some value in classifications
	type_name(value) in {"array", "object"}
]

place := ["properties", "hbiWorkspace"]
