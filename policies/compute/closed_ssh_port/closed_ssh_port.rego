# METADATA
# scope: package
# title: The cluster's SSH port is closed to the public
# description: >-
#   An open SSH port lets anyone on the internet try to log in to the nodes of a cluster. Where the setting is absent or
#   NotSpecified, Azure closes the port of a cluster in a subnet or without public addresses, and opens it otherwise; what
#   a managed network does is not documented.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-create-attach-compute-cluster]
# custom:
#   id: AML-CMP-004
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [AmlCompute]}
#   remediation:
#     text: Set `remoteLoginPortPublicAccess` to Disabled (`ssh_public_access_enabled` false in the cluster's YAML).
#     patch: [{op: add, path: /properties/properties/remoteLoginPortPublicAccess, value: Disabled}]
#   source: CMP-04
#   since: 0.2.0
package compute.closed_ssh_port

import data.lib.networks
import data.lib.settings

deny contains {
	"msg": "the SSH port is open to the public",
	"path": settings.pointer(port_place),
	"actual": settings.at(input.resource, port_place),
	"expected": "Disabled",
} if {
	access == "enabled"
}

deny contains {
	"msg": "the SSH port of a cluster outside any network is open by default",
	"path": settings.pointer(port_place),
	"actual": settings.at(input.resource, port_place),
	"expected": "Disabled",
} if {
	depends_on_network
	not unreadable_network
	has_no_managed_network
}

unknown contains {"msg": "the access to the SSH port is none of the values that Azure has", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, port_place, words)
}

unknown contains {"msg": "the network of the nodes cannot be read", "path": unreadable_network} if depends_on_network

unknown contains {
	"msg": "it is not known whether a managed network of the workspace closes the SSH port",
	"path": "workspace:/properties/managedNetwork/isolationMode",
} if {
	depends_on_network
	not has_no_managed_network
}

words := {"enabled", "disabled", "notspecified"}

access := "notspecified" if {
	settings.is_unset(input.resource, port_place)
} else := settings.word(settings.at(input.resource, port_place), words)

# The setting leaves it to Azure, and neither a subnet nor the lack of public addresses closes the port.
depends_on_network if {
	access == "notspecified"
	not is_closed_by_network
}

is_closed_by_network if networks.subnet(input.resource)

is_closed_by_network if settings.flag(settings.at(input.resource, address_place)) == false

unreadable_network := pointer if {
	pointer := settings.unreadable(input.resource, subnet_place, "string")
} else := settings.unreadable_flag(input.resource, address_place)

# Neither where the workspace or its hub is not in the snapshot, nor for a mode that Azure does not have.
has_no_managed_network if settings.is_unset(holder, mode_place)

has_no_managed_network if settings.word(settings.at(holder, mode_place), {"disabled"})

holder := networks.settings_holder(input.workspace, input.snapshot.by_id)

port_place := ["properties", "properties", "remoteLoginPortPublicAccess"]

subnet_place := ["properties", "properties", "subnet", "id"]

address_place := ["properties", "properties", "enableNodePublicIp"]

mode_place := ["properties", "managedNetwork", "isolationMode"]
