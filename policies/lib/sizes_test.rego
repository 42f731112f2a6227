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
	"isolated_sizes": {"standard_nc6": {"name": "Standard_NC6"}},
}

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
	sizes.is_supported("nc", {}) with data.facts as facts
	sizes.is_supported("DSv5", extra) with data.facts as facts
	not sizes.is_supported("DSv5", {}) with data.facts as facts
	not sizes.is_supported("DS", extra) with data.facts as facts
}

test_approval_is_needed_when_either_says_so if {
	sizes.needs_approval("m", {}) with data.facts as facts
	sizes.needs_approval("DSv5", extra) with data.facts as facts
	sizes.needs_approval("NC", {"nc": {"restricted": true}}) with data.facts as facts
	not sizes.needs_approval("NC", extra) with data.facts as facts
	not sizes.needs_approval("DSv6", extra) with data.facts as facts
}

test_kinds_of_compute if {
	sizes.supported_by("nc", {}) == ["cluster"] with data.facts as facts
	sizes.supported_by("DSv5", extra) == ["cluster", "instance"] with data.facts as facts
	sizes.supported_by("dsv6", extra) == ["instance"] with data.facts as facts
	not sizes.supported_by("DSv7", extra) with data.facts as facts
}
