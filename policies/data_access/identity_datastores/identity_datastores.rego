# METADATA
# scope: package
# title: The workspace's own datastores use identities
# description: >-
#   The datastores that a workspace makes itself use the key of the storage account, unless the workspace states otherwise,
#   and the key opens the whole account to whoever may use them. A project has the setting of its hub, which is evaluated.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-disable-local-auth-storage]
# custom:
#   id: AML-DAT-002
#   severity: medium
#   judges: [Microsoft.MachineLearningServices/workspaces]
#   remediation: >-
#     Grant the people and the identities their roles on the storage account, and then set the mode: `az ml workspace
#     update --name <workspace> --resource-group <group> --system-datastores-auth-mode identity`.
#   source: DAT-02
#   parameters:
#     accepted_modes:
#       type: array
#       items: {type: string, pattern: '\S'}
#       default: [Identity]
#       description: modes that pass, such as Identity and UserDelegationSAS; with none, the policy is off
#   since: 0.2.0
package data_access.identity_datastores

import data.lib.networks
import data.lib.settings
import data.lib.words

applies if {
	count(accepted) > 0
	not networks.is_project(input.resource)
}

deny contains {
	"msg": "the workspace's own datastores do not use identities",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": {"one of": input.parameters.accepted_modes},
} if {
	settings.word(settings.at(input.resource, place), modes - accepted)
}

unknown contains {"msg": "how the workspace's own datastores authenticate is not stated", "path": settings.pointer(place)} if {
	settings.is_unset(input.resource, place)
}

unknown contains {"msg": "how the workspace's own datastores authenticate cannot be read", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, place, modes | accepted)
}

accepted := {words.folded(mode) | some mode in input.parameters.accepted_modes}

modes := {"accesskey", "identity", "userdelegationsas"}

place := ["properties", "systemDatastoresAuthMode"]
