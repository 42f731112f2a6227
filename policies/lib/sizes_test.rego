package lib.sizes_test

import data.lib.sizes

facts := {
	"vm_sizes": {
		"standard_nc6": {"name": "Standard_NC6", "series": "NC", "gpus": 1, "fpgas": 0},
		"standard_ng1": {"name": "Standard_NG1", "series": "NG", "gpus": 0.25, "fpgas": 0},
		"standard_np10s": {"name": "Standard_NP10s", "series": "NP", "gpus": 0, "fpgas": 1},
		"standard_d4s_v5": {"name": "Standard_D4s_v5", "series": "DSv5", "gpus": 0, "fpgas": 0},
	},
	"vm_series": {
		"NC": {"restriction": "none", "supported_by": ["cluster"]},
		"M": {"restriction": "approval", "supported_by": ["cluster", "instance"]},
	},
	"offered_series": {"EDSv4": {"restriction": "none", "supported_by": ["cluster"]}, "HX": {"restriction": "approval"}},
	"isolated_sizes": {"standard_nc6": {"name": "Standard_NC6"}},
	"retired_sizes": {
		"standard_nc6": {"date": "2023-08-31", "source": "page", "move_to": "NCasT4_v3"},
		"standard_a8": {"date": "2021-03-01", "source": "page"},
	},
}

# The parameters of the documents' reading, and those of today, each with further series.
old(series) := {"extra_series": series, "vendor_series": false}

today(series) := {"extra_series": series, "vendor_series": true}

extra := {
	"dsV5": {"category": "general purpose", "restricted": true, "source": "team"},
	"DSv6": {"category": "general purpose", "restricted": false, "source": "team", "supported_by": ["instance"]},
}

test_sizes_are_known_without_case if {
	sizes.facts_of("STANDARD_nc6").name == "Standard_NC6" with data.facts as facts
	sizes.series("standard_D4S_v5") == "DSv5" with data.facts as facts
	sizes.is_isolated("Standard_NC6") with data.facts as facts
}

test_what_is_no_size_is_not_known if {
	every size in ["", "Standard_NC6 ", "Standard_NC", null, 7, {}] {
		not sizes.facts_of(size) with data.facts as facts
		not sizes.series(size) with data.facts as facts
		not sizes.is_isolated(size) with data.facts as facts
	}
	not sizes.is_isolated("Standard_NP10s") with data.facts as facts
}

test_series_of_the_table_and_of_the_parameter if {
	sizes.is_supported("nc", old({})) with data.facts as facts
	sizes.is_supported("DSv5", old(extra)) with data.facts as facts
	not sizes.is_supported("DSv5", old({})) with data.facts as facts
	not sizes.is_supported("DS", old(extra)) with data.facts as facts
}

test_approval_is_needed_when_either_says_so if {
	sizes.needs_approval("m", old({})) with data.facts as facts
	sizes.needs_approval("DSv5", old(extra)) with data.facts as facts
	sizes.needs_approval("NC", old({"nc": {"restricted": true}})) with data.facts as facts
	not sizes.needs_approval("NC", old(extra)) with data.facts as facts
	not sizes.needs_approval("DSv6", old(extra)) with data.facts as facts
}

test_kinds_of_compute if {
	sizes.supported_by("nc", old({})) == ["cluster"] with data.facts as facts
	sizes.supported_by("DSv5", old(extra)) == ["cluster", "instance"] with data.facts as facts
	sizes.supported_by("dsv6", old(extra)) == ["instance"] with data.facts as facts
	not sizes.supported_by("DSv7", old(extra)) with data.facts as facts
}

test_series_of_today if {
	sizes.is_supported("edsv4", today({})) with data.facts as facts
	sizes.is_supported("NC", today({})) with data.facts as facts
	not sizes.is_supported("EDSv4", old({})) with data.facts as facts
	sizes.needs_approval("HX", today({})) with data.facts as facts
	not sizes.needs_approval("HX", old({})) with data.facts as facts
	sizes.supported_by("EDSv4", today({"EDSv4": {"restricted": true, "supported_by": []}})) == ["cluster"] with data.facts as facts
	sizes.needs_approval("EDSv4", today({"EDSv4": {"restricted": true}})) with data.facts as facts
	not sizes.is_supported("NC", today({})) with data.facts as {}
}

test_retired_sizes if {
	sizes.retirement("STANDARD_NC6", "2023-08-31T00:00:00Z").move_to == "NCasT4_v3" with data.facts as facts
	not sizes.retirement("Standard_NC6", "2023-08-30T23:59:59Z") with data.facts as facts
	not sizes.retirement("Standard_D4s_v5", "2099-01-01T00:00:00Z") with data.facts as facts
	sizes.successor({"move_to": "NCasT4_v3"}) == "a size of the series NCasT4_v3"
	sizes.successor({"date": "2021-03-01"}) == "a size that is still offered"
}
