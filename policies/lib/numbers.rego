# METADATA
# description: Numbers as documents write them.
package lib.numbers

# whole(value): a whole number of at most nine digits, also when it is written as text, as templates and command lines do;
# undefined for anything else.
whole(value) := value if {
	is_number(value)
	value >= 0
	value < 1000000000
	value == floor(value)
} else := _number(value) if {
	is_string(value)
	regex.match(`^[0-9]{1,9}$`, value)
}

# amount(value): a number that is not negative, also when it is written as text with at most nine digits on either side
# of its point; undefined for anything else.
amount(value) := value if {
	is_number(value)
	value >= 0
} else := _number(value) if {
	is_string(value)
	regex.match(`^[0-9]{1,9}(\.[0-9]{1,9})?$`, value)
}

# `to_number` of `01` gives what is no number in JSON.
_number(text) := to_number(regex.replace(text, `^0+([0-9])`, "$1"))
