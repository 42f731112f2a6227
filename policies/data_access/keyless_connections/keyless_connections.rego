# METADATA
# scope: package
# title: Connections keep no key
# description: >-
#   A key that a connection keeps opens the service to whoever may use the connection, and works until it is
#   replaced. A connection can use Microsoft Entra ID in its place.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-connection]
# custom:
#   id: AML-DAT-201
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces/connections]
#   remediation: >-
#     Create the connection again with `authType` AAD or ManagedIdentity, and grant the identity its role on the service.
#   source: DAT-201
#   parameters:
#     accepted_auth_types:
#       type: array
#       items: {type: string, pattern: '\S'}
#       default: []
#       description: kinds of authentication with a key that pass, such as ApiKey
#   since: 0.2.0
package data_access.keyless_connections

import data.lib.connections
import data.lib.settings
import data.lib.words

deny contains {
	"msg": "the connection keeps a key",
	"path": settings.pointer(connections.place),
	"actual": settings.at(input.resource, connections.place),
	"expected": "Microsoft Entra ID or a managed identity",
} if {
	settings.word(settings.at(input.resource, connections.place), connections.keyed - accepted)
}

unknown contains {"msg": "how the connection authenticates is not stated", "path": settings.pointer(connections.place)} if {
	settings.is_unset(input.resource, connections.place)
}

unknown contains {"msg": "how the connection authenticates cannot be read", "path": pointer} if {
	known := (connections.keyed | connections.keyless) | accepted
	pointer := settings.unreadable_word(input.resource, connections.place, known)
}

accepted := {words.folded(entry) | some entry in input.parameters.accepted_auth_types}
