# METADATA
# scope: package
# title: Roles are built in
# description: >-
#   A custom role has to be reviewed again whenever Azure adds actions, which its owners often forget. Custom roles that were
#   reviewed are listed in `accepted_custom_roles`.
# related_resources: [https://learn.microsoft.com/azure/role-based-access-control/custom-roles]
# custom:
#   id: AML-GOV-011
#   severity: info
#   judges: [Microsoft.Authorization/roleDefinitions]
#   remediation: Assign a built-in role in its place, or add the reviewed role to `accepted_custom_roles`.
#   source: GOV-11
#   parameters:
#     accepted_custom_roles: {type: array, items: {type: string, pattern: '\S'}, default: [], description: "names or GUIDs
#       of custom roles that are accepted, compared without case"}
#   since: 0.2.0
package governance.built_in_roles

import data.lib.roles
import data.lib.settings

deny contains {
	"msg": "the role is a custom role",
	"path": settings.pointer(place),
	"actual": stated,
	"expected": "a built-in role, or one of `accepted_custom_roles`",
} if {
	settings.word(stated, {"customrole"})
	not roles.is_listed(names, input.parameters.accepted_custom_roles)
}

unknown contains {"msg": "whether the role is built in is not stated", "path": "/properties/type"} if {
	settings.is_unset(input.resource, place)
}

unknown contains {"msg": "the type of the role is neither BuiltInRole nor CustomRole", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, place, {"builtinrole", "customrole"})
}

names := [roles.guid(input.resource.id), settings.at(input.resource, ["properties", "roleName"])]

stated := settings.at(input.resource, place)

# The command line calls it `roleType`.
place := ["properties", "roleType"] if {
	settings.at(input.resource, ["properties", "type"]) == null
} else := ["properties", "type"]
