# METADATA
# scope: package
# title: Models come from allowed registries
# description: >-
#   Anyone who can publish to a registry decides what code runs behind your endpoints. Models are evaluated once
#   `allowed_registries` or `restricted_models` is set. Models of the workspace itself are compared with
#   `restricted_models` only.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-regulate-registry-deployments]
# custom:
#   id: AML-END-006
#   severity: high
#   judges:
#     - Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments
#     - Microsoft.MachineLearningServices/workspaces/batchEndpoints/deployments
#     - Microsoft.MachineLearningServices/workspaces/serverlessEndpoints
#   remediation:
#     text: Deploy a model of an allowed registry, or add the registry to `allowed_registries` of AML-END-006.
#   source: END-06
#   parameters:
#     allowed_registries:
#       type: array
#       items: {type: string, pattern: '\S'}
#       default: []
#       description: the names of the registries whose models may be deployed; with none, every registry will do
#     restricted_models:
#       type: array
#       items: {type: string, pattern: '\S'}
#       default: []
#       description: ids of models that may not be deployed
#   since: 0.2.0
package endpoints.model_registries

import data.lib.models
import data.lib.words

applies if {
	is_configured
	id
}

applies if {
	is_configured
	models.unreadable(input.resource)
}

deny contains {
	"msg": "the model is restricted",
	"path": models.pointer(input.resource),
	"actual": id,
	"expected": "another model",
} if {
	words.folded(id) in {words.folded(restricted) | some restricted in input.parameters.restricted_models}
}

deny contains {
	"msg": "the registry of the model is not allowed",
	"path": models.pointer(input.resource),
	"actual": id,
	"expected": input.parameters.allowed_registries,
} if {
	count(input.parameters.allowed_registries) > 0
	registry := models.registry(id)
	not registry in {words.folded(allowed) | some allowed in input.parameters.allowed_registries}
}

unknown contains {"msg": "the reference to the model is not text", "path": models.unreadable(input.resource)}

is_configured if count(input.parameters.allowed_registries) + count(input.parameters.restricted_models) > 0

id := models.id(input.resource)
