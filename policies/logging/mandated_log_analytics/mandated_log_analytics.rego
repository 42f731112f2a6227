# METADATA
# scope: package
# title: Logs and metrics go to the mandated Log Analytics workspace
# description: >-
#   Who watches all workspaces needs their logs and metrics in one place. One diagnostic setting has to send both
#   there.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/monitor-azure-machine-learning]
# custom:
#   id: AML-LOG-002
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Send them there: `az monitor diagnostic-settings create --resource <id> --name <name> --workspace <mandated
#       workspace> --logs <logs> --metrics <metrics>`.
#   source: LOG-02
#   parameters:
#     log_analytics_workspace_id:
#       type: string
#       pattern: '^\s*($|/)'
#       default: ""
#       description: id of the Log Analytics workspace that is mandated; without one, nothing is evaluated
#   since: 0.2.0
package logging.mandated_log_analytics

import data.lib.answers
import data.lib.diagnostics
import data.lib.words

applies if words.text(input.parameters.log_analytics_workspace_id)

deny contains {
	"msg": "logs and metrics do not go to the mandated Log Analytics workspace",
	"path": "/id",
	"actual": diagnostics.names(found),
	"expected": input.parameters.log_analytics_workspace_id,
} if {
	is_met == "no"
	count(input.snapshot.incomplete) == 0
}

unknown contains {"msg": doubt, "path": "/id"} if some doubt in diagnostics.doubts(is_met, input.snapshot.incomplete)

found := diagnostics.of(input.resource, input.snapshot)

is_met := answers.any_of({answer |
	some setting in found
	answer := answers.all_of({
		diagnostics.goes_to(setting, {"workspaceId": input.parameters.log_analytics_workspace_id}),
		diagnostics.has_log(setting),
		diagnostics.has_metric(setting),
	})
})
