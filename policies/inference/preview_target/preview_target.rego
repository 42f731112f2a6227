# METADATA
# scope: package
# title: Preview targets do not carry production
# description: >-
#   The documents list "Azure Functions (preview)" and "To an IoT device (preview)" among the targets of deployments. A
#   preview comes without a service level agreement. A missing stage counts as production.
# related_resources:
#   - ref: https://azure.microsoft.com/support/legal/preview-supplemental-terms/
# custom:
#   id: AML-INF-115
#   severity: medium
#   judges: [workload]
#   remediation:
#     text: >-
#       Serve the model from a managed online endpoint (`az ml online-endpoint create`) or from AKS; if the work only
#       serves development or test, tag it `environment` with `dev` or `test`.
#     patches:
#       - {patch: [{op: test, path: /purpose, value: realtime-inference}, {op: replace, path: /target, value: aks}],
#         provided: [AML-INF-110]}
#       - {patch: [{op: test, path: /purpose, value: batch-inference}, {op: replace, path: /target,
#         value: compute-cluster}], provided: [AML-ISO-102, AML-INF-110, AML-TRN-107]}
#   source: 001 "Compute targets for inference"
#   monotone_in: {/target: [functions, aks]}
#   since: 0.1.0
package inference.preview_target

import data.lib.words

deny contains {
	"msg": "a target in preview carries staging or production",
	"path": "/target",
	"actual": {"target": input.resource.target, "stage": stage.name, "because": stage.reason},
	"expected": "a target that is not in preview, or a stage of dev or test",
} if {
	words.folded(input.resource.target) in {"functions", "iot-edge"}
	not stage.name in {"dev", "test"}
}

stage := words.stage(input.resource, input.workspace)
