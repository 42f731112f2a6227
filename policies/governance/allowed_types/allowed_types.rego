# METADATA
# scope: package
# title: Resource types are allowed
# description: >-
#   A type that an organization does not use or has not reviewed, such as version-1 services, is outside what its controls
#   cover. The policy is off while `allowed_types` and `denied_types` are empty.
# related_resources: [https://learn.microsoft.com/azure/governance/policy/samples/built-in-policies#general]
# custom:
#   id: AML-GOV-005
#   severity: medium
#   judges:
#     - Microsoft.MachineLearningServices/workspaces
#     - Microsoft.MachineLearningServices/registries
#     - Microsoft.MachineLearningServices/workspaces/computes
#     - Microsoft.MachineLearningServices/workspaces/onlineEndpoints
#     - Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments
#     - Microsoft.MachineLearningServices/workspaces/batchEndpoints
#     - Microsoft.MachineLearningServices/workspaces/batchEndpoints/deployments
#     - Microsoft.MachineLearningServices/workspaces/serverlessEndpoints
#     - Microsoft.MachineLearningServices/workspaces/jobs
#     - Microsoft.MachineLearningServices/workspaces/schedules
#     - Microsoft.MachineLearningServices/workspaces/datastores
#     - Microsoft.MachineLearningServices/workspaces/connections
#     - Microsoft.MachineLearningServices/workspaces/services
#   remediation: Remove the resource, or add its type to `allowed_types` or remove it from `denied_types`.
#   source: GOV-05
#   parameters:
#     allowed_types: {type: array, items: {type: string, pattern: '\S'}, default: [], description: "the ARM types that are
#       allowed, compared without case; empty: all"}
#     denied_types: {type: array, items: {type: string, pattern: '\S'}, default: [], description: "the ARM types that are
#       not allowed, compared without case"}
#   since: 0.2.0
package governance.allowed_types

import data.lib.words

applies if count(input.parameters.allowed_types) + count(input.parameters.denied_types) > 0

deny contains {
	"msg": "the type is denied",
	"path": "/type",
	"actual": input.resource.type,
	"expected": "a type outside `denied_types`",
} if {
	words.folded(input.resource.type) in {words.folded(entry) | some entry in input.parameters.denied_types}
}

deny contains {
	"msg": "the type is not allowed",
	"path": "/type",
	"actual": input.resource.type,
	"expected": "a type of `allowed_types`",
} if {
	count(input.parameters.allowed_types) > 0
	not words.folded(input.resource.type) in {words.folded(entry) | some entry in input.parameters.allowed_types}
}
