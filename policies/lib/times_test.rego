package lib.times_test

import data.lib.times

test_moments_are_ordered_in_any_zone_and_year if {
	moments := [
		"0001-01-01T00:00:00Z",
		"1678-01-01T00:00:00Z",
		"2026-06-01T00:00:00+02:00",
		"2026-06-01T00:00:00Z",
		"2026-06-01T00:00:00.5Z",
		"2026-06-01T00:00:01Z",
		"2261-12-31T00:00:00Z",
		"2262-01-01T00:00:00Z",
	]
	every index in numbers.range(1, count(moments) - 1) {
		times.ordered(moments[index - 1]) < times.ordered(moments[index])
	}
}

test_zones_do_not_matter if {
	times.ordered("2026-06-01T02:00:00+02:00") == times.ordered("2026-06-01T00:00:00Z")
}

test_what_no_clock_reaches_is_alike if {
	times.ordered("2262-01-01T00:00:00Z") == times.ordered("9999-12-31T23:59:59Z")
	times.ordered("1677-12-31T00:00:00Z") == times.ordered("0001-01-01T00:00:00Z")
}
