# METADATA
# description: Moments as RFC 3339 text, made comparable for any year; nanoseconds reach only from 1678 to 2261.
package lib.times

# ordered(text): a value that sorts as the moment does. Beyond the reach of nanoseconds all moments are equal.
ordered(text) := [1, 0] if {
	substring(text, 0, 4) > "2261"
} else := [-1, 0] if {
	substring(text, 0, 4) < "1678"
} else := [0, time.parse_rfc3339_ns(text)]

# moment(value): the text of a moment with a time zone, in capitals; undefined for anything else, also for a day that its
# month does not have.
moment(value) := text if {
	is_string(value)
	text := upper(trim_space(value))
	regex.match(_form, text)
	not regex.match(`^.{5}(0[2469]|11)-31|^.{5}02-30`, text)
	not _is_missing_leap_day(text)
}

_form := concat("", [
	`^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?`,
	`(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`,
])

_is_missing_leap_day(text) if {
	substring(text, 5, 5) == "02-29"
	year := to_number(regex.replace(substring(text, 0, 4), `^0+([0-9])`, "$1"))
	not _is_leap_year(year)
}

_is_leap_year(year) if {
	year % 4 == 0
	year % 100 != 0
}

_is_leap_year(year) if year % 400 == 0

# shifted(moment, days): what `ordered` gives for a moment so many days later, or earlier where they are negative.
shifted(moment, days) := [0, moment[1] + (days * 86400000000000)] if {
	moment[0] == 0
} else := moment
