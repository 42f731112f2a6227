# METADATA
# scope: package
# title: Kubernetes inference compute is inside a virtual network
# description: >-
#   "Azure Container Instances and Azure Kubernetes Service can be integrated with Azure Virtual Networks, enabling you
#   to deploy machine learning models within a VNet." Every node pool needs a subnet; a compute without a subnet of its
#   own is evaluated by the pools of the managed cluster that it is attached to.
# related_resources: [https://learn.microsoft.com/azure/aks/configure-azure-cni]
# custom:
#   id: AML-NET-101
#   severity: high
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [AKS, Kubernetes]
#     - type: Microsoft.ContainerService/managedClusters
#   remediation: >-
#     Create the node pools in a subnet (`az aks nodepool add --vnet-subnet-id <subnet id>`, or
#     `aksNetworkingConfiguration.subnetId` when Azure Machine Learning creates the cluster), move the work there and
#     delete the others; the subnet of an existing pool cannot be changed.
#   source: '002 "Azure Container Instances (ACI) and Azure Kubernetes Service (AKS) Integration with VNets"'
#   since: 0.1.0
package network.kubernetes_in_subnet

import data.lib.computes
import data.lib.networks

deny contains {
	"msg": "no node pool is stated, and so no subnet",
	"path": "/properties/agentPoolProfiles",
	"actual": object.get(input.resource, ["properties", "agentPoolProfiles"], null),
	"expected": "node pools with a subnet",
} if {
	computes.is_cluster(input.resource)
	count(computes.pools(input.resource)) == 0
}

deny contains {
	"msg": "the node pool is in no subnet",
	"path": concat("/", ["/properties/agentPoolProfiles", format_int(index, 10), "vnetSubnetID"]),
	"actual": object.get(computes.pools(input.resource)[index], "vnetSubnetID", null),
	"expected": "the id of a subnet",
} if {
	computes.is_cluster(input.resource)
	some index in networks.pools_outside(input.resource)
}

deny contains {
	"msg": "the compute and the cluster behind it state no subnet",
	"path": "/properties/resourceId",
	"actual": object.get(input.resource, ["properties", "resourceId"], null),
	"expected": "node pools with a subnet",
} if {
	placement == "outside"
}

unknown contains {
	"msg": "the cluster is not in the snapshot, or is one of Azure Arc, whose network Azure does not know",
	"path": "/properties/resourceId",
} if {
	placement == "unknown"
}

placement := networks.placement(input.resource, input.snapshot.by_id)
