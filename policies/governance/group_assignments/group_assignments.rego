# METADATA
# scope: package
# title: Roles are not assigned on single resources
# description: >-
#   Assignments on single resources are easily overlooked in reviews, and stay when people leave a project. A role assigned
#   at the resource group or above is found where everybody looks.
# related_resources: [https://learn.microsoft.com/azure/role-based-access-control/best-practices]
# custom:
#   id: AML-GOV-009
#   severity: low
#   judges: [Microsoft.Authorization/roleAssignments]
#   remediation: >-
#     Assign the role at the resource group (`az role assignment create --scope <resource group>`), and remove this
#     assignment (`az role assignment delete --ids <id>`).
#   source: GOV-09
#   since: 0.2.0
package governance.group_assignments

import data.lib.roles

deny contains {
	"msg": "the role is assigned on a single resource",
	"path": "/properties/scope",
	"actual": concat("/", array.concat([""], parts)),
	"expected": "the resource group or a scope above it",
} if {
	parts[2] == "resourcegroups"
	parts[4] == "providers"
}

unknown contains {"msg": "the scope of the assignment cannot be read", "path": "/properties/scope"} if not parts

parts := roles.scope(input.resource)
