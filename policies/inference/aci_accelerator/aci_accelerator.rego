# METADATA
# scope: package
# title: ACI serves CPU-only work
# description: >-
#   "Use for low-scale CPU-based workloads that require less than 48 GB of RAM", say the documents of Azure Container
#   Instances; their columns for GPU and FPGA support are empty.
# related_resources:
#   - ref: https://learn.microsoft.com/azure/machine-learning/concept-compute-target
# custom:
#   id: AML-INF-105
#   severity: high
#   judges:
#     - type: workload
#       where:
#         /target: [aci]
#   remediation:
#     text: >-
#       Take `gpu` and `fpga` out of the service's resource requirements and serve the model on CPU, or deploy it to AKS.
#     patches:
#       - {patch: [{op: replace, path: /accelerator, value: none}]}
#   source: 001 "Compute targets for inference"
#   monotone_in: {/accelerator: [fpga, gpu, none]}
#   since: 0.1.0
package inference.aci_accelerator

import data.lib.words

deny contains {
	"msg": "a service on Azure Container Instances needs an accelerator",
	"path": "/accelerator",
	"actual": input.resource.accelerator,
	"expected": "none",
} if {
	words.folded(input.resource.accelerator) != "none"
}
