# METADATA
# scope: package
# title: Regulated work runs on an isolated VM size
# description: >-
#   "Isolated VM sizes are best suited for workloads that require a high degree of isolation from other customers'
#   workloads for reasons that include meeting compliance and regulatory requirements." An AKS or Kubernetes compute is
#   evaluated by the managed cluster that holds its nodes, unless it states a size of its own.
# related_resources: [https://learn.microsoft.com/azure/virtual-machines/isolation]
# custom:
#   id: AML-ISO-101
#   severity: critical
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [AmlCompute, ComputeInstance, VirtualMachine, AKS, Kubernetes]}
#     - type: Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments
#     - type: Microsoft.ContainerService/managedClusters
#   remediation: >-
#     Recreate the compute on an isolated size (`az ml compute create --type amlcompute --size Standard_F72s_v2 ...`;
#     for a deployment `instance_type`, for AKS `az aks nodepool add --node-vm-size`), and delete the old one.
#   source: '001 "Compute isolation", 002 "Compute Isolation"'
#   parameters:
#     regulated_classifications: {type: array, items: {type: string, pattern: '\S'}, default: [regulated, restricted,
#       confidential], description: the values of the tag `data-classification` that make work regulated}
#   since: 0.1.0
package isolation.isolated_size

import data.lib.computes
import data.lib.sizes

applies if {
	standing.decided != false
	count(nodes) > 0
}

# Nodes of a managed cluster in the snapshot are evaluated there.
applies if {
	standing.decided != false
	count(nodes) == 0
	not computes.cluster_of(input.resource, input.snapshot.by_id)
}

deny contains {
	"msg": "regulated work runs on a size that is not isolated",
	"path": node.path,
	"actual": {"size": node.size, "because": standing.reason},
	"expected": "an isolated size",
} if {
	standing.decided == true
	some node in nodes
	not sizes.is_isolated(node.size)
}

unknown contains {"msg": standing.reason, "path": "workspace:/properties/hbiWorkspace"} if standing.decided == null

unknown contains {"msg": "what states the size is not in the snapshot", "path": "/properties/resourceId"} if count(nodes) == 0

nodes := computes.node_sizes(input.resource, input.snapshot.by_id)

standing := computes.regulated(
	input.resource, input.workspace, input.snapshot,
	input.parameters.regulated_classifications,
)
