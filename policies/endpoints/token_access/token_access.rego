# METADATA
# scope: package
# title: Online endpoints take tokens, not keys
# description: >-
#   A key of an endpoint does not expire and does not identify the caller. A token expires, and a token of Microsoft
#   Entra ID also identifies the caller.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-endpoints-online-auth]
# custom:
#   id: AML-END-001
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces/onlineEndpoints]
#   remediation:
#     text: >-
#       Create the endpoint with `auth_mode: aad_token` in its YAML file; on Kubernetes, where that is not offered, with
#       `aml_token`. Change the callers to tokens before you move the traffic.
#   source: END-01
#   parameters:
#     accepted_modes:
#       type: array
#       items: {type: string, pattern: '\S'}
#       default: [AMLToken, AADToken]
#       description: the values of `authMode` that may be used; with none, no endpoint is evaluated
#   since: 0.2.0
package endpoints.token_access

import data.lib.settings
import data.lib.words

applies if count(input.parameters.accepted_modes) > 0

deny contains {
	"msg": "the authentication mode of the endpoint is not accepted",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": input.parameters.accepted_modes,
} if {
	mode := settings.word(settings.at(input.resource, place), modes)
	not mode in {words.folded(accepted) | some accepted in input.parameters.accepted_modes}
}

unknown contains {"msg": "the authentication mode is not a known value", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, place, modes)
}

unknown contains {"msg": "the authentication mode is not stated", "path": settings.pointer(place)} if {
	settings.is_unset(input.resource, place)
}

place := ["properties", "authMode"]
modes := {"key", "amltoken", "aadtoken"}
