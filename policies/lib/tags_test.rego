package lib.tags_test

import data.lib.tags

test_a_tag_is_missing_when_absent_null_or_blank if {
	every stated in [{}, {"owner": null}, {"owner": ""}, {"owner": " \t"}, {"owners": "a"}, null, "owner", ["owner"]] {
		tags.missing({"tags": stated}, ["owner"]) == ["owner"]
	}
	tags.missing({}, ["owner", "support"]) == ["owner", "support"]
}

test_what_is_stated_is_not_missing if {
	every value in ["a", 0, false, 4711, [], {}] {
		tags.missing({"tags": {"OWNER": value}}, ["owner"]) == []
	}
	tags.missing({"tags": {"owner": "", "Owner": "a"}}, ["owner"]) == []
}

test_only_tags_of_the_resource_itself_count if {
	tags.missing({"properties": {"tags": {"owner": "a"}}}, ["owner"]) == ["owner"]
}

test_lists_and_objects_are_no_values_of_tags if {
	every value in [[], ["a"], {}, {"a": 1}] {
		tags.unreadable({"tags": {"Owner": value}}, ["owner"]) == ["owner"]
	}
	every value in ["a", "", null, 4711, true] {
		tags.unreadable({"tags": {"owner": value}}, ["owner"]) == []
	}
}

test_pointers_are_escaped if {
	tags.pointer("cost-center") == "/tags/cost-center"
	tags.pointer("a/b~c") == "/tags/a~1b~0c"
}

test_a_key_with_a_value_is_a_tag if {
	every value in ["a", "", 0, false] {
		tags.has_any({"tags": {"owner": value}})
	}
	every stated in [null, "", {}, {"owner": null}] {
		not tags.has_any({"tags": stated})
		not tags.are_unreadable({"tags": stated})
	}
	not tags.has_any({})
}

test_what_is_no_object_is_unreadable if {
	every stated in ["owner", ["owner"], 1, true] {
		tags.are_unreadable({"tags": stated})
	}
}
