# METADATA
# scope: package
# title: The managed network isolates as far as required
# description: >-
#   A managed network that allows all outbound traffic does not keep data from leaving. Azure's default is none at all. A
#   stricter mode than the required one passes, and a project has the network of its hub, which is evaluated.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-managed-network]
# custom:
#   id: AML-NET-006
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Set the mode: `az ml workspace update --name <workspace> --resource-group <group> --managed-network
#       allow_only_approved_outbound`; its computes are deleted before and created again after.
#     patches:
#       - patch: [{op: test, path: /kind, value: Default}, {op: add, path: /properties/managedNetwork/isolationMode,
#           value: AllowOnlyApprovedOutbound}]
#         provided: [AML-NET-007, AML-NET-201]
#   source: NET-06
#   parameters:
#     required_mode:
#       type: string
#       enum: [Disabled, AllowInternetOutbound, AllowOnlyApprovedOutbound]
#       default: AllowOnlyApprovedOutbound
#       description: the least strict isolation mode that passes
#   monotone_in: {/properties/managedNetwork/isolationMode: [Disabled, AllowInternetOutbound, AllowOnlyApprovedOutbound]}
#   since: 0.2.0
package network.managed_network_mode

import data.lib.managed_networks
import data.lib.networks
import data.lib.settings

applies if not networks.is_project(input.resource)

deny contains {
	"msg": "the managed network isolates less than required",
	"path": settings.pointer(managed_networks.mode_place),
	"actual": settings.at(input.resource, managed_networks.mode_place),
	"expected": {"at least": input.parameters.required_mode},
} if {
	not managed_networks.unreadable_mode(input.resource)
	mode := settings.at(input.resource, managed_networks.mode_place)
	managed_networks.rank(mode) < managed_networks.rank(input.parameters.required_mode)
}

unknown contains {"msg": "the isolation mode of the managed network cannot be read", "path": pointer} if {
	pointer := managed_networks.unreadable_mode(input.resource)
}
