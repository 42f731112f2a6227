# METADATA
# scope: package
# title: Content safety of serverless endpoints is on
# description: >-
#   Without content safety, a model answers harmful requests and returns harmful content. The default of the service
#   is not published, so a missing setting is unknown.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-model-catalog-content-safety]
# custom:
#   id: AML-END-003
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces/serverlessEndpoints]
#   remediation:
#     text: Enable content safety of the endpoint.
#     patch: [{op: add, path: /properties/contentSafety/contentSafetyStatus, value: Enabled}]
#   source: END-03
#   monotone_in: {/properties/contentSafety/contentSafetyStatus: [Disabled, Enabled]}
#   since: 0.2.0
package endpoints.content_safety

import data.lib.settings

deny contains {
	"msg": "content safety is disabled",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": "Enabled",
} if {
	settings.word(settings.at(input.resource, place), states) == "disabled"
}

unknown contains {"msg": "the state of content safety is not a known value", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, place, states)
}

unknown contains {"msg": "whether content safety is on is not stated", "path": settings.pointer(place)} if {
	settings.is_unset(input.resource, place)
}

place := ["properties", "contentSafety", "contentSafetyStatus"]
states := {"enabled", "disabled"}
