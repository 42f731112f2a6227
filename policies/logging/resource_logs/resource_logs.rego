# METADATA
# scope: package
# title: Resource logs of the workspace are on
# description: >-
#   Without resource logs it cannot be found out later who did what in the workspace. One enabled log of a diagnostic
#   setting is enough, except one that a storage account deletes too early.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/monitor-azure-machine-learning]
# custom:
#   id: AML-LOG-001
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Create a diagnostic setting (`az monitor diagnostic-settings create --resource <id> --name <name> --workspace
#       <Log Analytics workspace> --logs '[{"categoryGroup": "allLogs", "enabled": true}]'`), or keep what goes to a
#       storage account for long enough.
#   source: LOG-01
#   parameters:
#     retention_days: {type: integer, minimum: 0, default: 365, description: how many days a storage account has to
#       keep logs}
#   monotone_in: {"parameter:retention_days": higher}
#   since: 0.2.0
package logging.resource_logs

import data.lib.answers
import data.lib.diagnostics

deny contains {
	"msg": "no resource log is on and kept for long enough",
	"path": "/id",
	"actual": diagnostics.names(found),
	"expected": {"an enabled log, where it is stored kept at least for days": input.parameters.retention_days},
} if {
	is_met == "no"
	count(input.snapshot.incomplete) == 0
}

unknown contains {"msg": doubt, "path": "/id"} if some doubt in diagnostics.doubts(is_met, input.snapshot.incomplete)

found := diagnostics.of(input.resource, input.snapshot)

is_met := answers.any_of({answer |
	some setting in found
	some entry in diagnostics.logs(setting)
	answer := answers.all_of({
		diagnostics.is_on(entry),
		diagnostics.is_kept(setting, entry, input.parameters.retention_days),
	})
})
