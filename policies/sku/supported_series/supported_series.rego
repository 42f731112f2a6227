# METADATA
# scope: package
# title: The VM series is supported by Azure Machine Learning
# description: >-
#   "Some VM series aren't supported in Azure Machine Learning." The table of the document says which are; the parameter
#   `extra_series` adds newer ones, each with its source.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-compute-target]
# custom:
#   id: AML-SKU-102
#   severity: high
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [AmlCompute, ComputeInstance]
#     - type: Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments
#   inspects: [/properties/properties/vmSize, /properties/instanceType, /properties/endpointComputeType]
#   when_absent:
#     /properties/properties/vmSize: unknown
#     /properties/instanceType: unknown
#     /properties/endpointComputeType: pass
#   remediation:
#     text: >-
#       Recreate the compute with a size of a supported series (`az ml compute list-sizes --location <region>` names
#       what the region offers), or state the series with its source in `extra_series` of AML-SKU-102.
#     patches:
#       - {patch: [{op: test, path: /properties/properties/vmSize, value: Standard_D4s_v5}, {op: replace,
#         path: /properties/properties/vmSize, value: Standard_D4s_v3}], answers: [/properties/properties/vmSize],
#         provided: [AML-SKU-105]}
#       - {patch: [{op: test, path: /properties/properties/vmSize, value: Standard_D8s_v5}, {op: replace,
#         path: /properties/properties/vmSize, value: Standard_D8s_v3}], answers: [/properties/properties/vmSize],
#         provided: [AML-SKU-105]}
#   source: '001 "Supported VM series and sizes"'
#   parameters:
#     extra_series:
#       type: object
#       additionalProperties:
#         type: object
#         required: [category, restricted, source]
#         properties: {category: {type: string, pattern: '\S'}, restricted: {type: boolean}, source: {type: string,
#           pattern: '\S'}, supported_by: {type: array, items: {type: string, enum: [cluster, instance]}}}
#         additionalProperties: false
#       default: {}
#       description: newer series by name, each with where it is said to be supported
#   insensitive_to: [/tags, /location, /properties/properties/vmPriority]
#   since: 0.1.0
package sku.supported_series

import data.lib.computes
import data.lib.sizes

applies if computes.kind(input.resource)

deny contains {
	"msg": "the series of the size is not supported",
	"path": computes.size_pointer(input.resource),
	"actual": {"size": computes.size(input.resource), "series": name},
	"expected": "a series of the table or of `extra_series`",
} if {
	name = series
	not sizes.is_supported(name, input.parameters.extra_series)
}

unknown contains {"msg": "the size is not in the catalogue, so its series is not known", "path": path} if {
	not series
	path := computes.size_pointer(input.resource)
}

series := sizes.series(computes.size(input.resource))
