# METADATA
# scope: package
# title: Registries have a managed identity
# description: >-
#   Without a managed identity a registry needs keys to reach its storage and its container registry.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-manage-registries]
# custom:
#   id: AML-REG-003
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/registries]
#   remediation: Give the registry a managed identity; in ARM, set `type` of its `identity` to SystemAssigned.
#   source: REG-03
#   since: 0.2.0
package registries.managed_identity

import data.lib.identities
import data.lib.settings

deny contains {
	"msg": "the registry has no managed identity",
	"path": settings.pointer(identities.place),
	"actual": settings.at(input.resource, identities.place),
	"expected": "SystemAssigned, UserAssigned or both",
} if {
	count(identities.kinds(input.resource)) == 0
}

unknown contains {"msg": "the kind of the identity cannot be read", "path": settings.pointer(identities.place)} if {
	not identities.kinds(input.resource)
}
