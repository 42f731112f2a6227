# METADATA
# scope: package
# title: AKS compute is attached, not created
# description: >-
#   A cluster that the workspace creates is outside the rules of the platform team that an own cluster follows. An
#   attached cluster is named by `resourceId`.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-create-attach-kubernetes]
# custom:
#   id: AML-CMP-011
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [AKS]}
#   remediation: >-
#     Attach an own cluster (`az ml compute attach --type Kubernetes --resource-id <cluster> ...`), and delete the one that
#     the workspace created.
#   source: CMP-11
#   since: 0.2.0
package compute.attached_cluster

import data.lib.settings

deny contains {
	"msg": "the AKS compute names no cluster that it is attached to",
	"path": settings.pointer(place),
	"actual": null,
	"expected": "the id of a cluster",
} if {
	settings.is_unset(input.resource, place)
}

unknown contains {"msg": "what the compute is attached to is not text", "path": pointer} if {
	pointer := settings.unreadable(input.resource, place, "string")
}

place := ["properties", "resourceId"]
