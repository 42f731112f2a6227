# METADATA
# description: >-
#   Durations in ISO 8601, as ARM writes them, in any letter case. A year and a month have no fixed length, so a duration
#   with more than none of them is longer than any number of seconds.
package lib.durations

# is_duration(value): whether a value is the text of a duration. Only its last part may have a fraction, and weeks have no
# other parts.
is_duration(value) if _written(value)

# seconds(value): the length of a duration; undefined for one with years or months, and for what is no duration.
seconds(value) := sum(_amounts(text)) if {
	text := _written(value)
	not _has_years_or_months(text)
}

# is_longer(value, most): whether a duration is longer than a number of seconds; undefined for what is no duration.
is_longer(value, most) if seconds(value) > most

is_longer(value, _) if _has_years_or_months(_written(value))

# A duration in capitals. Its numbers have at most thirty digits on either side of the point.
_written(value) := text if {
	is_string(value)
	text := upper(trim_space(value))
	regex.match(_form, text)
	regex.match(`[0-9][A-Z]$`, text) # there is a part, also after the T
	not regex.match(`[.,][0-9]*[A-Z].`, text)
}

_form := concat("", [
	"^P(", _part("W"), "|", _optional("Y"), _optional("M"), _optional("D"),
	"(T", _optional("H"), _optional("M"), _optional("S"), ")?)$",
])

_part(unit) := concat("", [`[0-9]{1,30}(?:[.,][0-9]{1,30})?`, unit])

_optional(unit) := concat("", ["(?:", _part(unit), ")?"])

_has_years_or_months(text) if regex.match(`^P[^T]*[1-9][0-9.,]*[YM]`, text)

# The seconds of each part; the M before the T is for months, and there are none.
_amounts(text) := [amount |
	some index, half in split(text, "T")
	some found in regex.find_all_string_submatch_n(`([0-9.,]+)([A-Z])`, half, -1)
	amount := _number(found[1]) * _lengths[index][found[2]]
]

_lengths := [{"Y": 0, "M": 0, "W": 604800, "D": 86400}, {"H": 3600, "M": 60, "S": 1}]

# `to_number` of `01` gives what is no number in JSON.
_number(digits) := to_number(regex.replace(replace(digits, ",", "."), `^0+([0-9])`, "$1"))
