package lib.durations_test

import data.lib.durations

test_seconds if {
	cases := {
		"PT15M": 900, " pt1h30m ": 5400, "P3D": 259200, "P1DT1S": 86401, "P2W": 1209600, "PT0S": 0, "PT1.5H": 5400,
		"PT0,5M": 30, "P0Y0M1D": 86400, "PT0090S": 90, "P1DT2H3M4S": 93784, "P0.5D": 43200,
	}
	every text, length in cases {
		durations.seconds(text) == length
		durations.is_duration(text)
	}
}

test_years_and_months_have_no_length_and_are_longer_than_any if {
	every text in ["P1Y", "P1M", "P0Y1M", "P10MT1S", "P0.5Y"] {
		durations.is_duration(text)
		not durations.seconds(text)
		durations.is_longer(text, 1000000000000)
	}
}

test_is_longer if {
	durations.is_longer("PT15M1S", 900)
	not durations.is_longer("PT15M", 900)
	not durations.is_longer("P0M", 900)
}

test_what_is_no_duration if {
	every value in [
		"", " ", "P", "PT", "P1", "1D", "P1DT", "P1W1D", "PT1D", "P1H", "PT1.5H30M", "-PT1H", "PT-1H", "PT.5H", "PT1.H",
		"60 minutes", "00:05:00", "PT1M1H", "PT1H1H", "PT1HT1M", 900, true, null, ["PT1H"], {"PT1H": 1},
	] {
		not durations.is_duration(value)
		not durations.seconds(value)
		not durations.is_longer(value, 0)
	}
}
