# METADATA
# scope: package
# title: Logs go to the mandated storage account
# description: >-
#   Logs that have to be kept for years are safe only in the account that is protected for it. One diagnostic setting
#   has to send an enabled log there.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/monitor-azure-machine-learning]
# custom:
#   id: AML-LOG-004
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Send them there: `az monitor diagnostic-settings create --resource <id> --name <name> --storage-account
#       <mandated account> --logs <logs>`.
#   source: LOG-04
#   parameters:
#     storage_account_id:
#       type: string
#       pattern: '^\s*($|/)'
#       default: ""
#       description: id of the storage account that is mandated; without one, nothing is evaluated
#   since: 0.2.0
package logging.mandated_storage

import data.lib.answers
import data.lib.diagnostics
import data.lib.words

applies if words.text(input.parameters.storage_account_id)

deny contains {
	"msg": "logs do not go to the mandated storage account",
	"path": "/id",
	"actual": diagnostics.names(found),
	"expected": input.parameters.storage_account_id,
} if {
	is_met == "no"
	count(input.snapshot.incomplete) == 0
}

unknown contains {"msg": doubt, "path": "/id"} if some doubt in diagnostics.doubts(is_met, input.snapshot.incomplete)

found := diagnostics.of(input.resource, input.snapshot)

is_met := answers.any_of({answer |
	some setting in found
	answer := answers.all_of({
		diagnostics.goes_to(setting, {"storageAccountId": input.parameters.storage_account_id}),
		diagnostics.has_log(setting),
	})
})
