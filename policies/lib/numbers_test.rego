package lib.numbers_test

import data.lib.numbers

test_whole_numbers_and_their_text if {
	[0, 1, 2, 3, 12, 999999999] == [numbers.whole(value) | some value in [0, 1, 2.0, "3", "012", "999999999"]]
	[0, 0, 1, 100] == [numbers.whole(value) | some value in ["0", "000", "01", "0100"]]
}

test_everything_else_is_undefined if {
	every value in [1.5, -1, "1.5", "-1", "1e3", "9999999999", "", " 1", "1\n", "one", null, true, [1], {}] {
		not numbers.whole(value)
	}
}

test_numbers_of_more_than_nine_digits_are_none if {
	numbers.whole(999999999) == 999999999
	every value in [1000000000, 1e300, "1000000000"] {
		not numbers.whole(value)
	}
}

test_amounts_and_their_text if {
	every value, read in {"0": 0, "000": 0, "0.5": 0.5, "00.50": 0.5, "47.9": 47.9, "048": 48, "999999999": 999999999} {
		numbers.amount(value) == read
	}
	every value in [0, 0.25, 48, 1e300] {
		numbers.amount(value) == value
	}
}

test_what_is_no_amount_is_undefined if {
	every value in [-1, "-1", "+1", ".5", "1.", "1e3", "4Gi", " 4", "4\n", "", "9999999999", null, true, [4], {}] {
		not numbers.amount(value)
	}
}
