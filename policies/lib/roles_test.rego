package lib.roles_test

import data.lib.roles

workspace_id := "/subscriptions/s/resourceGroups/rg/providers/Microsoft.MachineLearningServices/workspaces/ws"

contributor := "b24988ac-6180-42a0-ab88-20f7382dd24c"

catalogue := {
	"roles": {contributor: {"name": "Contributor", "permissions": [{"actions": ["*"]}]}},
	"roles_elsewhere": {"e1": {"name": "Elsewhere"}},
}

definition(id, properties) := {"id": id, "properties": properties}

snapshot(definitions) := {
	"by_id": {lower(definition.id): definition | some definition in definitions},
	"by_guid": {guid: ids |
		some guid in ({roles.guid(definition.id) | some definition in definitions} - {""})
		ids := [lower(definition.id) | some definition in definitions; roles.guid(definition.id) == guid]
	},
}

assigned_at(scope) := {"id": "/x/providers/Microsoft.Authorization/roleAssignments/a", "properties": {"scope": scope}}

test_guid_is_the_last_part_of_an_id if {
	every id in ["/subscriptions/s/providers/Microsoft.Authorization/roleDefinitions/R", "/R", "r", " R ", "/r/"] {
		roles.guid(id) == "r"
	}
	every id in ["", "/", " ", null, 7, ["r"], {}] {
		roles.guid(id) == ""
	}
}

test_role_of_the_catalogue if {
	id := concat("/", ["/providers/Microsoft.Authorization/roleDefinitions", upper(contributor)])
	wanted := [{"guid": contributor, "name": "Contributor", "permissions": [{"actions": ["*"]}]}]
	roles.named(id, {}) == wanted with data.facts as catalogue
	roles.named(id, snapshot([definition("/other", {})])) == wanted with data.facts as catalogue
}

test_role_that_acts_elsewhere_grants_nothing if {
	roles.named("/E1", {}) == [{"guid": "e1", "name": "Elsewhere", "permissions": []}] with data.facts as catalogue
}

test_role_that_nobody_knows if {
	every id in ["/e12", "e", "", null, 7] {
		roles.named(id, {}) == [] with data.facts as catalogue
		roles.named(id, snapshot([definition("/e1", {}), definition("/", {})])) == [] with data.facts as catalogue
	}
}

test_nobody_defines_a_built_in_role if {
	own := [definition(concat("/", ["", contributor]), {"roleName": " Mine ", "permissions": []})]
	wanted := [{"guid": contributor, "name": "Contributor", "permissions": [{"actions": ["*"]}]}]
	roles.named(contributor, snapshot(own)) == wanted with data.facts as catalogue
}

test_definitions_of_the_snapshot if {
	own := [definition("/Mine", {"roleName": " Mine ", "permissions": []})]
	wanted := [{"guid": "mine", "name": "Mine", "permissions": []}]
	roles.named("mine", snapshot(own)) == wanted with data.facts as catalogue
}

test_definitions_of_one_role_all_count if {
	two := [definition("/a/R", {"roleName": "A"}), definition("/b/r", {"roleName": "B"}), definition("/b/r2", {})]
	[role.name | some role in roles.named("/c/R", snapshot(two))] == ["A", "B"]
}

test_what_a_definition_does_not_state if {
	every properties in [{}, null, {"roleName": ""}, {"roleName": " "}, {"roleName": 7}] {
		roles.named("r", snapshot([definition("/R", properties)])) == [{"guid": "r", "name": "r", "permissions": null}]
	}
}

test_sound_permissions if {
	every permissions in [[], [{}], [{"actions": ["*"]}, {"notActions": null}]] {
		roles.is_sound({"permissions": permissions})
	}
	every permissions in [null, {}, "*", [null], [{"actions": ["*"]}, {"actions": "*"}]] {
		not roles.is_sound({"permissions": permissions})
	}
	not roles.is_sound({})
}

test_listed_by_name_guid_or_id if {
	names := [contributor, " AzureML Compute Operator "]
	every entry in [
		"azureml compute operator ",
		upper(contributor),
		concat("/", ["/subscriptions/s/providers/x/roleDefinitions", contributor]),
	] {
		roles.is_listed(names, ["Owner", entry])
	}
	every entries in [[], ["AzureML Compute"], [substring(contributor, 0, 35)], ["", null, 7]] {
		not roles.is_listed(names, entries)
	}
	not roles.is_listed([], ["Owner"])
	not roles.is_listed(["", null], ["", null])
}

test_condition_of_an_assignment_leaves_open_what_it_grants if {
	role := {"permissions": [{"actions": ["a/*"]}]}
	roles.granted(assigned_at("/"), role, ["a/b"]) == [{"action": "a/b", "granted": true}]
	roles.granted({}, role, ["a/b"]) == [{"action": "a/b", "granted": true}]
	roles.granted({"properties": {"condition": "x"}}, role, ["a/b"]) == [{"action": "a/b", "granted": null}]
	roles.granted({"properties": {"condition": "x"}}, role, ["b/c"]) == [{"action": "b/c", "granted": false}]
	roles.granted(assigned_at("/"), {"permissions": null}, ["a/b"]) == [{"action": "a/b", "granted": null}]
}

test_scope_that_is_stated if {
	roles.scope(assigned_at(" /Subscriptions/S/ ")) == ["subscriptions", "s"]
	roles.scope(assigned_at("/")) == []
	every scope in ["subscriptions/s", "/subscriptions//s", 7, {}, false] {
		not roles.scope(assigned_at(scope))
	}
}

test_scope_from_the_id_of_the_assignment if {
	place := "/providers/Microsoft.Authorization/roleAssignments/a"
	every properties in [{}, null, {"scope": null}, {"scope": " "}] {
		id := concat("", ["/subscriptions/S", place])
		roles.scope({"id": id, "properties": properties}) == ["subscriptions", "s"]
	}
	roles.scope({"id": place}) == []
	every id in ["/providers/Microsoft.Authorization/roleAssignments", "/a/b/c/d", "/", "a", null] {
		not roles.scope({"id": id})
	}
	not roles.scope({})
}

holding := {
	"by_type": {roles.workspace_type: [{"id": workspace_id}]},
	"by_scope": {path: {roles.workspace_type: [lower(workspace_id)]} |
		some path in ["/subscriptions/s", "/subscriptions/s/resourcegroups/rg", lower(workspace_id)]
	},
}

test_reach_is_by_the_workspaces_of_the_snapshot if {
	every scope in ["/", "/SUBSCRIPTIONS/S", "/subscriptions/s/resourceGroups/RG/", workspace_id] {
		roles.reaches_workspace(assigned_at(scope), holding)
	}
	every scope in [
		"/subscriptions/s2",
		"/subscriptions/s/resourceGroups/rg-2",
		concat("", [workspace_id, "2"]),
		concat("", [workspace_id, "/computes/c"]),
		"subscriptions/s",
	] {
		not roles.reaches_workspace(assigned_at(scope), holding)
	}
}

test_scope_that_holds_other_types_only_is_not_reached if {
	storage := {"by_type": holding.by_type, "by_scope": {"/subscriptions/s": {"microsoft.storage/accounts": ["/a"]}}}
	not roles.reaches_workspace(assigned_at("/subscriptions/s"), storage)
}

test_management_groups_are_above_every_workspace if {
	every snapshot in [holding, {"by_type": {}, "by_scope": {}}] {
		roles.reaches_workspace(assigned_at("/providers/Microsoft.Management/managementGroups/m"), snapshot)
		not roles.reaches_workspace(assigned_at("/providers/Microsoft.Management/other/m"), snapshot)
	}
}

test_reach_without_any_workspace_is_by_what_can_hold_one if {
	every snapshot in [
		{"by_type": {}, "by_scope": {}},
		{"by_type": {roles.workspace_type: []}, "by_scope": {}},
	] {
		every scope in ["/", "/subscriptions/x", "/subscriptions/x/resourceGroups/y", workspace_id] {
			roles.reaches_workspace(assigned_at(scope), snapshot)
		}
		every scope in [
			"/subscriptions",
			"/tenants/x",
			"/subscriptions/x/resourceGroups",
			"/subscriptions/x/other/y",
			"/subscriptions/x/resourceGroups/y/z",
			"/subscriptions/x/resourceGroups/y/providers/Microsoft.Other/workspaces/w",
			"/subscriptions/x/resourceGroups/y/providers/Microsoft.MachineLearningServices/registries/w",
			concat("", [workspace_id, "/computes/c"]),
		] {
			not roles.reaches_workspace(assigned_at(scope), snapshot)
		}
	}
}
