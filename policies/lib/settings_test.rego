package lib.settings_test

import data.lib.settings

test_flag if {
	every value in [true, "true", " TRUE "] {
		settings.flag(value) == true
	}
	every value in [false, "False"] {
		settings.flag(value) == false
	}
	every value in [null, "", "yes", 1, [], {}] {
		not settings.flag(value)
	}
}

test_unreadable_flag if {
	every value in ["yes", 0, 1, [], {}, [true]] {
		settings.is_unreadable_flag(value)
	}
	every value in [true, false, "False", null, " "] {
		not settings.is_unreadable_flag(value)
	}
}

test_word if {
	settings.word(" Enabled", {"enabled", "disabled"}) == "enabled"
	every value in ["on", null, "", 1, true, ["enabled"]] {
		not settings.word(value, {"enabled", "disabled"})
	}
}

test_unreadable_word if {
	every value in ["on", 1, true, ["enabled"]] {
		settings.is_unreadable_word(value, {"enabled"})
	}
	every value in ["ENABLED", null, " "] {
		not settings.is_unreadable_word(value, {"enabled"})
	}
}
