# METADATA
# description: >-
#   Settings as documents write them. A setting is absent where it is missing, null or blank text; anything else that is
#   neither of the expected type nor text for it is unreadable, which policies report as unknown.
package lib.settings

import data.lib.words

# flag(value): true or false, also if it is written as text in any letter case; undefined for anything else.
flag(value) := value if is_boolean(value)

else := word == "true" if {
	word := words.folded(value)
	word in {"true", "false"}
}

# is_unreadable_flag(value): whether the value is stated and is no flag.
is_unreadable_flag(value) if {
	not words.is_blank(value)
	not _is_flag(value)
}

_is_flag(value) if is_boolean(flag(value))

# word(value, known): the value in lower case if it is one of the known words, which are in lower case; undefined for
# anything else.
word(value, known) := folded if {
	folded := words.folded(value)
	folded in known
}

# is_unreadable_word(value, known): whether the value is stated and is none of the known words, which are in lower case.
is_unreadable_word(value, known) if {
	not words.is_blank(value)
	not word(value, known)
}

# at(resource, path): what is stated at a path of keys, null where nothing is: it is missing, null or blank text.
at(resource, path) := value if {
	value := object.get(resource, path, null)
	not words.is_blank(value)
} else := null

# entry_paths(resource, path): the paths of the entries of the list at a path of keys and positions; none without a list.
entry_paths(resource, path) := [array.concat(path, [index]) |
	list := object.get(resource, path, null)
	is_array(list)
	some index, _ in list
]

# is_unset(resource, path): whether nothing is stated at a path of keys and positions, and what is on the way to it can be
# read.
is_unset(resource, path) if {
	at(resource, path) == null
	not _misplaced(resource, path)
}

# unreadable_flag(resource, path): the JSON Pointer of what is stated at a path of keys and positions and is no flag, or is
# on the way to it and is no object (before a position, no list); undefined where it can be read or is absent.
unreadable_flag(resource, path) := pointer(path) if {
	is_unreadable_flag(object.get(resource, path, null))
} else := _misplaced(resource, path)

# unreadable_word(resource, path, known): the same of what is none of the known words.
unreadable_word(resource, path, known) := pointer(path) if {
	is_unreadable_word(object.get(resource, path, null), known)
} else := _misplaced(resource, path)

# unreadable(resource, path, type): the same of what is not of a type: `string`, `array` or `object`.
unreadable(resource, path, type) := pointer(path) if {
	value := object.get(resource, path, null)
	not words.is_blank(value)
	type_name(value) != type
} else := _misplaced(resource, path)

_misplaced(resource, path) := [pointer(above) |
	object.get(resource, path, null) == null # what is stated can be reached
	some length, key in path
	length > 0
	above := array.slice(path, 0, length)
	value := object.get(resource, above, null)
	not words.is_blank(value)
	not _leads_on(value, key)
][0]

_leads_on(value, key) if {
	is_object(value)
	is_string(key)
}

_leads_on(value, key) if {
	is_array(value)
	is_number(key)
}

# pointer(path): the JSON Pointer of a path of keys and positions.
pointer(path) := concat("", [part | some key in path; part := concat("", ["/", _escaped(key)])])

_escaped(key) := replace(replace(key, "~", "~0"), "/", "~1") if is_string(key)

_escaped(key) := format_int(key, 10) if is_number(key)
