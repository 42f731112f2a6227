# METADATA
# description: Moments as RFC 3339 text, made comparable for any year; nanoseconds reach only from 1678 to 2261.
package lib.times

# ordered(text): a value that sorts as the moment does. Beyond the reach of nanoseconds all moments are equal.
ordered(text) := [1, 0] if {
	substring(text, 0, 4) > "2261"
} else := [-1, 0] if {
	substring(text, 0, 4) < "1678"
} else := [0, time.parse_rfc3339_ns(text)]
