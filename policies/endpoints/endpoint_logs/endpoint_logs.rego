# METADATA
# scope: package
# title: Logs of online endpoints are kept
# description: >-
#   The traffic and console logs of an endpoint show who asked what and what failed; without a diagnostic setting they
#   are lost. One setting has to have the log group `allLogs` or all of the categories, and every sink that is
#   mandated.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-monitor-online-endpoints]
# custom:
#   id: AML-END-007
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces/onlineEndpoints]
#   remediation:
#     text: >-
#       Create a diagnostic setting (`az monitor diagnostic-settings create --resource <id> --name <name> --workspace
#       <Log Analytics workspace> --logs '[{"categoryGroup": "allLogs", "enabled": true}]'`).
#   source: END-07
#   parameters:
#     categories:
#       type: array
#       items: {type: string, pattern: '\S'}
#       description: the log categories that are enough together, besides log groups
#       default: [AmlOnlineEndpointTrafficLog, AmlOnlineEndpointConsoleLog, AmlOnlineEndpointEventLog]
#     log_analytics_workspace_id:
#       type: string
#       pattern: '^\s*($|/)'
#       default: ""
#       description: id of the Log Analytics workspace that is mandated; without one, any will do
#     event_hub_authorization_rule_id:
#       type: string
#       pattern: '^\s*($|/)'
#       default: ""
#       description: id of the authorization rule of the event hub that is mandated; without one, any will do
#     storage_account_id:
#       type: string
#       pattern: '^\s*($|/)'
#       default: ""
#       description: id of the storage account that is mandated; without one, any will do
#   since: 0.2.0
package endpoints.endpoint_logs

import data.lib.answers
import data.lib.diagnostics

deny contains {
	"msg": "no diagnostic setting keeps the logs of the endpoint",
	"path": "/id",
	"actual": diagnostics.names(found),
	"expected": {
		"groups": ["allLogs"],
		"categories": input.parameters.categories,
		"sinks": {key: wanted | some key, wanted in sinks; wanted != ""},
	},
} if {
	is_met == "no"
	count(input.snapshot.incomplete) == 0
}

unknown contains {"msg": doubt, "path": "/id"} if some doubt in diagnostics.doubts(is_met, input.snapshot.incomplete)

found := diagnostics.of(input.resource, input.snapshot)

sinks := {
	"workspaceId": input.parameters.log_analytics_workspace_id,
	"eventHubAuthorizationRuleId": input.parameters.event_hub_authorization_rule_id,
	"storageAccountId": input.parameters.storage_account_id,
}

is_met := answers.any_of({answer |
	some setting in found
	answer := answers.all_of({
		diagnostics.goes_to(setting, sinks),
		diagnostics.has_logs(setting, {"alllogs"}, input.parameters.categories),
	})
})
