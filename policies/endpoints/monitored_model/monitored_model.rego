# METADATA
# scope: package
# title: Production models are monitored
# description: >-
#   When production data drifts away from the training data, the predictions get worse without any error. A monitor
#   compares the data on a schedule. Only production is evaluated; a missing stage counts as production.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-monitor-model-performance]
# custom:
#   id: AML-END-012
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments]
#   remediation:
#     text: >-
#       Create a monitor whose `monitoring_target.endpoint_deployment_id` is `azureml:<endpoint>:<deployment>` (`az ml
#       schedule create --file <file>`).
#   source: END-12
#   since: 0.2.0
package endpoints.monitored_model

import data.lib.ids
import data.lib.settings
import data.lib.words

applies if stage.name == "production"

deny contains {
	"msg": "the deployment has no enabled monitor",
	"path": "/id",
	"actual": {"monitor": null, "stage": stage.name, "because": stage.reason},
	"expected": "a schedule of the workspace with the action CreateMonitor for the deployment",
} if {
	not is_monitored
	count(doubts) == 0
	count(input.snapshot.incomplete) == 0
}

unknown contains {"msg": "the snapshot is incomplete: a monitor may exist", "path": "/id"} if {
	count(input.snapshot.incomplete) > 0
	not is_monitored
}

unknown contains {"msg": "whether a monitor of the deployment is enabled cannot be read", "path": "/id"} if {
	not is_monitored
	count(doubts) > 0
}

is_monitored if {
	some monitor in monitors
	not settings.unreadable_flag(monitor, enabled)
	not is_disabled(monitor)
}

is_disabled(monitor) if settings.flag(settings.at(monitor, enabled)) == false

# The monitors of which it cannot be read whether they are enabled.
doubts := [monitor | some monitor in monitors; settings.unreadable_flag(monitor, enabled)]

monitors := [schedule |
	some id in input.snapshot.by_scope[workspace_id]["microsoft.machinelearningservices/workspaces/schedules"]
	schedule := input.snapshot.by_id[id]
	words.folded(schedule.properties.action.actionType) == "createmonitor"
	target(words.folded(schedule.properties.action.monitorDefinition.monitoringTarget.deploymentId))
]

# Whether a text in lower case names the deployment: by its id, or as `azureml:<endpoint>:<deployment>`.
target(named) if ids.folded(trim_prefix(named, "azureml:")) == ids.folded(input.resource.id)

target(named) if named == concat(":", ["azureml", names[count(names) - 3], names[count(names) - 1]])

names := ids.segments(input.resource.id)
workspace_id := ids.workspace_id(input.resource.id)
stage := words.stage(input.resource, input.workspace)
enabled := ["properties", "isEnabled"]
