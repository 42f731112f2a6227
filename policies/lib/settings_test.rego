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

resource := {"properties": {
	"flag": "true",
	"other": 7,
	"mode": "On",
	"blank": " ",
	"list": [{"a/b": false}],
	"text": "text",
	"nothing": null,
}}

test_at if {
	settings.at(resource, ["properties", "mode"]) == "On"
	settings.at(resource, ["properties", "list", 0, "a/b"]) == false
	every path in [["properties", "blank"], ["properties", "nothing"], ["properties", "none"], ["x", "y"], ["properties", "text", "y"]] {
		settings.at(resource, path) == null
	}
}

test_unset if {
	every key in ["blank", "nothing", "none"] {
		settings.is_unset(resource, ["properties", key])
	}
	not settings.is_unset(resource, ["properties", "text"])
	not settings.is_unset(resource, ["properties", "list"])
	settings.is_unset(resource, ["properties", "blank", "flag"])
	not settings.is_unset(resource, ["properties", "text", "flag"])
}

test_unreadable_flag_at if {
	settings.unreadable_flag(resource, ["properties", "other"]) == "/properties/other"
	settings.unreadable_flag(resource, ["properties", "text", "flag"]) == "/properties/text"
	every key in ["flag", "blank", "nothing", "none"] {
		not settings.unreadable_flag(resource, ["properties", key])
	}
	not settings.unreadable_flag(resource, ["properties", "blank", "flag"])
}

test_unreadable_word_at if {
	settings.unreadable_word(resource, ["properties", "text"], {"on"}) == "/properties/text"
	settings.unreadable_word(resource, ["properties", "list", "mode"], {"on"}) == "/properties/list"
	every key in ["mode", "blank", "nothing", "none"] {
		not settings.unreadable_word(resource, ["properties", key], {"on"})
	}
}

test_unreadable_type_at if {
	settings.unreadable(resource, ["properties", "text"], "array") == "/properties/text"
	settings.unreadable({"properties": 7}, ["properties", "a", "b"], "string") == "/properties"
	settings.unreadable(resource, ["properties", "list"], "object") == "/properties/list"
	settings.unreadable({"list": {}}, ["list", 0, "a"], "string") == "/list"
	settings.unreadable(resource, ["properties", "list", 0, "a/b"], "string") == "/properties/list/0/a~1b"
	not settings.unreadable(resource, ["properties", "list", 0, "none"], "string")
	every key in ["list", "blank", "nothing", "none"] {
		not settings.unreadable(resource, ["properties", key], "array")
	}
}

test_entry_paths if {
	settings.entry_paths(resource, ["properties", "list"]) == [["properties", "list", 0]]
	settings.entry_paths({"a": [{"b": [7, null]}]}, ["a", 0, "b"]) == [["a", 0, "b", 0], ["a", 0, "b", 1]]
	settings.entry_paths({"a": {"b": []}}, ["a"]) == []
	settings.entry_paths({"a": "text"}, ["a"]) == []
	settings.entry_paths({}, ["a", "b"]) == []
}

test_pointer if {
	settings.pointer(["properties", "a/b~c", 3, "d"]) == "/properties/a~1b~0c/3/d"
}
