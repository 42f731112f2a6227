# METADATA
# scope: package
# title: The workspace has a managed identity
# description: >-
#   A workspace without a managed identity reaches its storage and vault with keys that people have to keep and
#   rotate. A project has an identity of its own.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-identity-based-service-authentication]
# custom:
#   id: AML-IDN-002
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation:
#     text: Give the workspace an identity, in Azure Resource Manager by `identity.type` SystemAssigned or UserAssigned.
#     patches: [{patch: [{op: add, path: /identity/type, value: SystemAssigned}], provided: [AML-IDN-001]}]
#   source: IDN-02
#   since: 0.2.0
package identity.workspace_identity

import data.lib.identities
import data.lib.settings

deny contains {
	"msg": "the workspace has no managed identity",
	"path": settings.pointer(identities.place),
	"actual": settings.at(input.resource, identities.place),
	"expected": "SystemAssigned or UserAssigned",
} if {
	identities.kinds(input.resource) == set()
}

unknown contains {"msg": "the type of the identity cannot be read", "path": settings.pointer(identities.place)} if {
	not identities.kinds(input.resource)
}
