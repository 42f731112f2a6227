# METADATA
# description: Whether the person who gave an approval has a role that may give it.
package lib.approvers

import data.lib.ids
import data.lib.roles
import data.lib.words

# holds(person, scope, listed, snapshot): true, false or null (undecided): whether a principal, by its id in lower case,
# has an assignment of a listed role at or above a scope. A name that no assignment has, such as an address, has none.
# Undecided are a snapshot without assignments, a group that has such a role and may have the principal as a member, a
# management group, a condition and an unknown role.
holds(person, scope, listed, snapshot) if {
	"yes" in _answers(_of_person(person, snapshot), scope, listed, snapshot)
} else := null if {
	count(_assignments(snapshot)) == 0
} else := null if {
	count(snapshot.incomplete) > 0
} else := null if {
	"perhaps" in _answers(_of_person(person, snapshot), scope, listed, snapshot)
} else := null if {
	some answer in _answers(_of_groups(snapshot), scope, listed, snapshot)
	answer != "no"
} else := false

_assignments(snapshot) := object.get(snapshot.by_type, "microsoft.authorization/roleassignments", [])

_of_person(person, snapshot) := [assignment |
	some assignment in _assignments(snapshot)
	words.folded(assignment.properties.principalId) == person
]

_of_groups(snapshot) := [assignment |
	some assignment in _assignments(snapshot)
	words.folded(assignment.properties.principalType) in {"group", "foreigngroup"}
]

_answers(assignments, scope, listed, snapshot) := {answer |
	some assignment in assignments
	answer := _weakest({_has_role(assignment, listed, snapshot), _reaches(assignment, scope), _is_unconditional(assignment)})
}

# A role must be listed, reach the scope and have no condition.
_weakest(answers) := "no" if {
	"no" in answers
} else := "perhaps" if {
	"perhaps" in answers
} else := "yes"

_has_role(assignment, listed, snapshot) := "yes" if {
	roles.is_listed(roles.names(assignment, snapshot), listed)
} else := "perhaps" if {
	count(roles.assigned(assignment, snapshot)) == 0
} else := "no"

_reaches(assignment, scope) := "yes" if {
	outer := roles.scope(assignment)
	array.slice(ids.segments(scope), 0, count(outer)) == outer
} else := "perhaps" if {
	ids.agree_perhaps(roles.scope(assignment), ids.segments(scope))
} else := "no" if {
	outer := roles.scope(assignment)
	ids.segments(scope)
	array.slice(outer, 0, 3) != ["providers", "microsoft.management", "managementgroups"]
} else := "perhaps"

_is_unconditional(assignment) := "perhaps" if {
	roles.is_conditional(assignment)
} else := "yes"
