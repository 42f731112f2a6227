# METADATA
# scope: package
# title: Every log category is on
# description: >-
#   A category that is off is missing when an incident is examined. The log group `allLogs` covers every category,
#   `audit` none by name. What counts goes to Log Analytics, to an event hub, or to a storage account that keeps it
#   for long enough.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/monitor-azure-machine-learning]
# custom:
#   id: AML-LOG-006
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Enable the group `allLogs` (`az monitor diagnostic-settings create --resource <id> --name <name> --workspace
#       <Log Analytics workspace> --logs '[{"categoryGroup": "allLogs", "enabled": true}]'`).
#   source: LOG-06
#   parameters:
#     categories:
#       type: array
#       items: {type: string, pattern: '\S'}
#       description: the log categories that have to be on; with none nothing is evaluated
#       default: [
#         AmlComputeClusterEvent, AmlComputeClusterNodeEvent, AmlComputeJobEvent, AmlComputeCpuGpuUtilization,
#         AmlRunStatusChangedEvent, ModelsChangeEvent, ModelsReadEvent, ModelsActionEvent, DeploymentReadEvent,
#         DeploymentEventACI, DeploymentEventAKS, InferencingOperationAKS, InferencingOperationACI,
#         EnvironmentChangeEvent, EnvironmentReadEvent, DataLabelChangeEvent, DataLabelReadEvent,
#         ComputeInstanceEvent, DataStoreChangeEvent, DataStoreReadEvent, DataSetChangeEvent, DataSetReadEvent,
#         PipelineChangeEvent, PipelineReadEvent, RunEvent, RunReadEvent]
#     retention_days: {type: integer, minimum: 0, default: 365, description: how many days a storage account has to
#       keep logs}
#   monotone_in: {"parameter:retention_days": higher}
#   since: 0.2.0
package logging.every_log_category

import data.lib.answers
import data.lib.diagnostics

applies if count(input.parameters.categories) > 0

deny contains {
	"msg": "log categories are off or not kept for long enough",
	"path": "/id",
	"actual": {"off": off},
	"expected": "an enabled log of each category, or of the group `allLogs`",
} if {
	count(off) > 0
	count(input.snapshot.incomplete) == 0
}

unknown contains {"msg": doubt, "path": "/id"} if {
	some answer in answers_by_category
	some doubt in diagnostics.doubts(answer, input.snapshot.incomplete)
}

off := [category | some category in input.parameters.categories; answers_by_category[category] == "no"]

answers_by_category := {category: is_on(category) | some category in input.parameters.categories}

# The logs, as the settings state them, and whether they are kept.
logs := [{"entry": entry, "answer": answer} |
	some setting in diagnostics.of(input.resource, input.snapshot)
	some entry in diagnostics.logs(setting)
	answer := diagnostics.has_sink(setting, entry, input.parameters.retention_days)
]

is_on(category) := answers.any_of({answer |
	some each in logs
	answer := answers.all_of({each.answer, diagnostics.is_of(each.entry, category)})
})
