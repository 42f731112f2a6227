# METADATA
# scope: package
# title: Approved private endpoints are of approved subscriptions
# description: >-
#   Whoever has an approved private endpoint reaches the workspace from their own network, past the public endpoint. The
#   subscription of the workspace and those of `allowed_subscriptions` are approved.
# related_resources: [https://learn.microsoft.com/azure/private-link/manage-private-endpoint]
# custom:
#   id: AML-NET-004
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Reject the connection (`az network private-endpoint-connection reject --id <connection id>`), or list its
#       subscription in `allowed_subscriptions`.
#   source: NET-04
#   parameters:
#     allowed_subscriptions:
#       type: array
#       items: {type: string, pattern: '\S'}
#       default: []
#       description: ids (GUIDs) of subscriptions that are approved, in addition to the subscription of the workspace
#   since: 0.2.0
package network.private_endpoint_origin

import data.lib.ids
import data.lib.networks
import data.lib.private_endpoints
import data.lib.settings
import data.lib.words

applies if {
	not networks.is_project(input.resource)
	count(approved) > 0
}

applies if {
	not networks.is_project(input.resource)
	count(unreadable) > 0
}

deny contains {
	"msg": "an approved private endpoint is not known to be of an approved subscription",
	"path": place_of(entry),
	"actual": settings.at(entry.connection, endpoint_id),
	"expected": {"subscription of": allowed},
} if {
	some entry in approved
	not doubt(entry)
	not is_allowed(entry)
}

unknown contains {"msg": "whether a private endpoint connection is approved cannot be read", "path": pointer} if {
	some pointer in unreadable
}

unknown contains {"msg": doubt(entry), "path": place_of(entry)} if some entry in approved

doubt(entry) := "the id of an approved private endpoint cannot be read" if {
	settings.unreadable(entry.connection, endpoint_id, "string")
} else := "the subscription of the workspace or of the private endpoint is still open" if {
	not is_allowed(entry)
	is_open(entry)
}

is_allowed(entry) if subscription_of(entry) in allowed

is_open(entry) if {
	some subscription in [own, subscription_of(entry)]
	startswith(subscription, "{")
	subscription_of(entry)
}

subscription_of(entry) := ids.subscription(settings.at(entry.connection, endpoint_id))

own := ids.subscription(input.resource.id)

allowed := {own} | {words.folded(entry) | some entry in input.parameters.allowed_subscriptions}

# The finding is about the workspace, so a connection that is a resource of its own has the path of the list.
place_of(entry) := settings.pointer(private_endpoints.place) if {
	entry.place == private_endpoints.place
} else := settings.pointer(array.concat(entry.place, endpoint_id))

endpoint_id := ["properties", "privateEndpoint", "id"]

approved := [entry |
	some entry in entries
	private_endpoints.is_approved(entry.connection)
]

unreadable := private_endpoints.unreadable(input.resource, entries)

entries := array.concat(
	private_endpoints.listed(input.resource),
	private_endpoints.children(input.resource, input.snapshot),
)
