# METADATA
# scope: package
# title: FPGA inference runs only on AKS
# description: >-
#   In the documents' table of compute targets for inference the column "FPGA support" is yes for Azure Kubernetes
#   Service alone, and no other document names a target for FPGAs: all work with one is evaluated.
# related_resources:
#   - ref: https://learn.microsoft.com/azure/machine-learning/concept-compute-target
# custom:
#   id: AML-INF-109
#   severity: high
#   judges:
#     - type: workload
#       where:
#         /accelerator: [fpga]
#   remediation:
#     text: >-
#       Serve the model from an AKS cluster whose nodes have an FPGA, or work without one: choose a VM size of another
#       series for the deployment or the cluster.
#     patches:
#       - {patch: [{op: test, path: /purpose, value: realtime-inference}, {op: replace, path: /target, value: aks}],
#         provided: [AML-INF-110]}
#   source: 001 "Compute targets for inference"
#   monotone_in: {/target: [aci, aks]}
#   since: 0.1.0
package inference.fpga_target

import data.lib.words

deny contains {
	"msg": "the target does not run work with an FPGA",
	"path": "/target",
	"actual": input.resource.target,
	"expected": "aks",
} if {
	words.folded(input.resource.target) != "aks"
}
