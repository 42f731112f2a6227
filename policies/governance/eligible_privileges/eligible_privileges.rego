# METADATA
# scope: package
# title: Privileged access is not permanent
# description: >-
#   A privileged role that is always active works for whoever steals a token at any time. Privileged Identity Management
#   makes it eligible: it is activated for some hours, or assigned until a date. Assignments of users and groups at or
#   above a workspace are evaluated.
# related_resources: [https://learn.microsoft.com/entra/id-governance/privileged-identity-management/pim-resource-roles-assign-roles]
# custom:
#   id: AML-GOV-010
#   severity: medium
#   judges: [Microsoft.Authorization/roleAssignments]
#   remediation: >-
#     Make the assignment eligible in Privileged Identity Management or give it an end, and remove the permanent one (`az
#     role assignment delete --ids <id>`).
#   source: GOV-10
#   parameters:
#     privileged_roles: {type: array, items: {type: string, pattern: '\S'}, default: [Owner, Contributor, User Access
#       Administrator, Role Based Access Control Administrator], description: names or GUIDs of the roles that must not be
#       permanent}
#     permanent_roles: {type: array, items: {type: string, pattern: '\S'}, default: [AzureML Compute Operator],
#       description: names or GUIDs of roles that may be permanent all the same}
#   since: 0.2.0
package governance.eligible_privileges

import data.lib.ids
import data.lib.roles
import data.lib.settings
import data.lib.times

applies if {
	not settings.word(principal_type, {"serviceprincipal", "foreigngroup", "device"})
	may_be_privileged
	reaches
}

deny contains {
	"msg": "the privileged role is assigned without an end",
	"path": "/id",
	"actual": {"schedule": instance.id},
	"expected": "an eligible assignment, or one that ends",
} if {
	is_person
	is_privileged
	some instance in instances
	settings.word(settings.at(instance, type_place), {"assigned"})
	settings.at(instance, end_place) == null
}

deny contains {
	"msg": "the privileged role is assigned outside Privileged Identity Management",
	"path": "/id",
	"actual": null,
	"expected": "an eligible assignment, or one that ends",
} if {
	is_person
	is_privileged
	scope
	count(instances) == 0
	input.snapshot.incomplete == []
}

unknown contains {"msg": "whether the principal is a user or a group is not stated", "path": "/properties/principalType"} if {
	not is_person
}

unknown contains {"msg": "the role that is assigned cannot be read", "path": "/properties/roleDefinitionId"} if unreadable_role

unknown contains {"msg": "the scope of the assignment cannot be read", "path": "/properties/scope"} if not scope

unknown contains {"msg": "the inputs are incomplete, and they have no schedule of the assignment", "path": "/id"} if {
	count(instances) == 0
	some _ in input.snapshot.incomplete
}

unknown contains {"msg": "how long the role is assigned cannot be read", "path": "/id"} if {
	some instance in instances
	not is_clear(instance)
}

is_person if settings.word(principal_type, {"user", "group"})

may_be_privileged if is_privileged

may_be_privileged if unreadable_role

is_privileged if {
	roles.is_listed(names, input.parameters.privileged_roles)
	not roles.is_listed(names, input.parameters.permanent_roles)
}

names := roles.names(input.resource, input.snapshot)

unreadable_role if not is_string(settings.at(input.resource, ["properties", "roleDefinitionId"]))

# An assignment whose scope cannot be read may reach a workspace.
reaches if not scope

reaches if roles.reaches_workspace(input.resource, input.snapshot)

scope := roles.scope(input.resource)

# What Privileged Identity Management has of this assignment: the schedules in force on its scope that name it.
instances := [instance |
	some id in input.snapshot.by_extended[scope_id]["microsoft.authorization/roleassignmentscheduleinstances"]
	instance := input.snapshot.by_id[id]
	is_string(instance.properties.originRoleAssignmentId)
	ids.folded(instance.properties.originRoleAssignmentId) == ids.folded(input.resource.id)
]

scope_id := "/" if {
	count(scope) == 0
} else := concat("/", array.concat([""], scope))

is_clear(instance) if settings.word(settings.at(instance, type_place), {"activated"})

is_clear(instance) if {
	settings.word(settings.at(instance, type_place), {"assigned"})
	is_clear_end(settings.at(instance, end_place))
}

is_clear_end(null) := true

is_clear_end(end) if times.moment(end)

principal_type := settings.at(input.resource, ["properties", "principalType"])

type_place := ["properties", "assignmentType"]

end_place := ["properties", "endDateTime"]
