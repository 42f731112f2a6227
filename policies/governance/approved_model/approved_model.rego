# METADATA
# scope: package
# title: A model in production was approved by a second person
# description: >-
#   The person who trains a model must not be the only one who decides that it goes to production. Entries of
#   `approvals` of the kind `model` state who requested and who approved which version. Evaluated once `required` is
#   true, and only for production; a missing stage counts as production.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-model-management-and-deployment]
# custom:
#   id: AML-GOV-201
#   severity: high
#   judges:
#     - Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments
#     - Microsoft.MachineLearningServices/workspaces/batchEndpoints/deployments
#   remediation:
#     text: >-
#       Have a person other than the requester approve this version of the model, and state that under `approvals`
#       with the kind `model`, or deploy a version that was approved.
#   source: GOV-201
#   parameters:
#     required: {type: boolean, default: false, description: whether models in production must be approved}
#   since: 0.2.0
package governance.approved_model

import data.lib.approvals
import data.lib.models
import data.lib.words

applies if {
	input.parameters.required
	stage.name == "production"
}

deny contains {
	"msg": "the model has no approval by another person",
	"path": models.pointer(input.resource),
	"actual": {
		"model": models.id(input.resource),
		"approvals": [{"id": approval.id, "lacks": lacks} | some [approval, lacks] in near],
		"stage": stage.name,
		"because": stage.reason,
	},
	"expected": "an approval of this version: granted, in force, at or above the workspace, by a second person",
} if {
	model
	every lacks in lacking {
		is_void(lacks)
	}
}

unknown contains {"msg": "whether the model has an approval by another person is not known", "path": models.pointer(input.resource)} if {
	every lacks in lacking {
		count(lacks) > 0
	}
	some lacks in lacking
	not is_void(lacks)
}

unknown contains {"msg": "the deployment names no version of a model", "path": models.pointer(input.resource)} if {
	not model
}

model := models.full_id(input.resource)

# The approvals of the model, in the order of the snapshot, and what each lacks.
near := [[approval, lacks] |
	some approval in input.snapshot.approvals
	words.folded(approval.kind) == "model"
	unplaced := _unplaced(approval.model)
	lacks := array.concat(array.concat(approvals.lacking(approval, asked), parties(approval)), unplaced)
]

lacking := [lacks | some [_, lacks] in near]

# What an approval lacks that may be of the model; undefined for an approval of another model.
_unplaced(written) := [] if {
	models.same(written, model)
} else := [approvals.unscoped] if {
	models.may_be_same(written, model)
}

parties(approval) := ["another approver than the person who asked"] if {
	words.folded(approval.requestedBy) == words.folded(approval.approvedBy)
} else := [] if {
	words.folded(approval.requestedBy)
	words.folded(approval.approvedBy)
} else := [unnamed]

unnamed := "the names of who asked and who approved"

# What lacks something that is known. The rest may count.
is_void(lacks) if {
	some lack in lacks
	not lack in {unnamed, approvals.unscoped, approvals.unplaced}
}

asked := approvals.asked(input.resource, input.workspace, input.as_of)
stage := words.stage(input.resource, input.workspace)
