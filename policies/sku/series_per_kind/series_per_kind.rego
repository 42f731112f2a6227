# METADATA
# scope: package
# title: The series is supported by this kind of compute
# description: >-
#   The table of supported series has a column "Supported by". In the document it reads "Compute clusters and instance"
#   for every series; in the vendor's list of today (`facts/offered_series`) some series support only clusters. The
#   parameter `supported_by` replaces it per series where a region differs. A series that is in no table is unknown here;
#   AML-SKU-102 denies it.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-compute-target]
# custom:
#   id: AML-SKU-107
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [AmlCompute, ComputeInstance]
#   remediation:
#     text: >-
#       Recreate the compute with a size of a series that this kind of compute supports (`az ml compute list-sizes
#       --type <amlcompute or computeinstance> --location <region>`).
#   source: '001 "Supported VM series and sizes"'
#   parameters:
#     supported_by:
#       type: object
#       additionalProperties: {type: array, items: {type: string, enum: [cluster, instance]}}
#       default: {}
#       description: the kinds of compute that support a series, by its name; goes before the tables
#     extra_series:
#       type: object
#       additionalProperties:
#         type: object
#         required: [category, restricted, source]
#         properties: {category: {type: string, pattern: '\S'}, restricted: {type: boolean}, source: {type: string,
#           pattern: '\S'}, supported_by: {type: array, items: {type: string, enum: [cluster, instance]}}}
#         additionalProperties: false
#       default: {}
#       description: further series by name, and which kinds of compute support each (both, unless stated)
#     vendor_series:
#       type: boolean
#       default: true
#       description: whether the series that the vendor lists today (`facts/offered_series`) count
#   since: 0.1.0
package sku.series_per_kind

import data.lib.computes
import data.lib.sizes

deny contains {
	"msg": "the series is not supported by this kind of compute",
	"path": computes.size_pointer(input.resource),
	"actual": {"series": series, "compute": kind},
	"expected": {"series": series, "compute": supporting},
} if {
	not kind in supporting
}

unknown contains {"msg": "no table states which kinds of compute support the series", "path": path} if {
	series
	not sizes.is_supported(series, input.parameters)
	path := computes.size_pointer(input.resource)
}

unknown contains {"msg": "the size is not in the catalogue, so its series is not known", "path": path} if {
	not series
	path := computes.size_pointer(input.resource)
}

kind := {"amlcompute": "cluster", "computeinstance": "instance"}[computes.kind(input.resource)]

supporting := array.concat(
	[kinds | some name, kinds in input.parameters.supported_by; lower(name) == lower(series)],
	[sizes.supported_by(series, input.parameters)],
)[0]

series := sizes.series(computes.size(input.resource))
