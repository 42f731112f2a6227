# METADATA
# scope: package
# title: An ACI service needs less than 48 GB of memory
# description: >-
#   Of Azure Container Instances: "Use for low-scale CPU-based workloads that require less than 48 GB of RAM." All
#   containers of a group count together. Work that is only declared requests nothing: it needs what its model needs.
# related_resources:
#   - ref: https://learn.microsoft.com/azure/machine-learning/concept-compute-target
# custom:
#   id: AML-INF-106
#   severity: medium
#   judges:
#     - {type: workload, where: {/target: [aci]}}
#     - type: Microsoft.ContainerInstance/containerGroups
#   remediation:
#     text: >-
#       Request less memory (`--memory` of `az container create`, `memoryInGB` of the service's container requirements),
#       or serve the model from AKS or a managed online endpoint.
#     patches:
#       - {patch: [{op: replace, path: /properties/containerResourceRequirements/memoryInGB, value: 16}],
#         answers: [/memoryGiB], of: Microsoft.MachineLearningServices/workspaces/services}
#   source: 001 "Compute targets for inference"
#   monotone_in: {/model/memoryGiB: lower, /properties/containers/*/properties/resources/requests/memoryInGB: lower}
#   since: 0.1.0
package inference.aci_memory

import data.lib.numbers

deny contains {
	"msg": "a service on Azure Container Instances needs 48 GB of memory or more",
	"path": path,
	"actual": amounts,
	"expected": "less than 48 in all",
} if {
	is_reached
}

unknown contains {"msg": "it is not stated how much memory is requested", "path": path} if not is_settled

is_reached if max(amounts) >= limit

# Sums of millionths are exact, unlike those of fractions in floating point.
is_reached if {
	count(amounts) > 1
	sum([round(amount * 1000000) | some amount in amounts; amount < limit]) >= limit * 1000000
}

is_settled if {
	count(amounts) > 0
	count(amounts) == count(requests)
	is_request
}

# The need of the model alone does not show what an Azure resource requests.
is_request if path != "/model/memoryGiB"

is_request if input.resource.sourceId != input.resource.id

limit := 48
amounts := [numbers.amount(request) | some request in requests]

path := "/properties/containers" if input.resource.type != "workload"

else := "/memoryGiB" if input.resource.memoryGiB != null

else := "/model/memoryGiB"

requests := [array.concat(stated, [null])[0] |
	is_array(input.resource.properties.containers)
	some box in input.resource.properties.containers
	stated := [value | some key, value in box.properties.resources.requests; lower(key) == "memoryingb"]
] if path == "/properties/containers"

else := [input.resource.memoryGiB] if path == "/memoryGiB"

else := [input.resource.model.memoryGiB]
