# METADATA
# scope: package
# title: Compute clusters and instances are in a virtual network
# description: >-
#   A node outside any virtual network is addressable from the internet and answers to no network rule. A subnet counts,
#   and so does the managed network of the workspace (a project has its hub's).
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-secure-training-vnet]
# custom:
#   id: AML-CMP-002
#   severity: high
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [AmlCompute, ComputeInstance]
#   remediation:
#     text: >-
#       Recreate the compute in a subnet (`az ml compute create --vnet-name <network> --subnet <subnet> ...`), or give
#       the workspace a managed network (`az ml workspace update --managed-network allow_only_approved_outbound`; its
#       computes are deleted before and created again after).
#     patches:
#       - {patch: [{op: test, path: "workspace:/kind", value: Default}, {op: add,
#         path: "workspace:/properties/managedNetwork/isolationMode", value: AllowOnlyApprovedOutbound}],
#         provided: [AML-NET-007, AML-NET-201]}
#   source: CMP-02
#   monotone_in: {"workspace:/properties/managedNetwork/isolationMode": [Disabled, AllowInternetOutbound,
#     AllowOnlyApprovedOutbound]}
#   since: 0.1.0
package compute.compute_in_subnet

import data.lib.networks

deny contains {
	"msg": "the compute is in no subnet and the workspace has no managed network",
	"path": "/properties/properties/subnet/id",
	"actual": object.get(input.resource, ["properties", "properties", "subnet", "id"], null),
	"expected": "the id of a subnet",
} if {
	not networks.subnet(input.resource)
	mode := networks.isolation_mode(settings)
	not mode in {"allowinternetoutbound", "allowonlyapprovedoutbound"}
}

unknown contains {
	"msg": "the workspace that holds the network settings is not in the snapshot",
	"path": "workspace:/properties/managedNetwork/isolationMode",
} if {
	not networks.subnet(input.resource)
	not settings
}

settings := networks.settings_holder(input.workspace, input.snapshot.by_id)
