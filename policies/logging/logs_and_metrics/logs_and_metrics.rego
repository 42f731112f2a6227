# METADATA
# scope: package
# title: Logs and metrics are on
# description: >-
#   Metrics show that something goes wrong, and logs show what. Any diagnostic setting may have either; registries
#   have no metrics.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/monitor-azure-machine-learning]
# custom:
#   id: AML-LOG-009
#   severity: low
#   judges:
#     - Microsoft.MachineLearningServices/workspaces
#     - Microsoft.MachineLearningServices/workspaces/onlineEndpoints
#     - Microsoft.MachineLearningServices/registries
#   remediation:
#     text: >-
#       Create a diagnostic setting with logs, and with metrics where there are any (`az monitor diagnostic-settings
#       create --resource <id> --name <name> --workspace <Log Analytics workspace> --logs <logs> --metrics
#       <metrics>`).
#   source: LOG-09
#   parameters:
#     types:
#       type: array
#       items: {type: string, pattern: '\S'}
#       description: the types of resources that are evaluated
#       default: [
#         Microsoft.MachineLearningServices/workspaces,
#         Microsoft.MachineLearningServices/workspaces/onlineEndpoints,
#         Microsoft.MachineLearningServices/registries]
#   since: 0.2.0
package logging.logs_and_metrics

import data.lib.answers
import data.lib.diagnostics
import data.lib.words

applies if {
	some listed in input.parameters.types
	words.folded(listed) == type
}

deny contains {
	"msg": faults[kind],
	"path": "/id",
	"actual": diagnostics.names(found),
	"expected": "a diagnostic setting that has one",
} if {
	some kind, answer in kinds
	answer == "no"
	count(input.snapshot.incomplete) == 0
}

unknown contains {"msg": doubt, "path": "/id"} if {
	some answer in kinds
	some doubt in diagnostics.doubts(answer, input.snapshot.incomplete)
}

faults := {"log": "no log is on", "metric": "no metric is on"}

kinds["log"] := answers.any_of({diagnostics.has_log(setting) | some setting in found})

kinds["metric"] := answers.any_of({diagnostics.has_metric(setting) | some setting in found}) if {
	type != "microsoft.machinelearningservices/registries"
}

found := diagnostics.of(input.resource, input.snapshot)

type := lower(input.resource.type)
