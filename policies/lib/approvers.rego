# METADATA
# description: Whether the person who gave an approval holds a role that may give it.
package lib.approvers

import data.lib.ids
import data.lib.roles
import data.lib.words

# holds(person, scope, listed, snapshot): true, false or null (undecided): whether a principal, by its id in lower case,
# has an assignment of a listed role at or above a scope. Who is stated by a name that no assignment has, such as an
# address, holds none. Undecided are a snapshot without assignments, a group that holds such a role and may have them as
# a member, a management group, a condition and a role that nobody knows.
holds(person, scope, listed, snapshot) if {
	"yes" in _answers(_of_person(person, snapshot), scope, listed, snapshot)
} else := null if {
	count(_assignments(snapshot)) == 0
} else := null if {
	count(snapshot.incomplete) > 0
} else := null if {
	"perhaps" in _answers(_of_person(person, snapshot), scope, listed, snapshot)
} else := null if {
	count(_answers(_of_groups(snapshot), scope, listed, snapshot) & {"yes", "perhaps"}) > 0
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
	answer := _weakest({_has_role(assignment, listed, snapshot), _reaches(assignment, scope), _holds_always(assignment)})
}

# A role that is held must be listed, reach the scope and hold always.
_weakest(answers) := [answer | some answer in ["no", "perhaps", "yes"]; answer in answers][0]

_has_role(assignment, listed, snapshot) := "yes" if {
	roles.is_listed(roles.names(assignment, snapshot), listed)
} else := "perhaps" if {
	count(roles.assigned(assignment, snapshot)) == 0
} else := "no"

_reaches(assignment, scope) := "yes" if {
	outer = roles.scope(assignment)
	array.slice(ids.segments(scope), 0, count(outer)) == outer
} else := "perhaps" if {
	ids.agree_perhaps(roles.scope(assignment), ids.segments(scope))
} else := "no" if {
	outer = roles.scope(assignment)
	ids.segments(scope)
	array.slice(outer, 0, 3) != ["providers", "microsoft.management", "managementgroups"]
} else := "perhaps"

_holds_always(assignment) := "perhaps" if {
	roles.is_conditional(assignment)
} else := "yes"
