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
