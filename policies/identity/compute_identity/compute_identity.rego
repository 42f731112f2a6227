# METADATA
# scope: package
# title: Computes have a managed identity
# description: >-
#   Work on a compute without a managed identity reaches data with keys, or with the identity of a person. Clusters,
#   instances, AKS and Spark pools can have one.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-identity-based-service-authentication]
# custom:
#   id: AML-IDN-003
#   severity: medium
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where: {/properties/computeType: [AmlCompute, ComputeInstance, AKS, SynapseSpark]}
#   remediation: "Create the compute again with an identity: `az ml compute create --identity-type SystemAssigned ...`."
#   source: IDN-03
#   since: 0.2.0
package identity.compute_identity

import data.lib.identities
import data.lib.settings

deny contains {
	"msg": "the compute has no managed identity",
	"path": settings.pointer(identities.place),
	"actual": settings.at(input.resource, identities.place),
	"expected": "SystemAssigned or UserAssigned",
} if {
	identities.kinds(input.resource) == set()
}

unknown contains {"msg": "the type of the identity cannot be read", "path": settings.pointer(identities.place)} if {
	not identities.kinds(input.resource)
}
