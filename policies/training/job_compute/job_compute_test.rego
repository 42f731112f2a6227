package training.job_compute_test

import data.training.job_compute

job := {
	"id": "/subscriptions/s/resourceGroups/rg/providers/Microsoft.MachineLearningServices/workspaces/ws/jobs/j",
	"type": "Microsoft.MachineLearningServices/workspaces/jobs",
	"properties": {"computeId": "gone"},
}

# A snapshot that says that it is incomplete proves no absence; no `cases.yaml` can say so.
test_an_incomplete_snapshot_proves_no_absence if {
	whole := {"resource": job, "snapshot": {"by_id": {}, "incomplete": []}}
	count(job_compute.deny) == 1 with input as whole
	count(job_compute.unknown) == 0 with input as whole
	partial := {"resource": job, "snapshot": {"by_id": {}, "incomplete": ["computes: forbidden"]}}
	count(job_compute.deny) == 0 with input as partial
	count(job_compute.unknown) == 1 with input as partial
}
