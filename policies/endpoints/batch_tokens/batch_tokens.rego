# METADATA
# scope: package
# title: Batch endpoints take Entra tokens
# description: >-
#   A token of Microsoft Entra ID identifies the caller and expires; a key does neither. Batch endpoints currently
#   support nothing else, so any other value is a mistake in a template.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-authenticate-batch-endpoint]
# custom:
#   id: AML-END-202
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces/batchEndpoints]
#   remediation:
#     text: "Create the endpoint with `auth_mode: aad_token` in its YAML file."
#   source: END-202
#   monotone_in: {/properties/authMode: [Key, AMLToken, AADToken]}
#   since: 0.2.0
package endpoints.batch_tokens

import data.lib.settings

deny contains {
	"msg": "the batch endpoint does not use Entra tokens",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": "AADToken",
} if {
	settings.word(settings.at(input.resource, place), modes) != "aadtoken"
}

unknown contains {"msg": "the authentication mode is not a known value", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, place, modes)
}

unknown contains {"msg": "the authentication mode is not stated", "path": settings.pointer(place)} if {
	settings.is_unset(input.resource, place)
}

place := ["properties", "authMode"]
modes := {"key", "amltoken", "aadtoken"}
