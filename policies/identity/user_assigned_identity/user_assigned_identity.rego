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
	"expected": {"includes": words.text(settings.at(input.resource, primary))},
} if {
	stated
	not id in identity_ids
	not may_be_assigned
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

unknown contains {"msg": "whether the primary user-assigned identity is assigned depends on an open name", "path": settings.pointer(assigned)} if {
	not id in identity_ids
	may_be_assigned
}

id := ids.folded(trim_space(words.text(settings.at(input.resource, primary))))

stated := entries if {
	entries := settings.at(input.resource, assigned)
	is_object(entries)
}

identity_ids := {ids.folded(trim_space(key)) | some key, _ in stated}

may_be_assigned if {
	some identity_id in identity_ids
	ids.may_hold(identity_id, id)
}

primary := ["properties", "primaryUserAssignedIdentity"]

assigned := ["identity", "userAssignedIdentities"]
