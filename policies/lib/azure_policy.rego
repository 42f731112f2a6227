# METADATA
# description: Assignments of Azure Policy definitions that configure the computes of a workspace.
package lib.azure_policy

import data.lib.ids
import data.lib.settings
import data.lib.words

# above(id, indices): the policy assignments at or above a workspace, those of management groups and of the tenant
# included. The indices are those of the snapshot: `by_id`, `by_scope` and `by_extended`.
above(id, indices) := array.concat(
	[indices.by_id[key] |
		parts := ids.segments(id)
		some depth in [2, 4, 8]
		scope := concat("/", array.concat([""], array.slice(parts, 0, depth)))
		some key in indices.by_extended[scope][_type]
	],
	[indices.by_id[key] | some key in indices.by_scope["/"][_type]],
)

# is_in_force(id, wanted, indices): whether an assignment at or above a workspace assigns the wanted definition, and is in
# force for all computes of it. It has a value for each of the parameters that are wanted.
is_in_force(id, wanted, indices) if {
	parts := ids.segments(id)
	some depth in [2, 4, 8]
	scope := concat("/", array.concat([""], array.slice(parts, 0, depth)))
	some key in indices.by_extended[scope][_type]
	state(indices.by_id[key], id, wanted, indices.by_id) == "in force"
}

is_in_force(id, wanted, indices) if {
	some key in indices.by_scope["/"][_type]
	state(indices.by_id[key], id, wanted, indices.by_id) == "in force"
}

# state(assignment, id, wanted, by_id): `in force` for a workspace, `not in force`, or what is not known of it. What is
# wanted has the GUID of a `definition` and the names of the `parameters` that need a value.
state(assignment, id, wanted, by_id) := "not in force" if {
	some excluded in assignment.properties.notScopes
	ids.is_at_or_under(id, excluded)
} else := "not in force" if {
	settings.word(assignment.properties.enforcementMode, _modes) == "donotenforce"
} else := "cannot be read" if {
	settings.unreadable(assignment, ["properties", "policyDefinitionId"], "string")
} else := "is of a policy set that is not in the snapshot" if {
	_is_of_set(assignment)
	not ids.named(assignment.properties.policyDefinitionId, by_id)
} else := "not in force" if {
	count(_values(assignment, wanted, by_id)) == 0
} else := "cannot be read" if {
	settings.unreadable_word(assignment, ["properties", "enforcementMode"], _modes)
} else := "cannot be read" if {
	settings.unreadable(assignment, ["properties", "parameters"], "object")
} else := "cannot be read" if {
	settings.unreadable(assignment, ["properties", "notScopes"], "array")
} else := best if {
	states := {_narrowed(_state(values, wanted), assignment) | some values in _values(assignment, wanted, by_id)}
	best := [each | some each in _from_best; each in states][0]
}

_type := "microsoft.authorization/policyassignments"

_modes := {"default", "donotenforce"}

# A set may assign the definition several times.
_from_best := ["in force", "covers only some computes", "cannot be read", "not in force"]

_narrowed(found, assignment) := "covers only some computes" if {
	found == "in force"
	some key in ["resourceSelectors", "overrides"]
	not _is_empty(object.get(assignment.properties, key, null))
} else := found

_state(values, wanted) := "not in force" if {
	words.folded(object.get(values, "effect", null)) == "disabled"
} else := "not in force" if {
	some name in wanted.parameters
	_is_empty(object.get(values, lower(name), null))
} else := "cannot be read" if {
	some name in array.concat(["effect"], wanted.parameters)
	not type_name(object.get(values, lower(name), "")) in {"string", "array"}
} else := "covers only some computes" if {
	some name in ["computenames", "tags"]
	not _is_empty(object.get(values, name, null))
} else := "covers only some computes" if {
	some name in ["computetype", "isisolatednetwork"]
	value := object.get(values, name, null)
	not _is_empty(value)
	not _is_any(value)
} else := "in force"

_is_any(value) if words.folded(value) == "any"

_is_empty(value) if words.is_blank(value)

_is_empty(value) if value in [[], {}]

# The parameters of the definition by lower-case name, for each time that an assignment assigns it.
_values(assignment, wanted, by_id) := [_stated(assignment)] if {
	endswith(words.folded(assignment.properties.policyDefinitionId), concat("", ["/", wanted.definition]))
} else := [_of_member(member, assignment, set) |
	_is_of_set(assignment)
	set := ids.named(assignment.properties.policyDefinitionId, by_id)
	some member in set.properties.policyDefinitions
	endswith(words.folded(member.policyDefinitionId), concat("", ["/", wanted.definition]))
]

_is_of_set(assignment) if contains(words.folded(assignment.properties.policyDefinitionId), "/policysetdefinitions/")

_stated(assignment) := _by_name(assignment.properties, "value")

# A member of a set hands on the parameters of the set, which have defaults.
_of_member(member, assignment, set) := {name: _handed_on(value, assignment, set) |
	some name, value in _by_name(member, "value")
}

_handed_on(value, assignment, set) := object.get(_stated(assignment), name, default_of_set) if {
	is_string(value)
	startswith(value, "[parameters('")
	endswith(value, "')]")
	name := lower(trim_suffix(trim_prefix(value, "[parameters('"), "')]"))
	default_of_set := object.get(_defaults(set), name, null)
} else := value

_defaults(set) := _by_name(set.properties, "defaultValue")

# Azure ignores the letter case of names. Which of several spellings counts is not documented, so their values stay
# together in a set, which cannot be read as the value of a parameter.
_by_name(holder, key) := {name: _only({object.get(holder.parameters[spelling], key, null) | some spelling in spellings}) |
	is_object(holder.parameters)
	some name in {lower(spelling) | some spelling, _ in holder.parameters}
	spellings := {spelling | some spelling, each in holder.parameters; lower(spelling) == name; is_object(each)}
	count(spellings) > 0
}

_only(values) := value if {
	count(values) == 1
	some value in values
} else := values
