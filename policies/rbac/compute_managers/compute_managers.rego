# METADATA
# scope: package
# title: Only authorised roles can manage compute
# description: >-
#   Access control "ensures that only authorized individuals have the ability to manage and interact with compute
#   resources". A role manages compute when its actions less its notActions include one of `compute_actions`.
# related_resources: [https://learn.microsoft.com/azure/role-based-access-control/role-definitions]
# custom:
#   id: AML-RBAC-101
#   severity: critical
#   judges: [Microsoft.Authorization/roleAssignments]
#   remediation:
#     text: >-
#       Assign a role that cannot manage compute (`az role assignment create --assignee <principal> --role <role> --scope
#       <scope>`) and remove this one (`az role assignment delete --ids <id>`), or list it in `compute_manager_roles`.
#     patch: [{op: replace, path: /properties/roleDefinitionId, value:
#       /providers/Microsoft.Authorization/roleDefinitions/acdd72a7-3385-48ef-bd42-f606fba81ae7}] # Reader
#   source: 002 "Role-Based Access Control (RBAC)"
#   parameters:
#     compute_actions: {type: array, description: the actions that count as managing compute,
#       items: {type: string, pattern: "^[Mm]icrosoft[.][Mm]achine[Ll]earning[Ss]ervices/"}, default: [
#       Microsoft.MachineLearningServices/workspaces/computes/write,
#       Microsoft.MachineLearningServices/workspaces/computes/delete,
#       Microsoft.MachineLearningServices/workspaces/computes/start/action,
#       Microsoft.MachineLearningServices/workspaces/computes/stop/action]}
#     compute_manager_roles: {type: array, items: {type: string, pattern: '\S'}, default: [AzureML Compute Operator],
#       description: names or ids of the roles that may manage compute}
#   since: 0.1.0
package rbac.compute_managers

import data.lib.roles

deny contains {
	"msg": "a role that is no compute manager role can manage compute",
	"path": "/properties/roleDefinitionId",
	"actual": {"role": answer.role.name, "actions": actions},
	"expected": input.parameters.compute_manager_roles,
} if {
	some answer in answers
	actions := [entry.action | some entry in answer.granted; entry.granted == true]
	actions != []
}

unknown contains {"msg": "a condition decides whether compute can be managed", "path": "/properties/condition"} if {
	some answer in answers
	some entry in answer.granted
	entry.granted == null
	roles.is_sound(answer.role)
}

unknown contains {"msg": "the permissions of the role cannot be read", "path": "/properties/roleDefinitionId"} if {
	some answer in answers
	not roles.is_sound(answer.role)
}

unknown contains {"msg": "neither the snapshot nor the catalogue has the role", "path": "/properties/roleDefinitionId"} if {
	count(assigned) == 0
	not listed
}

unknown contains {"msg": "the scope of the assignment cannot be read", "path": "/properties/scope"} if not scope

applies if roles.reaches_workspace(input.resource, input.snapshot)
applies if not scope

scope := roles.scope(input.resource)
assigned := roles.assigned(input.resource, input.snapshot)
listed if roles.is_listed(roles.names(input.resource, input.snapshot), input.parameters.compute_manager_roles)

# What each role grants of each action.
answers := [{"role": role, "granted": roles.granted(input.resource, role, wanted)} | some role in assigned; not listed]
wanted := [action | scope; some action in input.parameters.compute_actions]
