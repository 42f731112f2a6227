package lib.twins_test

import data.lib.twins

workspace(name, location, tags) := {
	"id": concat("/", ["/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces", name]),
	"type": "Microsoft.MachineLearningServices/workspaces",
	"location": location,
	"tags": tags,
}

own := workspace("a", "East US", {"Group": " One "})

found(others) := {kind: [twin.id | some twin in several] |
	some kind, several in twins.of(own, "group", {"by_type": {twins.workspace_type: array.concat([own], others)}})
}

none := {"certain": [], "perhaps": []}

test_twins_share_a_tag_in_another_region if {
	twin := workspace("b", "westus", {"group": "ONE"})
	found([twin]) == {"certain": [twin.id], "perhaps": []}
	every other in [
		workspace("b", "eastus", {"group": "one"}),
		workspace("b", "westus", {"group": "two"}),
		workspace("b", "westus", null),
		workspace("A", "westus", {"group": "one"}),
		object.union(twin, {"kind": "Project"}),
	] {
		found([other]) == none
	}
}

test_what_may_be_a_twin if {
	every other in [
		workspace("b", null, {"group": "one"}),
		workspace("b", 7, {"group": "one"}),
		workspace("b", "westus", {"group": ["one"]}),
	] {
		found([other]) == {"certain": [], "perhaps": [other.id]}
	}
}

test_workspace_without_a_readable_tag_has_none if {
	every tags in [null, {}, {"group": " "}, {"group": 7}] {
		twins.of(workspace("a", "eastus", tags), "group", {"by_type": {twins.workspace_type: [own]}}) == none
	}
}

test_workspace_without_a_region if {
	twin := workspace("b", "westus", {"group": "one"})
	snapshot := {"by_type": {twins.workspace_type: [twin]}}
	twins.of(workspace("a", "", {"group": "one"}), "group", snapshot) == {"certain": [], "perhaps": [twin]}
}

test_what_needs_a_twin if {
	twins.is_evaluated(own)
	twins.is_evaluated(workspace("a", "eastus", {"environment": "production"}))
	not twins.is_evaluated(workspace("a", "eastus", {"environment": "dev"}))
	not twins.is_evaluated(object.union(own, {"kind": "project"}))
}
