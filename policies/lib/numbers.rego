# METADATA
# description: Numbers as documents write them.
package lib.numbers

# whole(value): a whole number of at most nine digits, also when it is written as text, as templates and command lines do;
# undefined for anything else. OPA and other engines round larger ones differently.
whole(value) := value if {
	is_number(value)
	value >= 0
	value < 1000000000
	value == floor(value)
}

else := 0 if {
	is_string(value)
	regex.match(`^0{1,9}$`, value)
}

# Not every engine reads `01` as a number.
else := to_number(trim_left(value, "0")) if {
	is_string(value)
	regex.match(`^[0-9]{1,9}$`, value)
}

# amount(value): a number that is not negative, also when it is written as text with at most nine digits on either side
# of its point; undefined for anything else.
amount(value) := value if {
	is_number(value)
	value >= 0
} else := to_number(regex.replace(value, `^0+([0-9])`, "$1")) if {
	is_string(value)
	regex.match(`^[0-9]{1,9}(\.[0-9]{1,9})?$`, value)
}
