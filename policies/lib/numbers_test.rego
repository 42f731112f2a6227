package lib.numbers_test

import data.lib.numbers

test_whole_numbers_and_their_text if {
	[0, 1, 3, 12] == [numbers.whole(value) | some value in [0, 1, "3", "012"]]
}

test_everything_else_is_undefined if {
	[] == [whole | some value in [1.5, -1, "1.5", "-1", "", " 1", "one", null, true, [1], {}]; whole := numbers.whole(value)]
}
