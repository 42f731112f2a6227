# METADATA
# scope: package
# title: Production data is not trained on a local machine
# description: >-
#   "At this stage, use your local environment", say the documents of "experimenting on a small amount of data". What is
#   trained for staging or production, or is regulated, has left that stage: its data must not leave the workspace for
#   a person's machine. A missing stage counts as production.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-compute-target]
# custom:
#   id: AML-TRN-108
#   severity: high
#   judges:
#     - {type: workload, where: {/purpose: [training]}}
#   remediation:
#     text: >-
#       Run the job on a compute cluster of the workspace (`compute: azureml:<cluster>` of the job, or of the step).
#     patches:
#       - {patch: [{op: replace, path: /target, value: compute-cluster}], provided: [AML-ISO-102, AML-TRN-107]}
#   source: '001 (introduction); 000 "Choose a compute target for experimentation"; 002 "Local Compute"'
#   parameters:
#     regulated_classifications: {type: array, items: {type: string, pattern: '\S'}, default: [regulated, restricted,
#       confidential], description: the values of the tag `data-classification` that make work regulated}
#   since: 0.1.0
package training.local_training

import data.lib.targets
import data.lib.words

applies if count(runs) > 0

deny contains {
	"msg": "work of staging or production is trained on a local machine",
	"path": "/target",
	"actual": object.union(targets.shown(run), {"stage": stage.name, "because": stage.reason}),
	"expected": "a target of the workspace, or a stage of dev or test",
} if {
	some run in runs
	run.target == "local"
	not stage.name in {"dev", "test"}
}

deny contains {
	"msg": "regulated work is trained on a local machine",
	"path": "/target",
	"actual": object.union(targets.shown(run), {"because": standing.reason}),
	"expected": "a target of the workspace",
} if {
	some run in runs
	run.target == "local"
	standing.decided == true
}

unknown contains {"msg": standing.reason, "path": "workspace:/properties/hbiWorkspace"} if standing.decided == null

unknown contains {"msg": run.reason, "path": "/target"} if {
	some run in runs
	run.target == null
}

runs := [run | some run in input.resource.runs; run.target in {"local", null}]

stage := words.stage(input.resource, input.workspace)

standing := words.regulated(input.resource, input.workspace, input.parameters.regulated_classifications)
