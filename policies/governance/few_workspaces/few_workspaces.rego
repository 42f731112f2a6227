# METADATA
# scope: package
# title: A scope has few workspaces
# description: >-
#   Every workspace needs its own network, identities and reviews, so an organization that has many of them controls none
#   well. Projects do not count, as they share what their hub has. The policy is off while `most_workspaces` is 0.
# related_resources: [https://learn.microsoft.com/azure/well-architected/service-guides/azure-machine-learning]
# custom:
#   id: AML-GOV-013
#   severity: info
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation: Move teams into one workspace, or make projects of a hub, and delete the workspaces that are left over.
#   source: GOV-13
#   parameters:
#     most_workspaces: {type: integer, minimum: 0, default: 0, description: "how many workspaces a subscription may have;
#       0: not evaluated"}
#   since: 0.2.0
package governance.few_workspaces

import data.lib.ids
import data.lib.networks

applies if {
	input.parameters.most_workspaces > 0
	not networks.is_project(input.resource)
}

deny contains {
	"msg": "the subscription has more workspaces than allowed",
	"path": "/id",
	"actual": number,
	"expected": {"at most": input.parameters.most_workspaces},
} if {
	number > input.parameters.most_workspaces
}

number := count([id |
	scope := concat("/", ["", "subscriptions", ids.subscription(input.resource.id)])
	some id in input.snapshot.by_scope[scope]["microsoft.machinelearningservices/workspaces"]
	not networks.is_project(input.snapshot.by_id[id])
])
