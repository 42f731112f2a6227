# METADATA
# scope: package
# title: The VM series is supported by Azure Machine Learning
# description: >-
#   "Some VM series aren't supported in Azure Machine Learning." Supported are the series of the document's table, those
#   that the vendor lists today (`facts/offered_series`, each with source and date), and those of the parameter
#   `extra_series`. A size that is not in the catalogue is unknown here; AML-SKU-103 denies it.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-compute-target]
# custom:
#   id: AML-SKU-102
#   severity: high
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [AmlCompute, ComputeInstance]
#     - type: Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments
#   remediation:
#     text: >-
#       Recreate the compute with a size of a supported series; of a retired size, move to the series that the denial
#       names. If `az ml compute list-sizes --location <region>` offers the size in your region, state its series with
#       its source in `extra_series` of AML-SKU-102.
#     patches:
#       - {patch: [{op: test, path: /properties/properties/vmSize, value: Standard_D4s_v6}, {op: replace,
#         path: /properties/properties/vmSize, value: Standard_D4s_v5}], answers: [/properties/properties/vmSize],
#         provided: [AML-SKU-105]}
#       - {patch: [{op: test, path: /properties/properties/vmSize, value: Standard_D8s_v6}, {op: replace,
#         path: /properties/properties/vmSize, value: Standard_D8s_v5}], answers: [/properties/properties/vmSize],
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
#       description: further series by name, each with its source
#     vendor_series:
#       type: boolean
#       default: true
#       description: whether the series that the vendor lists today (`facts/offered_series`) count
#   since: 0.1.0
package sku.supported_series

import data.lib.computes
import data.lib.sizes

applies if computes.kind(input.resource)

deny contains {
	"msg": "the series of the size is not supported",
	"path": computes.size_pointer(input.resource),
	"actual": {"size": computes.size(input.resource), "series": series},
	"expected": "a series of the table, of the vendor's list of today or of `extra_series`",
} if {
	is_unsupported
	not retired
}

deny contains {
	"msg": "the size is retired, and its series is not supported",
	"path": computes.size_pointer(input.resource),
	"actual": {"size": computes.size(input.resource), "series": series, "retired on": retired.date},
	"expected": {"move to": sizes.successor(retired)},
} if {
	is_unsupported
}

unknown contains {"msg": "the size is not in the catalogue, so its series is not known", "path": path} if {
	not series
	path := computes.size_pointer(input.resource)
}

is_unsupported if {
	not sizes.is_supported(series, input.parameters)
}

retired := sizes.retirement(computes.size(input.resource), input.as_of)

series := sizes.series(computes.size(input.resource))
