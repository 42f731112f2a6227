# METADATA
# scope: package
# title: Few assignments are inherited from management groups
# description: >-
#   A role that is assigned at a management group reaches all of its subscriptions, mostly by far more than anyone
#   needs.
# related_resources: [https://learn.microsoft.com/azure/role-based-access-control/scope-overview]
# custom:
#   id: AML-GOV-008
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Assign the role where it is needed (`az role assignment create --assignee <principal> --role <role> --scope
#       <scope>`) and remove it above (`az role assignment delete --ids <id>`).
#   source: GOV-08
#   parameters:
#     most_inherited:
#       {type: integer, minimum: 0, default: 3, description: how many may be inherited from management groups}
#   monotone_in: {"parameter:most_inherited": lower}
#   since: 0.2.0
package governance.few_inherited

import data.lib.assignments
import data.lib.networks
import data.lib.roles

applies if not networks.is_project(input.resource)

deny contains {
	"msg": "many assignments are inherited from management groups",
	"path": "/id",
	"actual": assignments.shown(counted),
	"expected": {"at most": input.parameters.most_inherited},
} if {
	count(counted) > input.parameters.most_inherited
}

unknown contains {"msg": "the snapshot has no role assignment", "path": "/id"} if assignments.is_empty(input.snapshot)

unknown contains {"msg": reason, "path": "/id"} if {
	count(counted) <= input.parameters.most_inherited
	some reason in reasons
}

reasons contains "the snapshot is incomplete: more roles may be assigned" if count(input.snapshot.incomplete) > 0

reasons contains "whether an assignment is inherited cannot be read" if {
	count(counted) + count(unclear) > input.parameters.most_inherited
}

counted := [each.assignment.id | some each in found; assignments.is_of_group(each.assignment)]

unclear := [each | some each in found; not roles.scope(each.assignment)]

found := assignments.of(input.resource, input.snapshot)
