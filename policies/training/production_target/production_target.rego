# METADATA
# scope: package
# title: Production training runs neither on a compute instance nor on a local machine
# description: >-
#   "When moving to production, you want the compute target to be ready to handle large volumes of data. [...] When
#   training models with scripts, you want an on-demand compute target." A compute instance and a local machine are for
#   experiments: one node that does not scale. A missing stage counts as production; experimentation is not evaluated.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-compute-target#training-compute-targets]
# custom:
#   id: AML-TRN-105
#   severity: medium
#   judges:
#     - {type: workload, where: {/purpose: [training]}}
#   remediation:
#     text: >-
#       Run the job on a compute cluster or on serverless compute (`compute:` of the job, or of the step); if it is no
#       production work, tag it `environment` with its stage, or declare its purpose as experimentation.
#     patches:
#       - {patch: [{op: replace, path: /target, value: compute-cluster}], provided: [AML-ISO-102, AML-TRN-107]}
#   source: 000 "Choose a compute target for production"; 003 (paragraph on compute targets); 004 "Choose a compute target for production"
#   since: 0.1.0
package training.production_target

import data.lib.targets
import data.lib.words

applies if stage.name == "production"

deny contains {
	"msg": "production training runs on a target for experiments",
	"path": "/target",
	"actual": object.union(targets.shown(run), {"stage": stage.name, "because": stage.reason}),
	"expected": "an on-demand target, such as a compute cluster, or another stage",
} if {
	some run in input.resource.runs
	run.target in {"compute-instance", "local"}
}

unknown contains {"msg": run.reason, "path": "/target"} if {
	some run in input.resource.runs
	run.target == null
}

stage := words.stage(input.resource, input.workspace)
