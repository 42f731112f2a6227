# METADATA
# description: >-
#   Role assignments that hold for a workspace: those whose scope is at or above it. They are looked up at it, its resource
#   group and its subscription, and above all subscriptions; ids do not show what a management group has, so it counts.
package lib.assignments

import data.lib.ids
import data.lib.roles

assignment_type := "microsoft.authorization/roleassignments"

# of(workspace, snapshot): [{"assignment", "holds"}], where `holds` is an answer as in `lib.answers` that is not `no`.
of(workspace, snapshot) := [{"assignment": assignment, "holds": holds} |
	some id in _ids(workspace, snapshot)
	assignment := snapshot.by_id[id]
	holds := _holds(assignment, ids.segments(workspace.id))
	holds != "no"
]

_ids(workspace, snapshot) := array.concat(
	[id |
		some scope in ids.scopes(workspace.id)
		some id in snapshot.by_extended[scope][assignment_type]
	],
	[id | some id in snapshot.by_scope["/"][assignment_type]],
)

_holds(assignment, parts) := "unclear" if {
	not roles.scope(assignment)
} else := "yes" if {
	outer := roles.scope(assignment)
	outer == array.slice(parts, 0, count(outer))
} else := "yes" if {
	is_of_group(assignment)
} else := "unclear" if {
	ids.agree_perhaps(roles.scope(assignment), parts)
} else := "no"

# is_of_group(assignment), is_wide(assignment): whether its scope is a management group; whether it is a subscription or
# above one.
is_of_group(assignment) if _is_group(roles.scope(assignment))

_is_group(parts) if array.slice(parts, 0, 3) == ["providers", "microsoft.management", "managementgroups"]

is_wide(assignment) if _is_group(roles.scope(assignment))

is_wide(assignment) if count(roles.scope(assignment)) in {0, 2}

# is_empty(snapshot): whether the snapshot has no role assignment at all.
is_empty(snapshot) if count(object.get(snapshot.by_type, assignment_type, [])) == 0

# shown(ids): what a denial reports of assignments.
shown(ids) := {"count": count(ids), "assignments": array.slice(sort(ids), 0, 10)}
