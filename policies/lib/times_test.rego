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

test_moments_have_a_zone if {
	every text in [
		"2026-12-31T00:00:00Z", " 2026-12-31t23:59:59.1234567z", "2028-02-29T00:00:00+05:30", "2000-02-29T00:00:00Z",
		"2026-11-30T00:00:00-08:00",
	] {
		times.moment(text) == upper(trim_space(text))
		times.ordered(times.moment(text))
	}
}

test_what_is_no_moment if {
	every value in [
		"2026-12-31", "2026-12-31T00:00:00", "2026-12-31 00:00:00Z", "2026-02-29T00:00:00Z", "2100-02-29T00:00:00Z",
		"2026-02-30T00:00:00Z", "2026-04-31T00:00:00Z", "2026-11-31T00:00:00Z", "2026-13-01T00:00:00Z",
		"2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00+24:00", "soon", "",
		null, 1780272000, true, ["2026-12-31T00:00:00Z"], {},
	] {
		not times.moment(value)
	}
}

test_shifted if {
	times.shifted(times.ordered("2026-06-01T00:00:00Z"), -31) == times.ordered("2026-05-01T00:00:00Z")
	times.shifted([1, 0], 1) == [1, 0]
}
