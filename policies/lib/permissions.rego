# METADATA
# description: >-
#   The permission algebra of Azure role definitions: actions less notActions, with wildcards.
#   `policyeng.facts.permissions` says the same in Python.
package lib.permissions

# covers(pattern, action): `*` is any run of characters, also none, and `/*/` also a single slash, as the built-in roles
# use it (`computes/*/write`). Letters compare without case.
covers(pattern, action) if lower(pattern) == lower(action)

covers(pattern, action) if {
	literals := split(lower(pattern), "*")
	count(literals) > 1
	startswith(lower(action), literals[0]) # spares most patterns the regular expression
	regex.match(_expression(literals), lower(action))
}

# granted(permissions, action): true when some block grants the action and does not take it back (blocks add up); null
# when that depends on the condition of a block, or on what cannot be read; false otherwise.
granted(permissions, action) if {
	true in _answers(permissions, action)
} else := null if {
	null in _answers(permissions, action)
} else := false

_answers(permissions, action) := {answer |
	some block in permissions
	answer := _answer(block, action)
} if {
	is_array(permissions)
} else := {null}

_answer(block, action) := null if {
	not is_sound(block)
} else := false if {
	not _covered(block, "actions", action)
} else := false if {
	_covered(block, "notActions", action)
} else := null if {
	is_conditional(block)
} else := true

# is_conditional(document): a block, or the properties of an assignment, carry a condition; one that is no text does.
is_conditional(document) if {
	condition := document.condition
	condition != null
	not _is_blank(condition)
}

_is_blank(value) if {
	is_string(value)
	trim_space(value) == ""
}

# is_sound(block): its actions and notActions are lists of strings, null or absent.
is_sound(block) if {
	is_object(block)
	every key in ["actions", "notActions"] {
		_are_patterns(object.get(block, key, null))
	}
}

_are_patterns(null) := true

_are_patterns(value) if {
	is_array(value)
	every pattern in value {
		is_string(pattern)
	}
}

_covered(block, key, action) if {
	is_array(block[key])
	some pattern in block[key]
	covers(pattern, action)
}

_expression(literals) := concat("", array.concat(
	["(?s)^", _escaped(literals[0])],
	array.concat([_after_star(literals, index) | some index in numbers.range(1, count(literals) - 1)], ["$"]),
))

_after_star(literals, index) := concat("", ["(.*/)?", _escaped(substring(literals[index], 1, -1))]) if {
	_between_slashes(literals, index)
}

else := concat("", [".*", _escaped(literals[index])])

_between_slashes(literals, index) if {
	endswith(literals[index - 1], "/")
	startswith(literals[index], "/")
}

# Only these characters mean something in a regular expression.
_escaped(literal) := regex.replace(literal, `[\\^$.|?+()\[\]{}]`, `\$0`)
