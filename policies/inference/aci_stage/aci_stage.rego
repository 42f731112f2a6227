# METADATA
# scope: package
# title: ACI serves only development and test
# description: >-
#   The documents use Azure Container Instances for "testing or development", in "low-demand environments": a container
#   group neither scales nor recovers like a production service. A missing stage counts as production.
# related_resources:
#   - ref: https://learn.microsoft.com/azure/machine-learning/concept-compute-target
# custom:
#   id: AML-INF-104
#   severity: high
#   judges:
#     - type: workload
#       where:
#         /target: [aci]
#   remediation:
#     text: >-
#       Move the service to AKS or to a managed online endpoint (`az ml online-endpoint create`); if it only serves
#       development or test, tag it `environment` with `dev` or `test`.
#     patches:
#       - {patch: [{op: test, path: /purpose, value: realtime-inference}, {op: replace, path: /target, value: aks}],
#         provided: [AML-INF-110]}
#       - {patch: [{op: test, path: /purpose, value: batch-inference}, {op: replace, path: /target,
#         value: compute-cluster}], provided: [AML-ISO-102, AML-INF-110, AML-TRN-107]}
#   source: 001 "Compute targets for inference"; 002 "Azure Container Instances (ACI)"
#   since: 0.1.0
package inference.aci_stage

import data.lib.words

deny contains {
	"msg": "a service on Azure Container Instances serves staging or production",
	"path": "/target",
	"actual": {"target": input.resource.target, "stage": stage.name, "because": stage.reason},
	"expected": "another target, or a stage of dev or test",
} if {
	not stage.name in {"dev", "test"}
}

stage := words.stage(input.resource, input.workspace)
