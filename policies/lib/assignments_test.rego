package lib.assignments_test

import data.lib.assignments

workspace := {"id": "/subscriptions/S/resourceGroups/rg/providers/Microsoft.MachineLearningServices/workspaces/ws"}

at(id, scope) := {
	"id": concat("", [id, "/providers/Microsoft.Authorization/roleAssignments/a"]),
	"properties": {"scope": scope},
}

snapshot(found) := {
	"by_id": {"a": found},
	"by_extended": {lower(workspace.id): {assignments.assignment_type: ["a"]}},
	"by_scope": {},
}

holds(scope) := [each.holds | some each in assignments.of(workspace, snapshot(at(workspace.id, scope)))]

test_what_holds_for_a_workspace if {
	every scope in [
		null,
		"/",
		"/subscriptions/s",
		"/subscriptions/S/resourcegroups/RG/",
		"/providers/Microsoft.Management/managementGroups/m",
	] {
		holds(scope) == ["yes"]
	}
	every scope in ["/subscriptions/s2", "/subscriptions/s/resourceGroups/rg2", concat("", [workspace.id, "/computes/c"])] {
		holds(scope) == []
	}
	every scope in [7, "text", "/subscriptions/{subscription}"] {
		holds(scope) == ["unclear"]
	}
}

test_where_assignments_are_looked_up if {
	every place in [lower(workspace.id), "/subscriptions/s/resourcegroups/rg", "/subscriptions/s"] {
		found := {"by_id": {"a": at("", "/")}, "by_extended": {place: {assignments.assignment_type: ["a"]}}, "by_scope": {}}
		count(assignments.of(workspace, found)) == 1
	}
	tenant := {"by_id": {"a": at("", null)}, "by_extended": {}, "by_scope": {"/": {assignments.assignment_type: ["a"]}}}
	count(assignments.of(workspace, tenant)) == 1
	other := {"by_id": {"a": at("", "/")}, "by_extended": {"/x": {assignments.assignment_type: ["a"]}}, "by_scope": {}}
	assignments.of(workspace, other) == []
}

test_scopes_above if {
	group := at("", "/providers/Microsoft.Management/managementGroups/m")
	assignments.is_of_group(group)
	every scope in ["/", "/subscriptions/s"] {
		not assignments.is_of_group(at("", scope))
		assignments.is_wide(at("", scope))
	}
	assignments.is_wide(group)
	not assignments.is_wide(at("", workspace.id))
	not assignments.is_wide(at("", "/subscriptions/s/resourceGroups/rg"))
}

test_what_is_shown if {
	assignments.shown(["b", "a"]) == {"count": 2, "assignments": ["a", "b"]}
	count(assignments.shown([format_int(n, 10) | some n in numbers.range(1, 11)]).assignments) == 10
}

test_snapshot_without_assignments if {
	assignments.is_empty({"by_type": {}})
	not assignments.is_empty({"by_type": {assignments.assignment_type: [1]}})
}
