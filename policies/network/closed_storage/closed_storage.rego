# METADATA
# scope: package
# title: Storage of a high-impact workspace is closed to the public network
# description: >-
#   The data of a workspace is in its storage account, so a closed workspace with an open account keeps nothing in. This
#   concerns workspaces of high business impact. Firewall rules of the account leave it open to whom they list, so they do
#   not count.
# related_resources: [https://learn.microsoft.com/azure/storage/common/storage-network-security]
# custom:
#   id: AML-NET-009
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation: >-
#     Close the account: `az storage account update --name <account> --resource-group <group> --public-network-access
#     Disabled`, after private endpoints reach it.
#   source: NET-09
#   since: 0.2.0
package network.closed_storage

import data.lib.ids
import data.lib.networks
import data.lib.public_access
import data.lib.settings

applies if {
	not networks.is_project(input.resource)
	settings.flag(settings.at(input.resource, impact))
}

applies if {
	not networks.is_project(input.resource)
	settings.unreadable_flag(input.resource, impact)
}

deny contains {
	"msg": "the storage account of a workspace of high business impact is open to the public network",
	"path": settings.pointer(place),
	"actual": {
		"publicNetworkAccess": settings.at(account, public_access.place),
		"because": "`hbiWorkspace` of the workspace is true",
	},
	"expected": "Disabled or SecuredByPerimeter",
} if {
	settings.flag(settings.at(input.resource, impact))
	not public_access.is_closed(account)
	not public_access.unreadable(account)
}

unknown contains {"msg": "`hbiWorkspace` is neither true nor false", "path": pointer} if {
	pointer := settings.unreadable_flag(input.resource, impact)
}

unknown contains {"msg": "the storage account of the workspace is not in the snapshot", "path": settings.pointer(place)} if {
	not account
}

unknown contains {"msg": "the public network access of the storage account cannot be read", "path": settings.pointer(place)} if {
	public_access.unreadable(account)
}

account := ids.named(settings.at(input.resource, place), input.snapshot.by_id)

impact := ["properties", "hbiWorkspace"]

place := ["properties", "storageAccount"]
