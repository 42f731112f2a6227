package lib.words_test

import data.lib.words

sensitive := ["Regulated", " restricted "]

test_text_is_a_string_with_something_in_it if {
	words.text(" a ") == " a "
	not words.text("")
	not words.text(" \t\n")
	not words.text(7)
	not words.text(null)
}

test_folded_forgets_case_and_white_space_around if {
	words.folded(" De V\n") == "de v"
	not words.folded(" ")
	not words.folded(["dev"])
}

test_tag_names_compare_without_case if {
	words.tag({"tags": {"ENVIRONMENT": "dev"}}, "environment") == "dev"
	not words.tag({"tags": {"environments": "dev"}}, "environment")
}

test_tag_of_an_asset_is_in_its_properties if {
	words.tag({"properties": {"tags": {"stage": "test"}}}, "stage") == "test"
	ml := "Microsoft.MachineLearningServices/workspaces"
	every type in [ml, concat("", [ml, "/computes"])] {
		not words.tag({"type": type, "properties": {"tags": {"stage": "test"}}}, "stage")
	}
	words.tag({"type": concat("", [ml, "/jobs"]), "properties": {"tags": {"stage": "test"}}}, "stage") == "test"
	words.tag({"tags": {"stage": "dev"}, "properties": {"tags": {"stage": "test"}}}, "stage") == "dev"
	words.tag({"tags": {"stage": " "}, "properties": {"tags": {"stage": "test"}}}, "stage") == "test"
}

test_tag_that_says_nothing_is_not_stated if {
	every holder in [null, {}, {"a": null}, {"a": ""}, {"a": "  "}, "text", ["a"], 7] {
		not words.tag({"tags": holder}, "a")
	}
	not words.tag(null, "a")
	not words.tag({}, "a")
}

test_tag_that_is_no_string_is_stated if {
	words.tag({"tags": {"a": 7}}, "a") == 7
	words.tag({"tags": {"a": false}}, "a") == false
}

test_tag_written_twice_counts_in_the_order_of_its_names if {
	words.tag({"tags": {"stage": "test", "Stage": "dev"}}, "stage") == "dev"
	words.tag({"tags": {"stage": "test", "Stage": ""}}, "stage") == "test"
}

hbi(value) := {"properties": {"hbiWorkspace": value}}

tagged(value) := {"tags": {"data-classification": value}}

spelled(name) := {"tags": {"data-classification": "internal", name: "restricted"}}

# Resource, workspace, and whether it is regulated.
regulated_cases := [
	[{}, hbi(true), true],
	[{}, hbi("TRUE"), true],
	[tagged("public"), hbi(true), true],
	[{}, hbi(false), false],
	[{}, hbi("False"), false],
	[{}, hbi(null), false],
	[{}, {}, false],
	[{}, {"properties": "text"}, false],
	[{"tags": {"Data-Classification": "RESTRICTED"}}, {}, true],
	[{}, tagged("regulated"), true],
	[tagged(""), tagged("regulated"), true],
	[tagged("public"), tagged("regulated"), false],
	[{"properties": {"tags": {"data-classification": "restricted"}}}, {}, true],
	[tagged("restricted"), null, true],
	[{}, null, null],
	[tagged("public"), null, null],
	[{}, hbi(1), null],
	[{}, hbi("yes"), null],
	[{}, hbi(""), null],
	[tagged(7), {}, null],
	[spelled("Data-Classification"), {}, true],
	[spelled("data_classification"), {}, true],
	[spelled("DataClassification"), {}, true],
	[spelled("data classification"), {}, true],
	[spelled("data.classification"), {}, false],
	[{}, spelled("DATA-CLASSIFICATION"), true],
	[{"tags": {"data-classification": 7, "Data-Classification": "public"}}, {}, null],
	[object.union(tagged("public"), {"properties": tagged("restricted")}), {}, true],
]

test_regulated_is_three_valued if {
	every case in regulated_cases {
		words.regulated(case[0], case[1], sensitive).decided == case[2]
	}
}

test_regulated_says_why if {
	words.regulated({}, hbi(true), []).reason == "`hbiWorkspace` of the workspace is true"
	of_resource := words.regulated(tagged(" Regulated "), {}, sensitive)
	of_resource.reason == "the tag `data-classification` of the resource is `Regulated`"
	of_workspace := words.regulated({}, tagged("restricted"), sensitive)
	of_workspace.reason == "the tag `data-classification` of the workspace is `restricted`"
	unreadable := words.regulated({}, hbi(1), sensitive)
	unreadable.reason == "`hbiWorkspace` of the workspace is neither true nor false"
	words.regulated(tagged(7), {}, sensitive).reason == "the tag `data-classification` of the resource is not text"
	homeless := "the workspace is not in the snapshot, so it is not known whether the work is regulated"
	words.regulated({}, null, sensitive).reason == homeless
	words.regulated({}, {}, sensitive).reason == "no flag and no tag states so"
}

test_shown_is_a_short_text_or_how_long_it_is if {
	words.shown(" \t") == "``"
	words.shown(" De `v`\n") == "`De `v``"
	sixty := concat("", ["é😀" | some _ in numbers.range(1, 30)])
	words.shown(sixty) == concat("", ["`", sixty, "`"])
	words.shown(concat("", [" ", sixty, "x "])) == "a text of 61 characters"
	words.shown(7) == "not text"
	words.shown(null) == "not text"
}

stage_cases := [
	{"resource": {"environment": "dev"}, "workspace": {"environment": "production"}, "name": "dev"},
	{"resource": {"environment": " Test "}, "workspace": {}, "name": "test"},
	{"resource": {"stage": "STAGING"}, "workspace": {"environment": "dev"}, "name": "staging"},
	{"resource": {"environment": "production", "stage": "dev"}, "workspace": {}, "name": "production"},
	{"resource": {"environment": ""}, "workspace": {"stage": "dev"}, "name": "dev"},
	{"resource": {"environment": "development"}, "workspace": {"environment": "dev"}, "name": "production"},
	{"resource": {"environment": 1}, "workspace": {"environment": "dev"}, "name": "production"},
	{"resource": {}, "workspace": {}, "name": "production"},
]

test_stage_is_the_first_one_stated if {
	every case in stage_cases {
		words.stage({"tags": case.resource}, {"tags": case.workspace}).name == case.name
	}
	words.stage({}, null) == {
		"name": "production",
		"reason": "no tag `environment` or `stage`, which counts as production",
	}
}

test_stage_of_several_values_is_production if {
	words.stage({"tags": {"environment": "dev", "Environment": "test"}}, null) == {
		"name": "production",
		"reason": "the tag `environment` of the resource has several values, which counts as production",
	}
	words.stage({"tags": {"stage": "dev", "Stage": 7}}, null).name == "production"
	words.stage({"tags": {"stage": "dev", "Stage": " DEV"}}, null).name == "dev"
	words.stage({"tags": {"stage": "dev"}, "properties": {"tags": {"stage": "test"}}}, null).name == "production"
}

test_stage_says_why if {
	words.stage({"tags": {"STAGE": " Dev "}}, null).reason == "the tag `stage` of the resource is `Dev`"
	words.stage({}, {"tags": {"environment": "staging"}}).reason == "the tag `environment` of the workspace is `staging`"
	unknown := "the tag `environment` of the resource is `sandbox`, which is none of dev, test, staging and production and counts as production"
	words.stage({"tags": {"environment": "sandbox"}}, null).reason == unknown
	no_text := "the tag `environment` of the resource is not text, which counts as production"
	words.stage({"tags": {"environment": 1}}, null).reason == no_text
}
