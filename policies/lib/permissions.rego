# METADATA
# description: >-
#   The permission algebra of Azure role definitions: actions less notActions, with wildcards.
#   `policyeng.facts.permissions` does the same in Python.
package lib.permissions

import data.lib.words

# covers(pattern, action): `*` is any run of characters, also none, and `/*/` also a single slash, as the built-in roles
# use it (`computes/*/write`). Both are in lower case.
covers(pattern, action) if {
	startswith(action, split(pattern, "*")[0]) # most patterns need no regular expression
	regex.match(_expression(pattern), action)
}

# granted(permissions, actions): [{"action", "granted"}], true when some block grants the action and does not take it
# back (blocks add up); null when that depends on the condition of a block, or on what cannot be read; false otherwise.
# The blocks are read once for all actions.
granted(permissions, actions) := [{"action": action, "granted": _added_up(answers)} |
	blocks := _read(permissions)
	some action in actions
	answers := {_answer(block, lower(action)) | some block in blocks}
]

_added_up(answers) if {
	true in answers
} else := null if {
	null in answers
} else := false

_read(permissions) := [_block(block) | some block in permissions] if is_array(permissions)

else := [{"is_sound": false}]

_block(block) := {
	"is_sound": true,
	"actions": _patterns(block, "actions"),
	"not_actions": _patterns(block, "notActions"),
	"is_conditional": _has_condition(block),
} if {
	is_sound(block)
} else := {"is_sound": false}

_patterns(block, key) := [lower(pattern) | some pattern in block[key]]

_has_condition(block) if {
	is_conditional(block)
} else := false

_answer(block, action) := null if {
	not block.is_sound
} else := false if {
	not _covered(block.actions, action)
} else := false if {
	_covered(block.not_actions, action)
} else := null if {
	block.is_conditional
} else := true

_covered(patterns, action) if action in patterns

_covered(patterns, action) if {
	some pattern in patterns
	contains(pattern, "*")
	covers(pattern, action)
}

# is_conditional(document): a block, or the properties of an assignment, have a condition, also one that is not text.
is_conditional(document) if {
	condition := document.condition
	not words.is_blank(condition)
}

# is_sound(block): its actions and notActions are lists of strings, null or absent.
is_sound(block) if {
	is_object(block)
	_are_patterns(object.get(block, "actions", null))
	_are_patterns(object.get(block, "notActions", null))
}

_are_patterns(null) := true

_are_patterns(value) if {
	is_array(value)
	every pattern in value {
		is_string(pattern)
	}
}

# In a regular expression `/*/*/` is the same as `/*/`.
_expression(pattern) := concat("", ["(?s)^", regex.replace(stars, `/(\.\*/)+`, "/(.*/)?"), "$"]) if {
	stars := replace(_escaped(pattern), "*", ".*")
}

# Only these characters mean something in a regular expression; a star is replaced.
_escaped(literal) := regex.replace(literal, `[\\^$.|?+()\[\]{}]`, `\$0`)
