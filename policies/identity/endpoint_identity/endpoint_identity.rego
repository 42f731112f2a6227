# METADATA
# scope: package
# title: Endpoints and batch deployments have a managed identity
# description: >-
#   An endpoint or a batch deployment without a managed identity reaches models and images with keys. The containers of an
#   online deployment run with the identity of its endpoint, so deployments are not evaluated.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/concept-endpoints-online-auth]
# custom:
#   id: AML-IDN-004
#   severity: medium
#   judges:
#     - Microsoft.MachineLearningServices/workspaces/onlineEndpoints
#     - Microsoft.MachineLearningServices/workspaces/batchEndpoints
#     - Microsoft.MachineLearningServices/workspaces/batchEndpoints/deployments
#   remediation: >-
#     Create it again with an identity, which cannot be added later: online, with `identity` in its YAML file; batch, with a
#     template or `az rest`, because `az ml` does not send one.
#   source: IDN-04
#   since: 0.2.0
package identity.endpoint_identity

import data.lib.identities
import data.lib.settings

deny contains {
	"msg": "the endpoint or deployment has no managed identity",
	"path": settings.pointer(identities.place),
	"actual": settings.at(input.resource, identities.place),
	"expected": "SystemAssigned or UserAssigned",
} if {
	identities.kinds(input.resource) == set()
}

unknown contains {"msg": "the type of the identity cannot be read", "path": settings.pointer(identities.place)} if {
	not identities.kinds(input.resource)
}
