# METADATA
# scope: package
# title: Compute clusters do not serve real-time requests
# description: >-
#   A compute cluster scales to nothing between runs and queues what it is given, so a caller would wait for a node to
#   start. The documents state of compute clusters: "No support for realtime inference."
# related_resources:
#   - ref: https://learn.microsoft.com/azure/machine-learning/concept-compute-target
# custom:
#   id: AML-INF-103
#   severity: high
#   judges:
#     - type: workload
#       where:
#         /purpose: [realtime-inference]
#   remediation:
#     text: >-
#       Serve the model from a managed online endpoint (`az ml online-endpoint create`, `az ml online-deployment create`)
#       or from AKS, or turn the work into batch inference.
#     patches:
#       - {patch: [{op: replace, path: /target, value: aks}], provided: [AML-INF-110]}
#   source: 001 "Compute targets for inference"
#   monotone_in: {/target: [compute-cluster, managed-online]}
#   since: 0.1.0
package inference.cluster_realtime

import data.lib.words

deny contains {
	"msg": "a compute cluster serves real-time requests",
	"path": "/target",
	"actual": input.resource.target,
	"expected": "a target that runs continuously",
} if {
	words.folded(input.resource.target) == "compute-cluster"
}
