package lib.ids_test

import data.lib.ids

group := "/subscriptions/S/resourceGroups/rg-ml"

workspace := concat("", [group, "/providers/Microsoft.MachineLearningServices/workspaces/WS"])

test_segments_are_in_lower_case if {
	ids.segments("/Subscriptions/S") == ["subscriptions", "s"]
	ids.segments("/Subscriptions/S/") == ["subscriptions", "s"]
	ids.segments("/") == []
}

test_what_is_no_id_has_no_segments if {
	every id in ["", "subscriptions/s", "/subscriptions//s", "/subscriptions/s//", "/subscriptions/ /x", null, 7, ["/a"]] {
		not ids.segments(id)
	}
}

test_under_is_by_whole_segments if {
	ids.is_at_or_under(workspace, upper(group))
	ids.is_at_or_under(workspace, workspace)
	ids.is_at_or_under(workspace, "/")
	not ids.is_at_or_under(workspace, "/subscriptions/S/resourceGroups/rg")
	not ids.is_at_or_under(workspace, "/subscriptions/S/resourceGroups/rg-ml-2")
	not ids.is_at_or_under(group, workspace)
}

test_no_id_is_under_nothing if {
	not ids.is_at_or_under(workspace, "")
	not ids.is_at_or_under("", "")
	not ids.is_at_or_under(7, "/")
	not ids.is_at_or_under(workspace, null)
}

test_same_ids_differ_only_in_case_and_a_slash if {
	ids.folded("/A/b") == ids.folded("/a/B/")
	ids.folded("/a/b") != ids.folded("/a/bc")
	not ids.named(null, {})
}

test_subscription if {
	ids.subscription(workspace) == "s"
	not ids.subscription("/providers/x/y/z")
	not ids.subscription("/subscriptions")
}

test_workspace_of_what_lies_in_it if {
	ids.workspace_id(concat("", [workspace, "/computes/c"])) == lower(workspace)
	ids.workspace_id(workspace) == lower(workspace)
	not ids.workspace_id(group)
	not ids.workspace_id(concat("", [workspace, "/computes"]))
	not ids.workspace_id(concat("", [group, "/providers/Microsoft.MachineLearningServices/workspaces"]))
	not ids.workspace_id(concat("", [group, "/providers/Microsoft.MachineLearningServices/registries/r"]))
	not ids.workspace_id("/tenants/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w")
	not ids.workspace_id("/subscriptions/s/groups/g/providers/Microsoft.MachineLearningServices/workspaces/w")
	not ids.workspace_id(concat("", [group, "/providers/Microsoft.MachineLearningServices/workspaces/w/x"]))
	not ids.workspace_id("/providers/a/b/c/providers/Microsoft.MachineLearningServices/workspaces/w")
}

open := "/subscriptions/{subscription}/resourceGroups/{resource-group}"

test_what_is_not_placed_yet_may_lie_anywhere if {
	there := concat("", [open, "/providers/Microsoft.MachineLearningServices/workspaces/WS"])
	every scope in ["/subscriptions/s", group, "/subscriptions/S/resourceGroups/{other}"] {
		ids.may_hold(scope, there)
		not ids.is_at_or_under(there, scope)
	}
	ids.may_hold(there, workspace)
	not ids.may_hold(open, there)
	not ids.may_hold(there, open)
	not ids.may_hold(group, workspace)
	not ids.may_hold("/", there)
	not ids.may_hold("/subscriptions/s", "/providers/{x}/y")
	not ids.may_hold("no id", there)
	not ids.may_hold("/subscriptions/s", concat("", ["/subscriptions/{s", "x"]))
}

test_resources_are_found_without_case if {
	by_id := {lower(workspace): {"id": workspace}}
	ids.named(upper(workspace), by_id).id == workspace
	not ids.named(group, by_id)
	not ids.named(7, by_id)
	ids.workspace_of(concat("", [workspace, "/computes/c"]), by_id).id == workspace
	ids.workspace_of(group, by_id) == null
	ids.workspace_of(concat("", [workspace, "2"]), by_id) == null
}

test_scopes_of_an_id if {
	id := "/subscriptions/S/resourceGroups/G/providers/Microsoft.X/a/b"
	ids.scopes(id) == {lower(id), "/subscriptions/s/resourcegroups/g", "/subscriptions/s"}
	ids.scopes("/subscriptions/S/") == {"/subscriptions/s"}
	ids.scopes("text") == set()
}
