# METADATA
# scope: package
# title: Online endpoints are closed to the public network
# description: >-
#   A public endpoint can be called from anywhere with a stolen key or token. Azure's default is Enabled, so a missing
#   setting fails. Endpoints on Kubernetes have no such setting and are not evaluated.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-secure-online-endpoint]
# custom:
#   id: AML-END-004
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces/onlineEndpoints]
#   remediation:
#     text: >-
#       Set `public_network_access: disabled` in the YAML file of the endpoint (`az ml online-endpoint update --file
#       <file>`), after a private endpoint reaches the workspace.
#     patch: [{op: add, path: /properties/publicNetworkAccess, value: Disabled}]
#   source: END-04
#   monotone_in: {/properties/publicNetworkAccess: [Enabled, Disabled]}
#   since: 0.2.0
package endpoints.closed_endpoint

import data.lib.endpoints
import data.lib.settings

applies if not is_on_kubernetes

deny contains {
	"msg": "public network access of the endpoint is not disabled",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": "Disabled",
} if {
	is_open
	endpoints.kind(input.resource)
}

is_open if settings.word(settings.at(input.resource, place), states) == "enabled"

is_open if {
	settings.is_unset(input.resource, place)
}

unknown contains {"msg": "the public network access is neither enabled nor disabled", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, place, states)
}

unknown contains {"msg": "the kind of the endpoint cannot be read", "path": "/kind"} if {
	not endpoints.kind(input.resource)
}

is_on_kubernetes if endpoints.kind(input.resource) == "kubernetes"

place := ["properties", "publicNetworkAccess"]
states := {"enabled", "disabled"}
