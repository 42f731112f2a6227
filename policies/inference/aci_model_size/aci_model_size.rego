# METADATA
# scope: package
# title: ACI serves models under 1 GB
# description: >-
#   "Container instances are suitable only for small models less than 1 GB in size." The size of a model is no part of
#   the Azure resource: it is declared as `model.sizeGiB` of the workload.
# related_resources:
#   - ref: https://learn.microsoft.com/azure/machine-learning/concept-compute-target
# custom:
#   id: AML-INF-107
#   severity: medium
#   judges:
#     - type: workload
#       where:
#         /target: [aci]
#   remediation:
#     text: >-
#       Serve the model from AKS (a single-node cluster in development and test) or from a managed online endpoint. Where
#       the size is not known, declare a workload with the service as `sourceId` and its `model: {sizeGiB: ...}`.
#     patches:
#       - {patch: [{op: test, path: /purpose, value: realtime-inference}, {op: replace, path: /target, value: aks}],
#         provided: [AML-INF-110]}
#   source: 001 "Compute targets for inference"
#   parameters:
#     require_model_size:
#       type: boolean
#       default: false
#       description: whether a model of unknown size fails
#   monotone_in: {/model/sizeGiB: lower, "parameter:require_model_size": [false, true]}
#   since: 0.1.0
package inference.aci_model_size

deny contains {
	"msg": "a model of 1 GB or more is served from Azure Container Instances",
	"path": "/model/sizeGiB",
	"actual": size,
	"expected": "less than 1",
} if {
	size >= 1
}

deny contains {
	"msg": "the size of the model must be stated",
	"path": "/model/sizeGiB",
	"actual": null,
	"expected": "a size in GiB",
} if {
	input.parameters.require_model_size == true
	size == null
}

unknown contains {"msg": "nothing states the size of the model", "path": "/model/sizeGiB"} if size == null

# A number that is not negative, or null.
size := input.resource.model.sizeGiB
