# METADATA
# scope: package
# title: A regulated workspace is closed to the public network and to free egress
# description: >-
#   "Azure Virtual Networks allow you to create isolated networks within Azure, providing a secure environment for your
#   compute resources." Egress is closed by a managed network that allows only approved outbound traffic, or by a subnet
#   under every compute that can have one. The settings of a project are its hub's.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-managed-network]
# custom:
#   id: AML-NET-105
#   severity: critical
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: >-
#       Close both ways: `az ml workspace update --name <workspace> --public-network-access Disabled --managed-network
#       allow_only_approved_outbound` (delete its computes and managed endpoints before, create them again after), then
#       `az ml workspace provision-network --name <workspace>`; or put every compute into a subnet.
#     patches:
#       - {patch: [{op: add, path: /properties/publicNetworkAccess, value: Disabled}],
#         answers: [/properties/publicNetworkAccess]}
#       - {patch: [{op: add, path: /properties/managedNetwork/isolationMode, value: AllowOnlyApprovedOutbound}],
#         answers: [/properties/managedNetwork/isolationMode], provided: [AML-NET-007, AML-NET-201]}
#   source: '002 "Virtual Networks (VNets)"'
#   parameters:
#     regulated_classifications: {type: array, items: {type: string, pattern: '\S'}, default: [regulated, restricted,
#       confidential], description: the values of the tag `data-classification` that make work regulated}
#   monotone_in: {/properties/publicNetworkAccess: [Enabled, Disabled], /properties/managedNetwork/isolationMode:
#     [Disabled, AllowInternetOutbound, AllowOnlyApprovedOutbound]}
#   since: 0.1.0
package network.closed_workspace

import data.lib.networks
import data.lib.words

applies if standing.decided != false

deny contains {
	"msg": "a regulated workspace is open to the public network",
	"path": networks.settings_pointer(input.resource, "/properties/publicNetworkAccess"),
	"actual": {"publicNetworkAccess": object.get(settings, ["properties", "publicNetworkAccess"], null), "because": standing.reason},
	"expected": "Disabled",
} if {
	standing.decided == true
	networks.public_access(settings) != "disabled"
}

deny contains {
	"msg": "a regulated workspace has computes with free egress",
	"path": networks.settings_pointer(input.resource, "/properties/managedNetwork/isolationMode"),
	"actual": {"isolationMode": object.get(settings, ["properties", "managedNetwork", "isolationMode"], null), "because": standing.reason},
	"expected": "AllowOnlyApprovedOutbound, or every compute in a subnet",
} if {
	standing.decided == true
	egress == "open"
}

unknown contains {"msg": standing.reason, "path": "/properties/hbiWorkspace"} if standing.decided == null

unknown contains {"msg": "the hub of the project is not in the snapshot", "path": "/properties/hubResourceId"} if not settings

unknown contains {"msg": "what its computes sit in is not all in the snapshot", "path": "/properties/managedNetwork"} if {
	egress == "unknown"
}

egress := networks.egress(input.resource, input.snapshot)
settings := networks.settings_holder(input.resource, input.snapshot.by_id)
standing := words.regulated(input.resource, input.resource, input.parameters.regulated_classifications)
