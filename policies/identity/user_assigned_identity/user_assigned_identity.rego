# METADATA
# scope: package
# title: The workspace acts with a user-assigned identity
# description: >-
#   A user-assigned identity outlives the workspace, so its permissions can be granted and reviewed before the workspace
#   is there. The workspace has it as its primary identity. A project uses the identity of its hub, which is evaluated.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-identity-based-service-authentication]
# custom:
#   id: AML-IDN-001
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation: >-
#     Assign the identity and make it the primary one: `az ml workspace update --name <workspace> --resource-group <group>
#     --primary-user-assigned-identity <identity id>`.
#   source: IDN-01
#   since: 0.2.0
package identity.user_assigned_identity

import data.lib.identities
import data.lib.ids
import data.lib.networks
import data.lib.settings
import data.lib.words

applies if not networks.is_project(input.resource)

deny contains {
	"msg": "the workspace has no primary user-assigned identity",
	"path": settings.pointer(primary),
	"actual": null,
	"expected": "the id of a user-assigned identity",
} if {
	settings.is_unset(input.resource, primary)
}

deny contains {
	"msg": "the workspace has no user-assigned identity",
	"path": settings.pointer(identities.place),
	"actual": settings.at(input.resource, identities.place),
	"expected": "UserAssigned",
} if {
	settings.at(input.resource, identities.place) != null
	not "userassigned" in identities.kinds(input.resource)
	identities.kinds(input.resource)
}

deny contains {
	"msg": "the primary user-assigned identity is not assigned to the workspace",
	"path": settings.pointer(assigned),
	"actual": object.keys(stated),
	"expected": {"includes": id},
} if {
	id := words.text(settings.at(input.resource, primary))
	stated := settings.at(input.resource, assigned)
	is_object(stated)
	not ids.folded(trim_space(id)) in {ids.folded(trim_space(key)) | some key, _ in stated}
}

unknown contains {"msg": "the primary user-assigned identity cannot be read", "path": pointer} if {
	pointer := settings.unreadable(input.resource, primary, "string")
}

unknown contains {"msg": "the type of the identity cannot be read", "path": settings.pointer(identities.place)} if {
	not identities.kinds(input.resource)
}

unknown contains {"msg": "the user-assigned identities cannot be read", "path": pointer} if {
	pointer := settings.unreadable(input.resource, assigned, "object")
}

primary := ["properties", "primaryUserAssignedIdentity"]

assigned := ["identity", "userAssignedIdentities"]
