# METADATA
# scope: package
# title: Jobs pass an approval endpoint
# description: >-
#   A job runs with access to your data, so you may want to approve it before it starts. If Azure Policy assigns an
#   approval endpoint, Azure Machine Learning calls it before each job. Evaluated once `required` is true.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-integrate-azure-policy]
# custom:
#   id: AML-JOB-005
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Assign the built-in definition 3948394e-63de-11ea-bc55-0242ac130003 at or above the workspace, for all
#       computes and with a value for `approvalEndpoint`, or describe the alternative control as `evidence` for AML-JOB-005.
#   source: JOB-05
#   parameters:
#     required: {type: boolean, default: false, description: whether an endpoint must approve jobs}
#   since: 0.2.0
package jobs.approval_endpoint

import data.lib.azure_policy
import data.lib.evidence

applies if input.parameters.required

deny contains {
	"msg": "no assignment in force sends jobs to an approval endpoint",
	"path": "/id",
	"actual": {"assignment": null, "evidence": state},
	"expected": {"an assignment in force of": wanted.definition, "with": wanted.parameters},
} if {
	state in {"none", "lapsed", "perhaps lapsed"}
	not azure_policy.is_in_force(input.resource.id, wanted, indices)
	count(doubts) == 0
	count(input.snapshot.incomplete) == 0
}

unknown contains {"msg": "the snapshot is incomplete: an assignment may exist", "path": "/id"} if {
	some _ in input.snapshot.incomplete
	state != "in force"
	not azure_policy.is_in_force(input.resource.id, wanted, indices)
}

unknown contains {"msg": concat(" ", ["an assignment of the definition", doubt]), "path": "/id"} if {
	state != "in force"
	not azure_policy.is_in_force(input.resource.id, wanted, indices)
	some doubt in doubts
}

unknown contains {"msg": "evidence is given for a scope, and whether it covers the workspace is not known", "path": "/id"} if {
	state == "perhaps in force"
	not azure_policy.is_in_force(input.resource.id, wanted, indices)
}

state := evidence.state(input.snapshot.evidence, "AML-JOB-005", input.resource.id, input.as_of)

doubts := {doubt |
	some assignment in azure_policy.above(input.resource.id, indices)
	doubt := azure_policy.state(assignment, input.resource.id, wanted, input.snapshot.by_id)
	not doubt in {"in force", "not in force"}
}

indices := {
	"by_id": input.snapshot.by_id,
	"by_scope": input.snapshot.by_scope,
	"by_extended": input.snapshot.by_extended,
}

wanted := {
	"definition": "3948394e-63de-11ea-bc55-0242ac130003",
	"parameters": ["approvalEndpoint"],
}
