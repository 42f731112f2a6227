# METADATA
# scope: package
# title: Each twin has its own Application Insights
# description: >-
#   Two workspaces with one Application Insights are both blind where its region fails. The component is in the region
#   of the workspace, and no twin names the same one.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-high-availability-machine-learning]
# custom:
#   id: AML-DR-003
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Create a component in the region of the workspace and name it (`az ml workspace update --name <workspace>
#       --resource-group <group> --application-insights <id>`).
#   source: DR-03
#   parameters:
#     pair_tag: {type: string, pattern: '\S', default: dr-group, description: the tag that twins share}
#   since: 0.2.0
package recovery.twin_insights

import data.lib.ids
import data.lib.settings
import data.lib.twins
import data.lib.words

applies if {
	twins.is_evaluated(input.resource)
	stated != null
	has_twin
}

has_twin if count(found.certain) > 0

has_twin if count(found.perhaps) > 0

deny contains {
	"msg": "a twin has the same Application Insights",
	"path": pointer,
	"actual": {"component": stated, "because": words.stage(input.resource, null).reason},
	"expected": "a component of its own",
} if {
	some twin in found.certain
	component_of(twin) == own
}

deny contains {
	"msg": "the Application Insights is in another region",
	"path": pointer,
	"actual": {
		"component": stated,
		"region": twins.location(component),
		"because": words.stage(input.resource, null).reason,
	},
	"expected": twins.location(input.resource),
} if {
	count(found.certain) > 0 # so that the workspace has a region
	twins.location(component) != twins.location(input.resource)
	twins.location(component) != ""
}

unknown contains {"msg": "the Application Insights of the workspace is not text", "path": pointer} if {
	not own
}

unknown contains {"msg": "the region of the Application Insights is not known", "path": pointer} if {
	own
	not is_placed
}

unknown contains {"msg": "the Application Insights of a twin cannot be read", "path": pointer} if {
	some twin in array.concat(found.certain, found.perhaps)
	is_unclear(twin)
}

unknown contains {"msg": "the snapshot is incomplete: a twin may exist", "path": pointer} if {
	count(input.snapshot.incomplete) > 0
}

unknown contains {"msg": "the tag or the region of what may be a twin cannot be read", "path": "/id"} if {
	count(found.perhaps) > 0
}

pointer := "/properties/applicationInsights"

stated := settings.at(input.resource, ["properties", "applicationInsights"])

own := component_of(input.resource)

component_of(workspace) := ids.folded(words.folded(workspace.properties.applicationInsights))

component := ids.named(words.folded(stated), input.snapshot.by_id)

is_placed if twins.location(component) != ""

is_unclear(workspace) if settings.unreadable(workspace, ["properties", "applicationInsights"], "string")

found := twins.of(input.resource, input.parameters.pair_tag, input.snapshot)
