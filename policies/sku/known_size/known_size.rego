# METADATA
# scope: package
# title: The VM size is known
# description: >-
#   "Azure Machine Learning doesn't support all VM sizes that Azure Compute supports." Of a size that is not in the
#   catalogue nothing can be said: neither its series, nor its memory, nor whether its hosts are shared. It is reported
#   as such and never passed silently.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-compute-target]
# custom:
#   id: AML-SKU-103
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [AmlCompute, ComputeInstance]
#     - type: Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments
#   remediation:
#     text: >-
#       Correct the name of the size (`az ml compute list-sizes --location <region>` prints the names), or add the size
#       to the catalogue under `facts/vm_sizes` with its source.
#   source: '001 "Supported VM series and sizes"'
#   since: 0.1.0
package sku.known_size

import data.lib.computes
import data.lib.sizes

applies if computes.kind(input.resource)

deny contains {
	"msg": "the size is not in the catalogue",
	"path": computes.size_pointer(input.resource),
	"actual": computes.size(input.resource),
	"expected": "the name of a VM size",
} if {
	not sizes.facts_of(computes.size(input.resource))
}
