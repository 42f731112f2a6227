# METADATA
# description: Role assignments and what they assign; which of them reach a Machine Learning workspace.
package lib.roles

import data.lib.ids
import data.lib.permissions
import data.lib.words

workspace_type := "microsoft.machinelearningservices/workspaces"

# guid(id): the last part of a role's id, with or without a subscription before it; empty when the id cannot be read.
guid(id) := parts[count(parts) - 1] if {
	is_string(id)
	parts := split(trim_right(lower(trim_space(id)), "/"), "/")
} else := ""

# assigned(assignment, snapshot), names(assignment, snapshot): the roles that it assigns, as `named` gives them; their
# names and the last part of their id.
assigned(assignment, snapshot) := named(_role_id(assignment), snapshot)

names(assignment, snapshot) := array.concat(
	[guid(_role_id(assignment))],
	[role.name | some role in assigned(assignment, snapshot)],
)

_role_id(assignment) := object.get(assignment, ["properties", "roleDefinitionId"], null)

# named(id, snapshot): [{"guid", "name", "permissions"}] of a role: the built-in role, which nobody can define otherwise,
# else its definitions in the snapshot. A built-in role that acts elsewhere grants nothing in Machine Learning.
named(id, snapshot) := _named(guid(id), snapshot)

_named(guid, snapshot) := [{"guid": guid, "name": row.name, "permissions": row.permissions}] if {
	row := data.facts.roles[guid]
} else := [{"guid": guid, "name": row.name, "permissions": []}] if {
	row := data.facts.roles_elsewhere[guid]
}

else := [_defined(guid, snapshot.by_id[key]) | some key in object.get(snapshot.by_guid, guid, [])]

_defined(guid, definition) := {
	"guid": guid,
	"name": _name(definition),
	"permissions": object.get(definition, ["properties", "permissions"], null),
}

_name(definition) := trim_space(definition.properties.roleName) if words.text(definition.properties.roleName)

else := guid(definition.id)

# is_sound(role): its permissions are a list of blocks that can be read.
is_sound(role) if {
	is_array(role.permissions)
	every block in role.permissions {
		permissions.is_sound(block)
	}
}

# is_listed(names, entries): whether a list of role names, GUIDs and ids has one of the names or GUIDs.
is_listed(names, entries) if {
	folded := {words.folded(name) | some name in names}
	some entry in entries
	some name in [words.folded(entry), guid(entry)]
	name in folded
}

# is_conditional(assignment): it has a condition.
is_conditional(assignment) if permissions.is_conditional(assignment.properties)

# granted(assignment, role, actions): [{"action", "granted"}]: whether an assignment of a role grants each action where it
# reaches: true, false, or null where a condition decides or the permissions cannot be read.
granted(assignment, role, actions) := [{"action": entry.action, "granted": _where(assignment, entry.granted)} |
	some entry in permissions.granted(role.permissions, actions)
]

_where(assignment, granted) := null if {
	granted == true
	is_conditional(assignment)
} else := granted

# scope(assignment): the parts of the id that it reaches, in lower case: `properties.scope`, else what is before the
# assignment in its own id; undefined when that cannot be read.
scope(assignment) := ids.segments(stated) if {
	stated := trim_space(words.text(assignment.properties.scope))
	startswith(stated, "/")
}

else := array.slice(parts, 0, count(parts) - 4) if {
	words.is_blank(object.get(assignment, ["properties", "scope"], null))
	parts := ids.segments(assignment.id)
	count(parts) >= 4
	array.slice(parts, count(parts) - 4, count(parts) - 1) == ["providers", "microsoft.authorization", "roleassignments"]
}

# reaches_workspace(assignment, snapshot): its scope is a workspace of the snapshot or above one. Ids do not show what a
# management group has, so it counts as above. Without any workspace in the snapshot an access list is read as that of
# a workspace: whatever can be one or contain one counts.
reaches_workspace(assignment, snapshot) if _is_at_or_above_workspace(scope(assignment), snapshot)

_is_at_or_above_workspace(parts, snapshot) if {
	count(snapshot.by_scope[concat("/", array.concat([""], parts))][workspace_type]) > 0
}

_is_at_or_above_workspace(parts, _) if {
	array.slice(parts, 0, 3) == ["providers", "microsoft.management", "managementgroups"]
}

_is_at_or_above_workspace(parts, _) if count(parts) == 0

_is_at_or_above_workspace(parts, snapshot) if {
	count(object.get(snapshot.by_type, workspace_type, [])) == 0
	_can_hold_workspaces(parts)
}

_can_hold_workspaces(parts) if {
	parts[0] == "subscriptions"
	count(parts) == 2
}

_can_hold_workspaces(parts) if {
	parts[2] == "resourcegroups"
	count(parts) == 4
}

_can_hold_workspaces(parts) if {
	parts[6] == "workspaces"
	parts[5] == "microsoft.machinelearningservices"
	count(parts) == 8
}
