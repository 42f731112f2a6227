# METADATA
# scope: package
# title: FPGA inference runs only on AKS
# description: >-
#   In the documents' table of compute targets for inference the column "FPGA support" says yes for Azure Kubernetes
#   Service alone. The table is about inference: training with an FPGA is not judged.
# related_resources:
#   - ref: https://learn.microsoft.com/azure/machine-learning/concept-compute-target
# custom:
#   id: AML-INF-109
#   severity: high
#   judges:
#     - type: workload
#       where:
#         /purpose: [batch-inference, realtime-inference]
#         /accelerator: [fpga]
#   inspects: [/purpose, /accelerator, /target]
#   when_absent: unknown
#   remediation:
#     text: >-
#       Serve the model from an AKS cluster whose nodes have an FPGA, or without one: for a managed online or batch
#       deployment choose a VM size of another series.
#   source: 001 "Compute targets for inference"
#   since: 0.1.0
package inference.fpga_target

import data.lib.words

deny contains {
	"msg": "the target does not serve inference with an FPGA",
	"path": "/target",
	"actual": input.resource.target,
	"expected": "aks",
} if {
	words.folded(input.resource.target) != "aks"
}
