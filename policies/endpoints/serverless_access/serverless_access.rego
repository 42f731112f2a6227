# METADATA
# scope: package
# title: Serverless endpoints accept no key
# description: >-
#   Anyone with the key of a serverless endpoint can use the model at your cost, and logs do not identify the caller.
#   The mode `KeyAndAAD` accepts the key, too.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-deploy-models-serverless]
# custom:
#   id: AML-END-002
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces/serverlessEndpoints]
#   remediation:
#     text: Create the endpoint again with the authentication mode AAD, and delete the one with a key.
#   source: END-02
#   monotone_in: {/properties/authMode: [Key, KeyAndAAD, AAD]}
#   since: 0.2.0
package endpoints.serverless_access

import data.lib.settings

deny contains {
	"msg": "the serverless endpoint accepts a key",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": "AAD",
} if {
	settings.word(settings.at(input.resource, place), modes) != "aad"
}

unknown contains {"msg": "the authentication mode is not a known value", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, place, modes)
}

unknown contains {"msg": "the authentication mode is not stated", "path": settings.pointer(place)} if {
	settings.is_unset(input.resource, place)
}

place := ["properties", "authMode"]
modes := {"key", "keyandaad", "aad"}
