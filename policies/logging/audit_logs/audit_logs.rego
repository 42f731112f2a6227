# METADATA
# scope: package
# title: The audit log group is on
# description: >-
#   The logs of the group `audit` record who read and changed what. The group `allLogs` includes them; categories that
#   are enabled one by one do not count, as new ones would be missing.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/monitor-azure-machine-learning]
# custom:
#   id: AML-LOG-005
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Enable the group `audit` or `allLogs` (`az monitor diagnostic-settings create --resource <id> --name <name>
#       --workspace <Log Analytics workspace> --logs '[{"categoryGroup": "allLogs", "enabled": true}]'`).
#   source: LOG-05
#   since: 0.2.0
package logging.audit_logs

import data.lib.answers
import data.lib.diagnostics

deny contains {
	"msg": "neither the log group `audit` nor `allLogs` is on",
	"path": "/id",
	"actual": diagnostics.names(found),
	"expected": ["audit", "allLogs"],
} if {
	is_met == "no"
	count(input.snapshot.incomplete) == 0
}

unknown contains {"msg": doubt, "path": "/id"} if some doubt in diagnostics.doubts(is_met, input.snapshot.incomplete)

found := diagnostics.of(input.resource, input.snapshot)

is_met := answers.any_of({diagnostics.has_group(setting, {"audit", "alllogs"}) | some setting in found})
