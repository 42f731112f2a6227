# METADATA
# scope: package
# title: Registry models are of approved publishers or ids
# description: >-
#   The code and weights of a registry model run in your network with access to your data, so their publisher must be
#   one that you trust. Registry models are evaluated once `allowed_publishers` or `allowed_model_ids` is set. ARM
#   does not return the publisher of a model: it is the publisher of the registry, from the parameter `publishers` or
#   from the registry in the snapshot.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-regulate-registry-deployments]
# custom:
#   id: AML-END-005
#   severity: high
#   judges:
#     - Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments
#     - Microsoft.MachineLearningServices/workspaces/batchEndpoints/deployments
#     - Microsoft.MachineLearningServices/workspaces/serverlessEndpoints
#   remediation:
#     text: Deploy an approved model, or add the model or its publisher to the parameters of AML-END-005.
#   source: END-05
#   parameters:
#     allowed_publishers:
#       type: array
#       items: {type: string, pattern: '\S'}
#       default: []
#       description: publishers whose models may be deployed
#     allowed_model_ids:
#       type: array
#       items: {type: string, pattern: '\S'}
#       default: []
#       description: ids of models that may be deployed, or parts of them
#     publishers:
#       type: object
#       additionalProperties: {type: string, pattern: '\S'}
#       default: {}
#       description: the publisher of the models of a registry, by the name of the registry
#   since: 0.2.0
package endpoints.approved_models

import data.lib.models
import data.lib.words

applies if {
	is_configured
	models.registry(id)
}

applies if {
	is_configured
	models.unreadable(input.resource)
}

deny contains {
	"msg": "neither the publisher nor the id of the model is approved",
	"path": models.pointer(input.resource),
	"actual": id,
	"expected": {
		"publishers": input.parameters.allowed_publishers,
		"model ids": input.parameters.allowed_model_ids,
	},
} if {
	not is_listed
	not is_published_well
	is_decided
}

unknown contains {"msg": "the publisher of the registry is not known", "path": models.pointer(input.resource)} if {
	models.registry(id)
	not is_listed
	not is_decided
}

unknown contains {"msg": "the reference to the model is not text", "path": models.unreadable(input.resource)}

is_configured if count(input.parameters.allowed_publishers) + count(input.parameters.allowed_model_ids) > 0

id := models.id(input.resource)

is_listed if {
	some allowed in input.parameters.allowed_model_ids
	contains(words.folded(id), words.folded(allowed))
}

is_published_well if {
	some allowed in input.parameters.allowed_publishers
	words.folded(allowed) == publisher
}

# Whether the publisher is known, or none is approved.
is_decided if count(input.parameters.allowed_publishers) == 0

is_decided if publisher

publisher := array.concat(stated_publishers, publishers_of_registry)[0]

stated_publishers := [words.folded(stated) |
	some name, stated in input.parameters.publishers
	words.folded(name) == models.registry(id)
]

publishers_of_registry := [publisher_of |
	stated_publishers == []
	some registry in input.snapshot.by_type["microsoft.machinelearningservices/registries"]
	registry_name(registry) == models.registry(id)
	publisher_of := words.folded(registry.properties.intellectualPropertyPublisher)
]

registry_name(registry) := parts[count(parts) - 1] if parts := split(trim_suffix(lower(registry.id), "/"), "/")
