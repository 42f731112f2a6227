# METADATA
# scope: package
# title: Few principals own the scopes above the workspace
# description: >-
#   Owners of a subscription or a management group can give themselves anything in the workspace. Each of them is one
#   more account to steal.
# related_resources: [https://learn.microsoft.com/azure/role-based-access-control/best-practices]
# custom:
#   id: AML-GOV-007
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Remove owners (`az role assignment delete --ids <id>`), or give them the role at a resource group.
#   source: GOV-07
#   parameters:
#     most_owners:
#       {type: integer, minimum: 0, default: 3, description: how many may own the subscription or what is above it}
#   monotone_in: {"parameter:most_owners": lower}
#   since: 0.2.0
package governance.few_owners

import data.lib.assignments
import data.lib.networks
import data.lib.roles
import data.lib.words

applies if not networks.is_project(input.resource)

deny contains {
	"msg": "many own the subscription or what is above it",
	"path": "/id",
	"actual": assignments.shown(counted),
	"expected": {"at most": input.parameters.most_owners},
} if {
	count(counted) > input.parameters.most_owners
}

unknown contains {"msg": "the snapshot has no role assignment", "path": "/id"} if assignments.is_empty(input.snapshot)

unknown contains {"msg": reason, "path": "/id"} if {
	count(counted) <= input.parameters.most_owners
	some reason in reasons
}

reasons contains "the snapshot is incomplete: more roles may be assigned" if count(input.snapshot.incomplete) > 0

reasons contains "whether a role is that of an owner cannot be read" if {
	count(counted) + count(unclear) > input.parameters.most_owners
}

counted := [each.assignment.id | some each in found; answer(each) == "yes"]

unclear := [each | some each in found; answer(each) == "unclear"]

found := [each |
	some each in assignments.of(input.resource, input.snapshot)
	not is_narrow(each.assignment)
]

is_narrow(assignment) if {
	roles.scope(assignment)
	not assignments.is_wide(assignment)
}

owner := "8e3af657-a8ff-443c-a75c-2fe8c4bcb635"

# Whether it makes someone an owner above the workspace, as in `lib.answers`; undefined if not.
answer(each) := "unclear" if {
	not words.text(object.get(each.assignment, ["properties", "roleDefinitionId"], null))
} else := each.holds if {
	roles.guid(each.assignment.properties.roleDefinitionId) == owner
}
