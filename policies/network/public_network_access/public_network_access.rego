# METADATA
# scope: package
# title: Public network access of the workspace is disabled
# description: >-
#   A workspace that answers on its public endpoint can be reached from anywhere with a stolen token. Azure's default is
#   Enabled, so a missing setting fails. A project has no setting of its own: its hub is evaluated, and where that is not
#   in the snapshot, the project is unknown.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-configure-private-link]
# custom:
#   id: AML-NET-001
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Disable it: `az ml workspace update --name <workspace> --resource-group <group> --public-network-access
#       Disabled`, after a private endpoint reaches the workspace.
#     patch: [{op: add, path: /properties/publicNetworkAccess, value: Disabled}]
#   source: NET-01
#   monotone_in: {/properties/publicNetworkAccess: [Enabled, Disabled]}
#   since: 0.1.0
package network.public_network_access

import data.lib.networks

applies if not networks.is_project(input.resource)

applies if not has_hub

deny contains {
	"msg": "public network access is not disabled",
	"path": "/properties/publicNetworkAccess",
	"actual": object.get(input.resource, ["properties", "publicNetworkAccess"], null),
	"expected": "Disabled",
} if {
	not networks.is_project(input.resource)
	networks.public_access(input.resource) != "disabled"
}

unknown contains {"msg": "the hub of the project is not in the snapshot", "path": "/properties/hubResourceId"} if not has_hub

has_hub if not networks.is_project(networks.settings_holder(input.resource, input.snapshot.by_id))
