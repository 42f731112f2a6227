# METADATA
# scope: package
# title: Deployments send telemetry
# description: >-
#   Without telemetry in Application Insights, slow and failing requests to a model are not detected. Azure's default
#   is false.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-monitor-online-endpoints]
# custom:
#   id: AML-END-008
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments]
#   remediation:
#     text: "Set `app_insights_enabled: true` in the YAML file of the deployment (`az ml online-deployment update --file <file>`)."
#     patch: [{op: add, path: /properties/appInsightsEnabled, value: true}]
#   source: END-08
#   monotone_in: {/properties/appInsightsEnabled: [false, true]}
#   since: 0.2.0
package endpoints.telemetry

import data.lib.settings

deny contains {
	"msg": "the deployment sends no telemetry to Application Insights",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": true,
} if {
	not settings.unreadable_flag(input.resource, place)
	not is_enabled
}

unknown contains {"msg": "`appInsightsEnabled` is neither true nor false", "path": pointer} if {
	pointer := settings.unreadable_flag(input.resource, place)
}

is_enabled if settings.flag(settings.at(input.resource, place))

place := ["properties", "appInsightsEnabled"]
