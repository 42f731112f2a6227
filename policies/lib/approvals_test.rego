package lib.approvals_test

import data.lib.approvals

workspace := "/subscriptions/s/resourceGroups/rg/providers/Microsoft.MachineLearningServices/workspaces/ws"

asked := {
	"resource": {
		"id": concat("", [workspace, "/computes/c"]),
		"type": "Microsoft.MachineLearningServices/workspaces/Computes",
		"location": "East US",
	},
	"workspace": {"location": "westus"},
	"as_of": "2026-06-01T00:00:00Z",
}

lacking(approval, given) := approvals.lacking(approval, approvals.asked(given.resource, given.workspace, given.as_of))

good := {"id": "A", "kind": "vmSeries", "series": "M", "scope": workspace, "status": "granted"}

test_approvals_of_a_series if {
	others := [object.union(good, change) | some change in [{"kind": "quota"}, {"series": "MS"}, {"series": 7}]]
	wanted := object.union(good, {"series": " m"})
	snapshot := {"approvals": array.concat(others, [wanted]), "by_series": {"m": [count(others)]}}
	approvals.of_series(snapshot, "M") == [wanted]
	approvals.of_series(snapshot, "ND") == []
}

lacking_cases := [
	{"change": {}, "lacks": []},
	{"change": {"status": "requested"}, "lacks": ["not granted"]},
	{"change": {"status": null}, "lacks": ["not granted"]},
	{"change": {"grantedAt": null, "expiresAt": null, "region": null}, "lacks": []},
	{"change": {"grantedAt": "2026-06-01T00:00:00Z"}, "lacks": []},
	{"change": {"grantedAt": "2026-06-01T00:00:01Z"}, "lacks": ["not yet in force"]},
	{"change": {"expiresAt": "2026-06-01T00:00:01Z"}, "lacks": []},
	{"change": {"expiresAt": "2026-06-01T00:00:00Z"}, "lacks": ["expired"]},
	{"change": {"scope": "/subscriptions/S"}, "lacks": []},
	{"change": {"scope": "/subscriptions/s/resourcegroups/RG"}, "lacks": []},
	{"change": {"scope": "/"}, "lacks": ["another scope"]},
	{"change": {"scope": "/subscriptions/s/resourceGroups"}, "lacks": ["another scope"]},
	{"change": {"scope": "/subscriptions/s/resourceGroups/rg-2"}, "lacks": ["another scope"]},
	{"change": {"scope": concat("", [workspace, "/computes/c"])}, "lacks": ["another scope"]},
	{"change": {"scope": ""}, "lacks": ["another scope"]},
	{"change": {"region": "eastus"}, "lacks": []},
	{"change": {"region": " EAST us "}, "lacks": []},
	{"change": {"region": "westus"}, "lacks": ["another region"]},
	{
		"change": {"status": "denied", "scope": "/", "region": "x"},
		"lacks": ["not granted", "another scope", "another region"],
	},
]

test_what_an_approval_lacks if {
	every case in lacking_cases {
		lacking(object.union(good, case.change), asked) == case.lacks
	}
}

test_no_approval_is_for_what_lies_in_no_workspace if {
	cluster := "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ContainerService/managedClusters/k"
	outside := object.union(asked, {"resource": {"id": cluster}})
	lacking(object.union(good, {"scope": "/subscriptions/s"}), outside) == ["another scope"]
	lacking(object.union(good, {"scope": workspace}), outside) == ["another scope"]
}

test_region_of_the_nodes_goes_first if {
	nodes := {"resource": {"properties": {"computeLocation": "North Europe"}}}
	moved := object.union(asked, nodes)
	lacking(object.union(good, {"region": "northeurope"}), moved) == []
	lacking(object.union(good, {"region": "eastus"}), moved) == ["another region"]
	blank := object.union(asked, {"resource": {"properties": {"computeLocation": " "}}})
	lacking(object.union(good, {"region": "eastus"}), blank) == []
	deployment := object.union(moved, {"resource": {"type": "x/onlineEndpoints/deployments"}})
	lacking(object.union(good, {"region": "eastus"}), deployment) == []
}

test_where_a_workspace_will_lie_may_not_be_stated if {
	there := "/subscriptions/{s}/resourceGroups/{g}/providers/Microsoft.MachineLearningServices/workspaces/ws/computes/c"
	unplaced := object.union(asked, {"resource": {"id": there}})
	lacking(good, unplaced) == [approvals.unscoped]
	lacking(object.union(good, {"scope": "/"}), unplaced) == ["another scope"]
	lacking(object.union(good, {"status": "denied"}), unplaced) == ["not granted", approvals.unscoped]
	approvals.may_count([approvals.unscoped])
	approvals.may_count([approvals.unscoped, approvals.unplaced])
	not approvals.may_count([])
	not approvals.may_count(["expired", approvals.unscoped])
	approvals.open[approvals.unscoped].path == "/id"
}

test_region_of_the_workspace_stands_in if {
	nowhere := {"resource": {"id": asked.resource.id}, "workspace": null, "as_of": asked.as_of}
	western := object.union(good, {"region": "westus"})
	lacking(western, object.union(nowhere, {"workspace": asked.workspace})) == []
	lacking(western, nowhere) == [approvals.unplaced]
	lacking(good, nowhere) == []
	lacking(object.union(western, {"status": "denied"}), nowhere) == ["not granted", approvals.unplaced]
}

one_counts(listed, here) if approvals.one_counts(listed, [index | some index, _ in listed], here)

test_one_of_some_approvals_counts if {
	here := approvals.asked(asked.resource, asked.workspace, asked.as_of)
	elsewhere := [
		object.union(good, {"scope": concat("", [workspace, "2"])}),
		object.union(good, {"scope": "/subscriptions/s2"}),
		object.remove(good, ["scope"]),
	]
	denied := object.union(good, {"status": "denied"})
	every scope in [workspace, upper(workspace), concat("", [workspace, "/"]), "/subscriptions/s"] {
		one_counts(array.concat(elsewhere, [denied, object.union(good, {"scope": scope})]), here)
	}
	not one_counts(array.concat(elsewhere, [denied]), here)
	not one_counts([], here)
}
