# METADATA
# scope: package
# title: Logs go to the mandated event hub
# description: >-
#   A security team that reads logs from an event hub misses the workspaces that send theirs elsewhere. One diagnostic
#   setting has to have the rule, the event hub and an enabled log.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/monitor-azure-machine-learning]
# custom:
#   id: AML-LOG-003
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Send them there: `az monitor diagnostic-settings create --resource <id> --name <name> --event-hub <event hub>
#       --event-hub-rule <rule> --logs <logs>`.
#   source: LOG-03
#   parameters:
#     event_hub_authorization_rule_id:
#       type: string
#       pattern: '^\s*($|/)'
#       default: ""
#       description: >-
#         id of the authorization rule of the event hub that is mandated; without it and a name, nothing is evaluated
#     event_hub_name: {type: string, pattern: '^[A-Za-z0-9._ -]*$', default: "", description: name of the event hub}
#   since: 0.2.0
package logging.mandated_event_hub

import data.lib.answers
import data.lib.diagnostics
import data.lib.words

applies if {
	some wanted in sinks
	words.text(wanted)
}

deny contains {
	"msg": "logs do not go to the mandated event hub",
	"path": "/id",
	"actual": diagnostics.names(found),
	"expected": sinks,
} if {
	is_met == "no"
	count(input.snapshot.incomplete) == 0
}

unknown contains {"msg": doubt, "path": "/id"} if some doubt in diagnostics.doubts(is_met, input.snapshot.incomplete)

found := diagnostics.of(input.resource, input.snapshot)

sinks := {
	"eventHubAuthorizationRuleId": input.parameters.event_hub_authorization_rule_id,
	"eventHubName": input.parameters.event_hub_name,
}

is_met := answers.any_of({answer |
	some setting in found
	answer := answers.all_of({diagnostics.goes_to(setting, sinks), diagnostics.has_log(setting)})
})
