package operations.attached_target_test

import data.operations.attached_target

compute := {
	"id": "/subscriptions/s/resourceGroups/rg/providers/Microsoft.MachineLearningServices/workspaces/ws/computes/vm",
	"type": "Microsoft.MachineLearningServices/workspaces/computes",
	"properties": {"computeType": "VirtualMachine", "resourceId": "/subscriptions/s/resourceGroups/rg/providers/x/y/vm"},
}

snapshot(incomplete) := {"by_scope": {"/subscriptions/s": {}}, "by_id": {}, "incomplete": incomplete}

# A snapshot that says that it is incomplete proves no absence; no `cases.yaml` can say so.
test_an_incomplete_snapshot_proves_no_absence if {
	whole := {"resource": compute, "snapshot": snapshot([])}
	count(attached_target.deny) == 1 with input as whole
	count(attached_target.unknown) == 0 with input as whole
	partial := {"resource": compute, "snapshot": snapshot(["virtual machines: forbidden"])}
	count(attached_target.deny) == 0 with input as partial
	count(attached_target.unknown) == 1 with input as partial
}
