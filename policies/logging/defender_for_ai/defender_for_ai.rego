# METADATA
# scope: package
# title: Defender for AI Services is on
# description: >-
#   Without the plan, there are no alerts about attacks on models, such as prompt injection and stolen credentials. It is
#   of the subscription, so all of its workspaces fail where it is off.
# related_resources: [https://learn.microsoft.com/azure/defender-for-cloud/ai-threat-protection]
# custom:
#   id: AML-LOG-010
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Enable the plan: `az security pricing create --name AI --tier Standard`.
#   source: LOG-10
#   parameters:
#     plan: {type: string, pattern: '\S', default: AI, description: name of the plan}
#   since: 0.2.0
package logging.defender_for_ai

import data.lib.ids
import data.lib.networks
import data.lib.settings
import data.lib.words

applies if not networks.is_project(input.resource)

deny contains {
	"msg": "the plan of Microsoft Defender for Cloud is off",
	"path": "/id",
	"actual": tier,
	"expected": "Standard",
} if {
	not doubt
	not settings.word(tier, {"standard"})
}

unknown contains {"msg": doubt, "path": "/id"} if doubt

doubt := "the id of the workspace names no subscription" if {
	not plan_id
} else := "the pricing tier of the plan cannot be read" if {
	pricing
	not settings.word(tier, {"free", "standard"})
} else := "the snapshot is incomplete: the plan may be on" if {
	not pricing
	count(input.snapshot.incomplete) > 0
}

# The tier that is stated, null where none is.
tier := settings.at(object.get(input.snapshot.by_id, plan_id, {}), ["properties", "pricingTier"])

pricing := input.snapshot.by_id[plan_id]

plan_id := concat("", [
	"/subscriptions/",
	ids.subscription(input.resource.id),
	"/providers/microsoft.security/pricings/",
	words.folded(input.parameters.plan),
])
