# METADATA
# description: What evidence in a snapshot comes to for a policy. `policyeng.facts.evidence` does the same in Python.
package lib.evidence

import data.lib.ids
import data.lib.times

# state(entries, policy, id, as_of): what the entries for a policy come to at an id, for policies that take evidence
# with facts: `in force`, `perhaps in force`, `lapsed`, `perhaps lapsed`, or `none`. Perhaps is where a part of an id is
# still open, or the scope is a management group.
state(entries, policy, id, as_of) := "in force" if {
	some entry in entries
	_is_for(entry, policy)
	_is_in_force(entry, as_of)
	_covers(entry.scope, id)
} else := "perhaps in force" if {
	some entry in entries
	_is_for(entry, policy)
	_is_in_force(entry, as_of)
	_may_cover(entry.scope, id)
} else := "lapsed" if {
	some entry in entries
	_is_for(entry, policy)
	_has_lapsed(entry, as_of)
	_covers(entry.scope, id)
} else := "perhaps lapsed" if {
	some entry in entries
	_is_for(entry, policy)
	_has_lapsed(entry, as_of)
	_may_cover(entry.scope, id)
} else := "none"

_is_for(entry, policy) if lower(entry.for) == lower(policy)

# An entry counts from `givenAt` until just before `expiresAt`.
_is_in_force(entry, as_of) if {
	times.ordered(entry.givenAt) <= times.ordered(as_of)
	times.ordered(as_of) < times.ordered(entry.expiresAt)
}

_has_lapsed(entry, as_of) if {
	times.ordered(entry.givenAt) <= times.ordered(as_of)
	times.ordered(entry.expiresAt) <= times.ordered(as_of)
}

_covers(scope, _) if scope == "-"

_covers(scope, id) if ids.is_at_or_under(id, scope)

_may_cover(scope, id) if ids.may_hold(scope, id)

_may_cover(scope, id) if {
	array.slice(ids.segments(scope), 0, 3) == ["providers", "microsoft.management", "managementgroups"]
	ids.segments(id)[0] == "subscriptions"
}
