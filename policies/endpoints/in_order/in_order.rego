# METADATA
# scope: package
# title: Online endpoints are provisioned without failure
# description: >-
#   An endpoint whose last operation failed may serve an outdated configuration or nothing at all. While an operation
#   is in progress, the result is unknown.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-troubleshoot-online-endpoints]
# custom:
#   id: AML-END-011
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces/onlineEndpoints]
#   remediation:
#     text: >-
#       Read the log of its deployments (`az ml online-deployment get-logs --endpoint-name <endpoint> --name <deployment>`),
#       correct the cause and repeat the operation, or delete the endpoint.
#   source: END-11
#   since: 0.2.0
package endpoints.in_order

import data.lib.settings

deny contains {
	"msg": "the last operation on the endpoint did not succeed",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": "Succeeded",
} if {
	settings.word(settings.at(input.resource, place), states) != "succeeded"
}

unknown contains {"msg": "an operation on the endpoint is in progress, or its state is not a known value", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, place, states)
}

unknown contains {"msg": "the provisioning state is not stated", "path": settings.pointer(place)} if {
	settings.is_unset(input.resource, place)
}

place := ["properties", "provisioningState"]

# The states in which no operation is in progress.
states := {"succeeded", "failed", "canceled"}
