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

# grants(permissions, action): some block grants the action and does not take it back; blocks add up. A block that is
# not sound grants nothing.
grants(permissions, action) if {
	is_array(permissions)
	some block in permissions
	is_sound(block)
	_covered(block, "actions", action)
	not _covered(block, "notActions", action)
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
