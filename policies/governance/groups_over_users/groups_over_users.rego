# METADATA
# scope: package
# title: Roles are given to groups
# description: >-
#   Who leaves a team loses access when it is the team's; roles that users have themselves stay. Roles at the
#   workspace or above it count.
# related_resources: [https://learn.microsoft.com/azure/role-based-access-control/best-practices]
# custom:
#   id: AML-GOV-006
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Assign the role to a group (`az role assignment create --assignee-object-id <group> --assignee-principal-type
#       Group --role <role> --scope <scope>`) and remove those of users (`az role assignment delete --ids <id>`).
#   source: GOV-06
#   parameters:
#     most_users: {type: integer, minimum: 0, default: 5, description: how many roles users may have themselves}
#   monotone_in: {"parameter:most_users": lower}
#   since: 0.2.0
package governance.groups_over_users

import data.lib.assignments
import data.lib.networks
import data.lib.settings

applies if not networks.is_project(input.resource)

deny contains {
	"msg": "roles are assigned to many users",
	"path": "/id",
	"actual": assignments.shown(counted),
	"expected": {"at most": input.parameters.most_users},
} if {
	count(counted) > input.parameters.most_users
}

unknown contains {"msg": "the snapshot has no role assignment", "path": "/id"} if assignments.is_empty(input.snapshot)

unknown contains {"msg": reason, "path": "/id"} if {
	count(counted) <= input.parameters.most_users
	some reason in reasons
}

reasons contains "the snapshot is incomplete: more roles may be assigned" if count(input.snapshot.incomplete) > 0

reasons contains "whether a role is assigned to a user cannot be read" if {
	count(counted) + count(unclear) > input.parameters.most_users
}

counted := [each.assignment.id | some each in found; answer(each) == "yes"]

unclear := [each | some each in found; answer(each) == "unclear"]

found := assignments.of(input.resource, input.snapshot)

# Whether it gives a user a role in the workspace, as in `lib.answers`; undefined if not.
answer(each) := each.holds if {
	settings.word(each.assignment.properties.principalType, {"user"})
} else := "unclear" if {
	not settings.word(settings.at(each.assignment, ["properties", "principalType"]), other_types)
}

other_types := {"device", "foreigngroup", "group", "serviceprincipal", "unknown"}
