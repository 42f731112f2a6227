# METADATA
# description: Numbers as documents write them.
package lib.numbers

# whole(value): a whole number from 0, also when it is written as text, as templates and command lines do; undefined for
# anything else.
whole(value) := value if {
	is_number(value)
	value >= 0
	value == floor(value)
}

else := to_number(value) if {
	is_string(value)
	regex.match(`^[0-9]{1,9}$`, value)
}
