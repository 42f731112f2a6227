# METADATA
# scope: package
# title: An approved private endpoint reaches the workspace
# description: >-
#   Without a private endpoint, the traffic to a workspace takes the public endpoint. Only an approved connection carries
#   traffic. A project is reached through its hub, which is evaluated.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-configure-private-link]
# custom:
#   id: AML-NET-003
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Create a private endpoint (`az network private-endpoint create --group-id amlworkspace
#       --private-connection-resource-id <workspace id> ...`) and approve its connection.
#   source: NET-03
#   since: 0.2.0
package network.approved_private_endpoint

import data.lib.networks
import data.lib.private_endpoints
import data.lib.settings

applies if not networks.is_project(input.resource)

deny contains {
	"msg": "no private endpoint connection is approved",
	"path": settings.pointer(private_endpoints.place),
	"actual": {"connections": count(entries)},
	"expected": "a connection with the status Approved",
} if {
	not has_approved
	count(unreadable) == 0
}

unknown contains {"msg": "whether a private endpoint connection is approved cannot be read", "path": pointer} if {
	not has_approved
	some pointer in unreadable
}

has_approved if {
	some entry in private_endpoints.listed(input.resource)
	private_endpoints.is_approved(entry.connection)
}

has_approved if {
	some entry in private_endpoints.children(input.resource, input.snapshot)
	private_endpoints.is_approved(entry.connection)
}

unreadable := private_endpoints.unreadable(input.resource, entries)

entries := array.concat(
	private_endpoints.listed(input.resource),
	private_endpoints.children(input.resource, input.snapshot),
)
