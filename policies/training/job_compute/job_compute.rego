# METADATA
# scope: package
# title: A job's compute exists in the workspace
# description: >-
#   "The compute resources you use for your compute targets are attached to a workspace." A job, or a step of a
#   pipeline, that names a compute which is gone can never run. Bare names and `azureml:` names are those of the
#   workspace; no compute and `serverless` are serverless compute, `local` is the machine of who submits.
# related_resources: [https://learn.microsoft.com/azure/templates/microsoft.machinelearningservices/workspaces/jobs]
# custom:
#   id: AML-TRN-109
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces/jobs]
#   remediation:
#     text: >-
#       If the compute is there (`az ml compute list --workspace-name <workspace>`), add it to the snapshot; else name one
#       that is in `compute:` of the job or step, or create the one that is named, and submit the job again.
#     patches:
#       - {patch: [{op: remove, path: /properties/computeId}], answers: [/properties/computeId], provided: [inference,
#         isolation, training]}
#   source: 001 (introduction)
#   since: 0.1.0
package training.job_compute

import data.lib.jobs

deny contains {
	"msg": "the compute does not exist in the workspace",
	"path": reference.path,
	"actual": reference.written,
	"expected": "a compute of the workspace, or none",
} if {
	some reference in dangling
	not doubt(reference)
}

unknown contains {"msg": doubt(reference), "path": reference.path} if some reference in dangling

# Why what a reference names may exist all the same.
doubt(reference) := "the compute is an expression" if {
	jobs.is_expression(reference)
} else := "the snapshot is incomplete: the compute may exist" if {
	count(input.snapshot.incomplete) > 0
}

dangling := [reference |
	some reference in jobs.references(input.resource)
	not is_there(reference)
]

is_there(reference) if {
	not jobs.is_expression(reference)
	jobs.is_found(reference, input.resource, input.snapshot.by_id)
}
