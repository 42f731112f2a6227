package lib.approvers_test

import data.lib.approvers

ann := "aaaaaaaa-0000-0000-0000-000000000000"

role := "/providers/Microsoft.Authorization/roleDefinitions/r"

granted := {"principalId": ann, "principalType": "User", "scope": "/subscriptions/s", "roleDefinitionId": role}

# The snapshot with one assignment, edited; the role has a name unless the edit names another one.
snapshot(edit) := {
	"by_type": {"microsoft.authorization/roleassignments": [{"id": "/x", "properties": object.union(granted, edit)}]},
	"by_guid": {"r": ["/r"]},
	"by_id": {"/r": {"id": "/r", "properties": {"roleName": "Approver"}}},
	"by_principal": {"bob": [0]},
	"incomplete": [],
}

holds(person, listed, edit) := approvers.holds(person, "/subscriptions/s/resourceGroups/rg", listed, snapshot(edit))

test_a_listed_role_at_or_above_the_scope_is_held if {
	every listed in [["approver"], ["R"], [role], ["other", " Approver "]] {
		holds(ann, listed, {}) == true
	}
	every scope in ["/", "/SUBSCRIPTIONS/S", "/subscriptions/s/resourceGroups/RG/"] {
		holds(ann, ["Approver"], {"scope": scope}) == true
	}
	holds(ann, ["Approver"], {"principalId": upper(ann)}) == true
}

test_another_role_or_scope_is_not if {
	holds(ann, ["Contributor"], {}) == false
	every scope in ["/subscriptions/s2", "/subscriptions/s/resourceGroups/r", "/subscriptions/s/resourceGroups/rg/providers/a"] {
		holds(ann, ["Approver"], {"scope": scope}) == false
	}
}

test_who_has_no_assignment_by_this_name_holds_none if {
	holds("bbbbbbbb-0000-0000-0000-000000000000", ["Approver"], {}) == false
	holds("bob", ["Approver"], {}) == false
	holds("carol", ["Contributor"], {"principalId": "Carol"}) == false
	holds("ann@contoso.example", ["Approver"], {}) == false
}

test_without_assignments_nothing_is_known if {
	approvers.holds(ann, "/", ["Approver"], {"by_type": {}, "by_guid": {}, "by_id": {}, "incomplete": []}) == null
}

test_what_cannot_be_read_is_undecided if {
	holds(ann, ["Approver"], {"scope": 7}) == null
	holds(ann, ["Approver"], {"roleDefinitionId": "nobody-knows"}) == null
	holds(ann, ["Approver"], {"condition": "x"}) == null
	holds(ann, ["Approver"], {"scope": "/providers/Microsoft.Management/managementGroups/m"}) == null
	approvers.holds(ann, "no id", ["Approver"], snapshot({})) == null
}

test_an_assignment_that_is_not_placed_yet_may_reach_the_scope if {
	holds(ann, ["Approver"], {"scope": "/subscriptions/{subscription}"}) == null
	holds(ann, ["Approver"], {"scope": "/subscriptions/s/resourceGroups/{resource-group}"}) == null
	holds(ann, ["Approver"], {"scope": "/subscriptions/s2/resourceGroups/{resource-group}"}) == false
}

test_a_group_may_have_the_approver_as_a_member if {
	holds("bob", ["Approver"], {"principalType": "Group"}) == null
	holds("bob", ["Approver"], {"principalType": "ForeignGroup", "condition": "x"}) == null
	holds("bob", ["Contributor"], {"principalType": "Group"}) == false
}

# No `cases.yaml` can state that a snapshot is incomplete.
test_an_incomplete_snapshot_proves_no_absence if {
	partial := object.union(snapshot({}), {"incomplete": ["roles: forbidden"]})
	approvers.holds("bob", "/subscriptions/s", ["Approver"], partial) == null
	approvers.holds(ann, "/subscriptions/s", ["Approver"], partial) == true
}
