# METADATA
# scope: package
# title: A local web service is for testing only
# description: >-
#   The documents use a local web service for "Testing/debugging": "Use for limited testing and troubleshooting." That
#   holds for scoring batches on a local machine as well. A missing stage counts as production.
# related_resources:
#   - ref: https://learn.microsoft.com/azure/machine-learning/concept-compute-target
# custom:
#   id: AML-INF-108
#   severity: high
#   judges:
#     - type: workload
#       where:
#         /target: [local]
#   remediation:
#     text: >-
#       Deploy the model to a managed online endpoint (`az ml online-deployment create` without `--local`), to AKS, or as
#       a batch deployment; if it only serves development or test, tag it `environment` with `dev` or `test`.
#     patches:
#       - {patch: [{op: test, path: /purpose, value: realtime-inference}, {op: replace, path: /target, value: aks}],
#         provided: [AML-INF-110]}
#       - {patch: [{op: test, path: /purpose, value: batch-inference}, {op: replace, path: /target,
#         value: compute-cluster}], provided: [AML-ISO-102, AML-INF-110, AML-TRN-107]}
#   source: 001 "Compute targets for inference"
#   since: 0.1.0
package inference.local_service

import data.lib.words

deny contains {
	"msg": "a local machine serves staging or production",
	"path": "/target",
	"actual": {"target": input.resource.target, "stage": stage.name, "because": stage.reason},
	"expected": "another target, or a stage of dev or test",
} if {
	words.folded(input.resource.purpose) in {"batch-inference", "realtime-inference"}
	not stage.name in {"dev", "test"}
}

stage := words.stage(input.resource, input.workspace)
